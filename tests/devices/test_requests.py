"""Asking for consent: one open request for one thing, on a device that could run it."""

from datetime import timedelta

import pytest

from devices.models import Approval
from devices.services import approvals, devices
from devices.services.consent import (
    AskedAlready,
    ContractNotAccepted,
    DeviceNotActive,
)
from hub.accounts.models import Account, User
from tests import factories
from tests.devices import factories as made
from tests.devices.factories import Box
from tests.factories import NOON
from tests.hub.campaigns import factories as campaigns


def test_a_request_says_what_it_is_about_and_pins_the_checkpoint(box: Box, ana: User) -> None:
    approval = made.requested(box.device, ana)

    assert approval.state == "requested"
    assert approval.about == f"the errand with {approval.checkpoint}"
    assert approval.onnx_sha256 == approval.checkpoint.onnx_sha256
    assert approval.token == ""


def test_nobody_asks_twice_for_one_thing_at_a_time(box: Box, ana: User) -> None:
    first = made.requested(box.device, ana)

    with pytest.raises(AskedAlready) as refused:
        made.requested(box.device, ana, subject_id=first.subject_id)

    assert refused.value.members["approval"] == first.pk


def test_what_ended_without_a_start_is_asked_for_again(box: Box, ana: User) -> None:
    first = made.requested(box.device, ana)
    approvals.decline_approval(approval=first, reason="not today", by=factories.actor(ana), at=NOON)

    assert made.requested(box.device, ana, subject_id=first.subject_id).state == "requested"


def test_a_request_that_ran_out_is_in_nobody_s_way(box: Box, ana: User) -> None:
    first = made.requested(box.device, ana, at=NOON - timedelta(days=7))

    made.requested(box.device, ana, subject_id=first.subject_id)

    assert Approval.objects.get(pk=first.pk).state == "expired"


def test_a_device_that_is_not_active_is_asked_for_nothing(box: Box, lab: Account, ana: User) -> None:
    pending = made.new_device(lab, ana, name="second").device
    checkpoint = made.checkpoint_for(pending)
    devices.revoke_device(device=box.device, reason="", by=factories.actor(ana), at=NOON)

    for device in (pending, box.device):
        with pytest.raises(DeviceNotActive):
            made.requested(device, ana, checkpoint=checkpoint)
    assert not Approval.objects.exists()


def test_a_contract_that_the_device_does_not_accept_is_not_asked_for(lab: Account, ana: User) -> None:
    box = made.box(lab, ana, accepts=[])

    with pytest.raises(ContractNotAccepted) as refused:
        made.requested(box.device, ana)

    assert refused.value.members["contract"] == made.contract_of(box.device).name
    assert not Approval.objects.exists()


def test_a_device_may_accept_every_contract_of_a_robot_and_rate(lab: Account, ana: User) -> None:
    box = made.box(lab, ana, accepts=["stilt@50"])

    assert made.requested(box.device, ana).state == "requested"


def test_a_contract_of_another_robot_is_never_accepted(box: Box, eve: User) -> None:
    """Another account's robot of the same slug, joints and rate has a contract of the same name."""
    theirs = campaigns.contract(campaigns.robot(eve.account))

    assert theirs.name in box.device.accepted_contracts
    assert not box.device.accepts(theirs)
