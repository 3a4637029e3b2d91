"""Every act leaves its event in its own transaction: without the event, nothing of the act lands."""

from datetime import timedelta

import pytest
from nacl.signing import SigningKey

from devices.models import Approval, Device, DeviceEvent, DeviceKey
from devices.services import approvals, consent, devices, enrolment
from driver.wire import rotation, signatures
from hub.accounts.models import User
from hub.audit import services as audit
from hub.audit.models import Event
from tests import factories
from tests.devices import factories as made
from tests.devices.factories import ERRANDS, Box
from tests.factories import NOON


def everything() -> list[list[dict]]:
    return [
        list(model.objects.order_by("pk").values()) for model in (Device, DeviceKey, Approval, DeviceEvent)
    ]


def rotated(box: Box) -> None:
    payload = rotation.rotation_payload(device_id=box.device.pk, new_key=SigningKey.generate(), at=NOON)
    enrolment.rotate_device_key(device=box.device, envelope=signatures.sign(payload, box.key), at=NOON)


def approval_in(state: str, box: Box, by: User) -> Approval:
    return {
        "requested": lambda: made.requested(box.device, by),
        "issued": lambda: made.issued(box.device, by),
        "running": lambda: made.running(box, by),
    }[state]()


ACTS = {
    "approval.requested": (None, lambda box, approval, who: made.requested(box.device, who.user)),
    "approval.issued": (
        "requested",
        lambda box, approval, who: consent.issue_approval(
            approval=approval, run_sheet_sha256=made.digest_of(approval), by=who, at=NOON
        ),
    ),
    "approval.declined": (
        "requested",
        lambda box, approval, who: approvals.decline_approval(approval=approval, reason="", by=who, at=NOON),
    ),
    "approval.withdrawn": (
        "requested",
        lambda box, approval, who: approvals.withdraw_approval(approval=approval, reason="", by=who, at=NOON),
    ),
    "approval.revoked": (
        "issued",
        lambda box, approval, who: approvals.revoke_approval(approval=approval, reason="", by=who, at=NOON),
    ),
    "approval.stop-requested": (
        "running",
        lambda box, approval, who: approvals.revoke_approval(approval=approval, reason="", by=who, at=NOON),
    ),
    "approval.expired": (
        "requested",
        lambda box, approval, who: approvals.expire_due(at=NOON + timedelta(days=7)),
    ),
    "approval.started": ("issued", lambda box, approval, who: box.tell(box.started(approval))),
    "approval.stopped": ("running", lambda box, approval, who: box.tell(box.stopped(approval))),
    "approval.refused": (
        "issued",
        lambda box, approval, who: box.tell(box.event("refused", {"reason": "no"}, approval=approval)),
    ),
    "device.journal-lost": (None, lambda box, approval, who: box.tell(box.event("journal_lost", {}))),
    "device.key-rotated": (None, lambda box, approval, who: rotated(box)),
    "device.changed": (
        None,
        lambda box, approval, who: devices.update_device(
            device=box.device, changes={"name": "other"}, by=who, at=NOON
        ),
    ),
    "device.revoked": (
        None,
        lambda box, approval, who: devices.revoke_device(device=box.device, reason="", by=who, at=NOON),
    ),
}


@pytest.mark.parametrize("action", ACTS)
def test_an_act_leaves_one_event_with_a_sentence(box: Box, ana: User, action: str) -> None:
    state, act = ACTS[action]
    approval = approval_in(state, box, ana) if state else None

    act(box, approval, factories.actor(ana))

    event = Event.objects.get(action=action)
    assert event.account_id == box.device.owner_id
    assert event.sentence[0].isupper() or event.sentence.startswith("ana@lab.test")
    assert event.target in (box.device.pk, *Approval.objects.values_list("pk", flat=True))


@pytest.mark.parametrize("action", ACTS)
def test_without_its_event_an_act_does_not_land(box: Box, ana: User, action: str, monkeypatch) -> None:
    state, act = ACTS[action]
    approval = approval_in(state, box, ana) if state else None
    made.checkpoint_for(box.device, step=99)
    before = everything()
    monkeypatch.setattr(audit, "record", lambda *_, **__: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        act(box, approval, factories.actor(ana))

    assert everything() == before


def test_a_device_s_end_leaves_an_event_for_each_approval_it_ends(box: Box, ana: User) -> None:
    made.requested(box.device, ana)
    made.issued(box.device, ana)
    made.running(box, ana)

    devices.revoke_device(device=box.device, reason="", by=factories.actor(ana), at=NOON)

    done = set(Event.objects.order_by("pk").values_list("action", flat=True))
    assert {"device.revoked", "approval.declined", "approval.revoked", "approval.stop-requested"} <= done


def test_every_action_of_an_approval_and_a_device_is_tried_here_or_at_enrolment() -> None:
    known = {name for name in audit.actions.known() if name.startswith(("approval.", "device."))}
    at_enrolment = {"device.created", "device.enrolled", "device.code-ended"}

    assert known == set(ACTS) | at_enrolment
    assert ERRANDS
