"""A run at the robot: it starts under a fresh answer of the hub, and stops when the robot says so."""

from datetime import datetime
from typing import Any

from devices import keys, subjects
from devices.models import Approval, Device, DeviceKey
from devices.services import approvals, consent
from devices.statements import Statement
from driver.wire import base64url
from driver.wire.statements import go_on_payload
from hub.accounts import actors
from hub.core.problems import Conflict

State = Approval.State


class DeviceBusy(Conflict):
    slug = "device-busy"
    title = "Another run of this device has not stopped."


class NotStarted(Conflict):
    slug = "run-not-started"
    title = "This run has not started."


def start(said: Statement, *, device: Device, approval: Approval, at: datetime) -> dict[str, Any]:
    """
    Begin a run: the one act that makes an approval running. The caller holds the device's row.

    :raises WrongState: unless it is issued and its time is not up
    :raises DeviceNotActive: when it was revoked a moment ago
    :raises DeviceBusy: while another run of it has not stopped
    :raises OutOfOrder: unless its turn has come
    """
    approval = approvals.locked(approval)
    approvals.move(approval, State.RUNNING, at=at)
    consent.check_active(device)
    _check_idle(device)
    subjects.of(approval).check_start(approval, at=at)
    approval.started_at, approval.started_with = at, _key_of(said, device)
    approval.save(update_fields=["state", "started_at", "started_with"])
    sentence = f"The robot started {approvals.run(approval)}."
    approvals.record("started", approval, by=actors.device(device.pk), at=at, sentence=sentence)
    return keys.sign(go_on_payload(approval_id=approval.pk, go_on=True, reason=None, at=at), at=at)


def stop(said: Statement, *, device: Device, approval: Approval, at: datetime) -> None:
    """
    End a run, on the robot's word alone. The caller holds the device's row.

    :raises WrongState: unless it is running
    """
    approval = approvals.locked(approval)
    approval.move_to(State.STOPPED)
    approval.stopped_at = at
    approval.stopped_by = "revoked" if approval.stop_requested_at else ""
    approval.stopped_reason = _last_word(approval)
    approval.save(update_fields=["state", "stopped_at", "stopped_by", "stopped_reason"])
    asked = f", as {approval.stop_requested_by} had asked" if approval.stop_requested_at else ""
    approvals.record(
        "stopped",
        approval,
        by=actors.device(device.pk),
        at=at,
        sentence=f"The robot stopped {approvals.run(approval)}{asked}.",
        stopped_by=approval.stopped_by,
        stopped_reason=approval.stopped_reason,
    )


def confirm(*, approval: Approval, at: datetime) -> dict[str, Any]:
    """
    Say under the hub's signature whether a run may go on to its next stage.

    Its latest start is no matter once it has started. Nothing changes by asking.
    """
    why_not = _why_not(Approval.objects.select_related("device").get(pk=approval.pk))
    payload = go_on_payload(approval_id=approval.pk, go_on=why_not is None, reason=why_not, at=at)
    return keys.sign(payload, at=at)


def check_has_started(approval: Approval) -> None:
    """:raises NotStarted: for what is said of the stages of a run that never began"""
    if approval.started_at is None:
        raise NotStarted(f"{approval.pk} is {approval.state}.", approval=approval.pk, state=approval.state)


def _why_not(approval: Approval) -> str | None:
    if approval.stop_requested_at is not None:
        return f"revoked: {approval.stop_requested_by} asked to stop"
    if approval.state != State.RUNNING:
        return f"the approval is {approval.state}"
    if approval.device.state != Device.State.ACTIVE:
        return f"the device is {approval.device.state}"
    return None


def _check_idle(device: Device) -> None:
    other = device.approvals.filter(state=State.RUNNING).first()
    if other is not None:
        raise DeviceBusy(f"{other.pk} is running.", approval=other.pk, trial=other.subject_id)


def _key_of(said: Statement, device: Device) -> DeviceKey:
    return device.keys.get(public_key=base64url.encode(said.public_key))


def _last_word(approval: Approval) -> str:
    last = approval.events.filter(kind="stage_finished").order_by("-seq").first()
    if last is None:
        return ""
    said = [last.data["stage"], last.data.get("status"), last.data.get("reason")]
    return ": ".join(word for word in said if word)
