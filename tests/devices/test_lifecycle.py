"""The whole life of an approval and of a device, written down by hand from the contract."""

from datetime import timedelta

import pytest

from devices.models import Approval, Device
from devices.services import approvals, consent, devices
from hub.accounts.models import User
from hub.core.lifecycle import WrongState
from hub.jobs import registry
from tests import factories
from tests.devices import factories as made
from tests.devices.factories import Box
from tests.factories import NOON

LATER = NOON + timedelta(minutes=5)
ALLOWED = {
    ("requested", "issued"),
    ("requested", "declined"),
    ("requested", "withdrawn"),
    ("requested", "expired"),
    ("issued", "running"),
    ("issued", "revoked"),
    ("issued", "expired"),
    ("running", "stopped"),
}
DEVICE_ALLOWED = {("pending", "active"), ("active", "revoked"), ("pending", "revoked")}


def in_state(state: str, box: Box, by: User) -> Approval:
    """An approval that came to its state the way one does."""
    who = factories.actor(by)
    match state:
        case "requested":
            return made.requested(box.device, by)
        case "issued":
            return made.issued(box.device, by)
        case "running":
            return made.running(box, by)
        case "stopped":
            return made.stopped(box, by)
        case "declined":
            approval = made.requested(box.device, by)
            return approvals.decline_approval(approval=approval, reason="no", by=who, at=NOON)
        case "withdrawn":
            approval = made.requested(box.device, by)
            return approvals.withdraw_approval(approval=approval, reason="", by=who, at=NOON)
        case "revoked":
            approval = made.issued(box.device, by)
            return approvals.revoke_approval(approval=approval, reason="", by=who, at=NOON)
        case _:
            approval = made.requested(box.device, by, at=NOON - timedelta(days=8))
            approvals.expire_due(at=NOON)
            return Approval.objects.get(pk=approval.pk)


def act(towards: str, approval: Approval, box: Box, by: User) -> None:
    """Do what would move an approval there."""
    who = factories.actor(by)
    match towards:
        case "issued":
            digest = made.digest_of(approval)
            consent.issue_approval(approval=approval, run_sheet_sha256=digest, by=who, at=LATER)
        case "declined":
            approvals.decline_approval(approval=approval, reason="", by=who, at=LATER)
        case "withdrawn":
            approvals.withdraw_approval(approval=approval, reason="", by=who, at=LATER)
        case "revoked":
            approvals.revoke_approval(approval=approval, reason="", by=who, at=LATER)
        case "running":
            box.tell(box.started(approval), at=LATER)
        case "stopped":
            box.tell(box.stopped(approval), at=LATER)


@pytest.mark.parametrize("towards", ["issued", "declined", "withdrawn", "revoked", "running", "stopped"])
@pytest.mark.parametrize("state", Approval.State.values)
def test_only_the_written_moves_are_made(box: Box, ana: User, state: str, towards: str) -> None:
    approval = in_state(state, box, ana)

    if (state, towards) == ("running", "revoked"):
        act(towards, approval, box, ana)  # asks to stop, and moves nothing
        assert Approval.objects.get().state == "running"
    elif (state, towards) in ALLOWED:
        act(towards, approval, box, ana)
        assert Approval.objects.get().state == towards
    else:
        with pytest.raises(WrongState) as refused:
            act(towards, approval, box, ana)
        assert (refused.value.members["state"], refused.value.members["wanted"]) == (state, towards)
        assert Approval.objects.get().state == state


def test_the_table_of_approvals_is_the_contract_s() -> None:
    assert {(state, to) for state, all_to in Approval.NEXT.items() for to in all_to} == ALLOWED


def test_the_table_of_devices_is_the_contract_s() -> None:
    assert {(state, to) for state, all_to in Device.NEXT.items() for to in all_to} == DEVICE_ALLOWED


@pytest.mark.parametrize("state", ["requested", "issued"])
def test_what_ran_out_is_refused_though_no_sweep_has_seen_it(box: Box, ana: User, state: str) -> None:
    approval = in_state(state, box, ana)
    Approval.objects.update(expires_at=LATER)

    for towards in ("issued", "declined", "withdrawn", "revoked", "running"):
        with pytest.raises(WrongState) as refused:
            act(towards, approval, box, ana)
        assert refused.value.members["state"] == "expired"


def test_a_request_lasts_seven_days_and_a_token_twelve_hours(box: Box, ana: User) -> None:
    assert made.requested(box.device, ana).expires_at == NOON + timedelta(days=7)
    assert made.issued(box.device, ana).expires_at == NOON + timedelta(hours=12)


def test_the_sweep_writes_down_what_ran_out_and_when(box: Box, ana: User) -> None:
    requested, issued = made.requested(box.device, ana), made.issued(box.device, ana)
    running = made.running(box, ana)

    assert approvals.expire_due(at=NOON + timedelta(hours=13)) == 1
    assert approvals.expire_due(at=NOON + timedelta(days=8)) == 1
    assert approvals.expire_due(at=NOON + timedelta(days=80)) == 0

    ended = {each.pk: each for each in Approval.objects.all()}
    assert ended[requested.pk].ended_at == NOON + timedelta(days=7)
    assert ended[requested.pk].ended_reason == "not answered in time"
    assert ended[issued.pk].ended_at == NOON + timedelta(hours=12)
    assert ended[issued.pk].ended_reason == "not started in time"
    assert ended[running.pk].state == "running"


def test_sweeps_come_round_by_themselves(box: Box, ana: User) -> None:
    made.requested(box.device, ana, at=NOON - timedelta(days=7))
    every = dict(registry.periodic())

    registry.kind("approvals.expire").work(at=NOON)

    assert Approval.objects.get().state == "expired"
    assert every["approvals.expire"] <= timedelta(minutes=1)
    assert every["nonces.sweep"] <= timedelta(minutes=10)


def test_a_revoked_device_is_not_revoked_again(box: Box, ana: User) -> None:
    who = factories.actor(ana)
    devices.revoke_device(device=box.device, reason="", by=who, at=NOON)

    with pytest.raises(WrongState):
        devices.revoke_device(device=box.device, reason="", by=who, at=NOON)


def test_revoking_a_device_ends_what_is_open_on_it(box: Box, ana: User) -> None:
    made_up = {
        state: in_state(state, box, ana)
        for state in ("stopped", "running", "issued", "requested", "declined")
    }
    overdue = made.requested(box.device, ana, at=NOON - timedelta(days=8))

    devices.revoke_device(device=box.device, reason="stolen", by=factories.actor(ana), at=LATER)

    now = {each.pk: each for each in Approval.objects.all()}
    assert {state: now[each.pk].state for state, each in made_up.items()} == {
        "stopped": "stopped",
        "running": "running",
        "issued": "revoked",
        "requested": "declined",
        "declined": "declined",
    }
    assert now[made_up["running"].pk].stop_requested_at == LATER
    assert now[made_up["issued"].pk].ended_reason == "the device was revoked"
    assert now[made_up["declined"].pk].ended_at == NOON
    assert now[overdue.pk].state == "expired"
