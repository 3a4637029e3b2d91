"""
What moves an approval besides consent and the robot: declined, withdrawn, revoked, expired.

Locks: the approval's row first, then whatever its subject locks. Who holds a device's row took it before.
"""

from datetime import datetime

from django.db import transaction

from devices.models import Approval, Device
from hub.accounts.actors import SYSTEM, Actor
from hub.accounts.permissions import may_decide, may_plan
from hub.audit import services as audit

State = Approval.State


@transaction.atomic
def decline_approval(*, approval: Approval, reason: str, by: Actor, at: datetime) -> Approval:
    """
    Say no to a request.

    :raises PersonsOnly: for a program
    :raises RoleForbidden: for an operator
    :raises WrongState: unless it is requested and its time is not up
    """
    may_decide(by, approval.device.owner)
    return _end(locked(approval), State.DECLINED, reason=reason, by=by, at=at)


@transaction.atomic
def withdraw_approval(*, approval: Approval, reason: str, by: Actor, at: datetime) -> Approval:
    """
    Take a request back before anybody has answered it.

    :raises RoleForbidden: for an operator
    :raises WrongState: unless it is requested and its time is not up
    """
    may_plan(by, approval.device.owner)
    return _end(locked(approval), State.WITHDRAWN, reason=reason, by=by, at=at)


@transaction.atomic
def revoke_approval(*, approval: Approval, reason: str, by: Actor, at: datetime) -> Approval:
    """
    Take consent back. What runs is asked to stop, once, and is running until the robot says otherwise.

    :raises PersonsOnly: for a program
    :raises RoleForbidden: for an operator
    :raises WrongState: unless it is issued or running
    """
    may_decide(by, approval.device.owner)
    approval = locked(approval)
    if approval.state == State.RUNNING:
        return _ask_to_stop(approval, reason=reason, by=by, at=at)
    return _end(approval, State.REVOKED, reason=reason, by=by, at=at)


def end_all_of(device: Device, *, by: Actor, at: datetime) -> None:
    """End what is open on a device that is being revoked. The caller holds the device's row."""
    open_ids = device.approvals.filter(state__in=Approval.OPEN).order_by("pk").values_list("pk", flat=True)
    for pk in list(open_ids):
        _end_for_its_device(Approval.objects.select_for_update().get(pk=pk), by=by, at=at)


def expire_due(*, at: datetime) -> int:
    """Write down what ran out. Whoever reads or acts has counted it as expired since it did."""
    overdue = Approval.objects.overdue(at=at).order_by("pk").values_list("pk", flat=True)
    return sum(_expire_one(pk, at=at) for pk in list(overdue))


def expire_overdue(subject_kind: str, subject_id: str, *, at: datetime) -> None:
    """One that ran out is in nobody's way, though no sweep has been round yet."""
    for approval in Approval.objects.of(subject_kind, subject_id).overdue(at=at).select_for_update():
        _expire(approval, at=at)


def locked(approval: Approval) -> Approval:
    """Lock an approval's row for the rest of the transaction: the first lock of everything that moves it."""
    return Approval.objects.select_for_update().get(pk=approval.pk)


def move(approval: Approval, state: State, *, at: datetime) -> None:
    """
    Move an approval along its table, an overdue one as the expired one that it is.

    :raises WrongState: naming both states
    """
    approval.state = approval.state_at(at)
    approval.move_to(state)


def run(approval: Approval) -> str:
    """What an approval is about, for a sentence."""
    return f"{approval.about} on {approval.device.name}"


def record(word: str, approval: Approval, *, by: Actor, at: datetime, sentence: str, **data: object) -> None:
    """Audit an act on an approval, for the owner of its device."""
    audit.record(
        f"approval.{word}",
        by=by,
        account_id=approval.device.owner_id,
        target=approval,
        at=at,
        sentence=sentence,
        subject=approval.subject_id,
        **data,
    )


_ENDED = ["state", "ended_at", "ended_by", "ended_reason"]
_SAID = {
    State.DECLINED: "declined consent to",
    State.WITHDRAWN: "took back the request for consent to",
    State.REVOKED: "took back consent to",
}


def _end(approval: Approval, state: State, *, reason: str, by: Actor, at: datetime) -> Approval:
    move(approval, state, at=at)
    approval.ended_at, approval.ended_by, approval.ended_reason = at, by.label, reason
    approval.save(update_fields=_ENDED)
    sentence = f"{by.label} {_SAID[state]} {run(approval)}{_because(reason)}."
    record(str(state), approval, by=by, at=at, sentence=sentence, reason=reason)
    return approval


def _end_for_its_device(approval: Approval, *, by: Actor, at: datetime) -> None:
    why = "the device was revoked"
    match approval.state_at(at):
        case State.REQUESTED:
            _end(approval, State.DECLINED, reason=why, by=by, at=at)
        case State.ISSUED:
            _end(approval, State.REVOKED, reason=why, by=by, at=at)
        case State.RUNNING:
            _ask_to_stop(approval, reason=why, by=by, at=at)
        case State.EXPIRED if approval.state != State.EXPIRED:
            _expire(approval, at=at)


def _ask_to_stop(approval: Approval, *, reason: str, by: Actor, at: datetime) -> Approval:
    if approval.stop_requested_at is not None:
        return approval
    approval.stop_requested_at, approval.stop_requested_by = at, by.label
    approval.save(update_fields=["stop_requested_at", "stop_requested_by"])
    sentence = f"{by.label} asked the robot to stop {run(approval)}{_because(reason)}."
    record("stop-requested", approval, by=by, at=at, sentence=sentence, reason=reason)
    return approval


@transaction.atomic
def _expire_one(pk: str, *, at: datetime) -> bool:
    approval = Approval.objects.overdue(at=at).select_for_update(skip_locked=True).filter(pk=pk).first()
    if approval is not None:
        _expire(approval, at=at)
    return approval is not None


def _expire(approval: Approval, *, at: datetime) -> None:
    was = approval.state
    approval.move_to(State.EXPIRED)
    approval.ended_at, approval.ended_by = approval.expires_at, SYSTEM.label
    approval.ended_reason = "not answered in time" if was == State.REQUESTED else "not started in time"
    approval.save(update_fields=_ENDED)
    sentence = f"Consent to {run(approval)} expired: {approval.ended_reason}."
    record("expired", approval, by=SYSTEM, at=at, sentence=sentence, was=was)


def _because(reason: str) -> str:
    return f": {reason.rstrip('.')}" if reason else ""
