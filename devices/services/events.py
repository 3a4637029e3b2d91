"""What a device says of itself: signed, numbered, kept as bytes, and answered once."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db import transaction

from devices import statements
from devices.models import Approval, Device, DeviceEvent, DeviceKey
from devices.services import runs
from devices.statements import NotBound, Statement
from driver.wire import canonical, moments
from driver.wire import statements as wire
from driver.wire.canonical import JSON
from hub.accounts import actors
from hub.audit import services as audit
from hub.core.problems import Conflict

Answer = dict[str, Any]


class SeqUsed(Conflict):
    """Another statement has this number or a later one; last_seq lets a box go on from there."""

    slug = "seq-used"
    title = "The event's number is not above the last one."


def post_event(*, device: Device, envelope: JSON, at: datetime) -> Answer:
    """
    Take an event of a device and give the answer that it will get however often it is sent.

    :raises StatementInvalid: for another shape; then
    :raises WrongSignature: unless a key of the device signed it; then
    :raises NotBound: when it is about something else
    :raises SeqUsed: for a number that is not above the last one
    :raises Conflict: where the state of its approval does not allow what the event says
    """
    payload = statements.shaped(envelope, wire.check_device_event)
    approval = _approval_of(device, payload)
    keys = _keys_for(device, approval)
    said = statements.signed(envelope, by=[statements.public_bytes(key) for key in keys])  # type: ignore[arg-type]
    _check_binding(said, device=device, approval=approval)
    return _take(said, device=device, approval=approval, at=at)


def _approval_of(device: Device, payload: dict[str, Any]) -> Approval | None:
    """The approval that a statement names, if it is one of this device. Nothing is decided here yet."""
    return device.approvals.filter(pk=payload["approval_id"]).first()


def _keys_for(device: Device, approval: Approval | None) -> list[DeviceKey]:
    """Today's key, and the one a run began with: what that signed offline may come after a change."""
    started_with = approval.started_with if approval else None
    return [statements.active_key(device), *([started_with] if started_with else [])]


def _check_binding(said: Statement, *, device: Device, approval: Approval | None) -> None:
    statements.check_device(said, device)
    if said.payload["approval_id"] is not None and approval is None:
        raise NotBound(errors={"payload.approval_id": ["This device has no such approval."]})
    trial_id = approval.subject_id if approval else None
    if said.payload["trial_id"] != trial_id:
        raise NotBound(errors={"payload.trial_id": ["The approval is not about this trial."]})


@transaction.atomic
def _take(said: Statement, *, device: Device, approval: Approval | None, at: datetime) -> Answer:
    # Events of one device are taken one by one. Not the whole row: requests for it may be filed meanwhile.
    device = Device.objects.select_for_update(no_key=True).get(pk=device.pk)
    if (stored := _stored_answer(said, device=device)) is not None:
        return stored
    seq = int(said.payload["seq"])
    if seq <= device.last_seq:
        raise SeqUsed(f"The last one was {device.last_seq}.", last_seq=device.last_seq)
    if said.payload["kind"] == "heartbeat":
        return _beat(said, device=device, at=at)
    act = _ACTS[said.payload["kind"]]
    answer = act(said, device=device, approval=approval, at=at) or _received(seq, at=at)
    _keep(said, device=device, approval=approval, answer=answer, at=at)
    return answer


def _stored_answer(said: Statement, *, device: Device) -> Answer | None:
    """What the same bytes were answered before. Nothing is judged again: a lost answer is only repeated."""
    seq = int(said.payload["seq"])
    if device.heartbeat_sha256 == said.sha256:
        return _alive(seq, device=device)
    kept = device.events.filter(seq=seq).first()
    if kept is None or bytes(kept.statement) != said.raw:
        return None
    return canonical.object_of(kept.answer.encode())


def _keep(
    said: Statement, *, device: Device, approval: Approval | None, answer: Answer, at: datetime
) -> None:
    seq = int(said.payload["seq"])
    DeviceEvent.objects.create(
        device=device,
        approval=approval,
        seq=seq,
        after_seq=device.last_seq,
        kind=said.payload["kind"],
        statement=said.raw,
        signature=said.signature,
        kid=said.kid,
        data=said.payload["data"],
        answer=canonical.dumps(answer).decode(),
        received_at=at,
    )
    device.last_seq = seq
    device.save(update_fields=["last_seq"])


def _beat(said: Statement, *, device: Device, at: datetime) -> Answer:
    device.last_seq = int(said.payload["seq"])
    device.heartbeat, device.heartbeat_at = said.payload["data"], at
    device.heartbeat_sha256 = said.sha256
    device.save(update_fields=["last_seq", "heartbeat", "heartbeat_at", "heartbeat_sha256"])
    return _alive(device.last_seq, device=device)


def _alive(seq: int, *, device: Device) -> Answer:
    """A heartbeat's answer says what is asked to stop, so that the box learns of it within one beat."""
    asked = device.approvals.filter(state=Approval.State.RUNNING, stop_requested_at__isnull=False)
    return {"seq": seq, "stop_requested": list(asked.values_list("pk", flat=True))}


def _received(seq: int, *, at: datetime) -> Answer:
    return {"seq": seq, "received_at": moments.write(at)}


def _stage(said: Statement, *, device: Device, approval: Approval, at: datetime) -> None:
    runs.check_has_started(approval)


def _refused(said: Statement, *, device: Device, approval: Approval | None, at: datetime) -> None:
    reason = said.payload["data"]["reason"]
    what = f"to run {approval.about}" if approval else "what it was given"
    audit.record(
        "approval.refused",
        by=actors.device(device.pk),
        account_id=device.owner_id,
        target=approval or device,
        at=at,
        sentence=f"The device {device.name} refused {what}: {reason}",
        reason=reason,
    )


def _journal_lost(said: Statement, *, device: Device, approval: Approval | None, at: datetime) -> None:
    audit.record(
        "device.journal-lost",
        by=actors.device(device.pk),
        account_id=device.owner_id,
        target=device,
        at=at,
        sentence=f"The device {device.name} lost its journal after event {device.last_seq} and goes on.",
        last_seq=device.last_seq,
        reason=said.payload["data"].get("reason"),
    )


_ACTS: dict[str, Callable[..., Answer | None]] = {
    "run_started": runs.start,
    "stage_started": _stage,
    "stage_finished": _stage,
    "run_stopped": runs.stop,
    "refused": _refused,
    "journal_lost": _journal_lost,
}
