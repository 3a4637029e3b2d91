"""Consent (M13) asked for and given: anyone who plans asks, a person gives it for one run on one device."""

from datetime import datetime

from django.conf import settings
from django.db import IntegrityError, transaction

from devices import subjects, tokens
from devices.models import Approval, Device
from devices.services import approvals
from devices.subjects import Frozen
from hub.accounts.actors import Actor
from hub.accounts.models import User
from hub.accounts.permissions import may_decide, signed_in_recently
from hub.campaigns.models import Checkpoint, Contract
from hub.campaigns.services import campaigns, lineage
from hub.core.problems import Conflict, Forbidden, PreconditionRequired

State = Approval.State


class DeviceNotActive(Conflict):
    slug = "device-not-active"
    title = "The device is not active."


class ContractNotAccepted(Conflict):
    slug = "contract-not-accepted"
    title = "The device does not accept the checkpoint's contract."


class AskedAlready(Conflict):
    slug = "approval-open"
    title = "There is an open request, consent or run for this already."


class DigestMissing(PreconditionRequired):
    """Consent is to the sheet that was seen, so it says which one that was."""

    slug = "precondition-required"
    title = "Say which run sheet you saw."


class SheetChanged(Conflict):
    slug = "run-sheet-changed"
    title = "The run sheet is not the one you saw."


class SelfApprovalForbidden(Forbidden):
    slug = "self-approval-forbidden"
    title = "This account does not let people consent to what they asked for."


@transaction.atomic
def request_approval(
    *,
    device: Device,
    subject_kind: str,
    subject_id: str,
    checkpoint: Checkpoint,
    reason: str,
    by: Actor,
    at: datetime,
) -> Approval:
    """
    Ask for consent to one run. It is never given by asking.

    :raises DeviceNotActive: for one that is pending or revoked
    :raises ContractNotAccepted: where the device could not run it
    :raises AskedAlready: naming what is open for this subject
    """
    _hold(device)
    check_device_takes(device=device, checkpoint=checkpoint)
    approvals.expire_overdue(subject_kind, subject_id, at=at)
    approval = Approval(
        device=device,
        subject_kind=subject_kind,
        subject_id=subject_id,
        checkpoint=checkpoint,
        onnx_sha256=checkpoint.onnx_sha256,
        reason=reason,
        requested_at=at,
        requested_by=by.label,
        requested_by_user=_person_behind(by),
        expires_at=at + settings.APPROVAL_REQUEST_FOR,
    )
    approval.about = subjects.of(approval).describe(approval)
    _insert(approval)
    approvals.record(
        "requested",
        approval,
        by=by,
        at=at,
        sentence=f"{by.label} asked for consent to {approvals.run(approval)}.",
    )
    return approval


def check_device_takes(*, device: Device, checkpoint: Checkpoint) -> Contract:
    """
    Read afresh whether a device is active and accepts what a checkpoint needs.

    :raises DeviceNotActive: for one that is pending or revoked
    :raises ContractNotAccepted: naming the contract
    """
    device = Device.objects.select_related("robot").get(pk=device.pk)
    check_active(device)
    contract = checkpoint.contract
    if contract is None or not device.accepts(contract):
        needed = f"{checkpoint} needs {contract}" if contract else f"{checkpoint} is not verified"
        raise ContractNotAccepted(
            f"{needed}; add it to the contracts of {device.name} if its box is ready for it.",
            device=device.pk,
            checkpoint=checkpoint.pk,
            contract=contract and contract.name,
        )
    return contract


def check_active(device: Device) -> None:
    """:raises DeviceNotActive: for one that is pending or revoked"""
    if device.state != Device.State.ACTIVE:
        raise DeviceNotActive(f"{device.name} is {device.state}.", device=device.pk, state=device.state)


@transaction.atomic
def issue_approval(*, approval: Approval, run_sheet_sha256: str | None, by: Actor, at: datetime) -> Approval:
    """
    Consent to one run of the frozen run sheet with this digest: freeze it, and sign the token.

    :raises Forbidden: for a program, an operator, an old sign-in, one's own request where that is forbidden
    :raises DigestMissing: when the person does not say which sheet they saw
    :raises WrongState: unless it is requested and its time is not up
    :raises Conflict: when device, contract or lineage have changed since it was asked for
    :raises SheetChanged: with the digest of the sheet as it is
    """
    may_consent(approval, by=by, at=at)
    if run_sheet_sha256 is None:
        raise DigestMissing("Send the run_sheet_sha256 of the sheet that you read.")
    campaigns.locked(
        approval.checkpoint.campaign
    )  # a verdict that ends the lineage comes before this or after
    approval = approvals.locked(approval)
    approvals.move(approval, State.ISSUED, at=at)
    contract = check_device_takes(device=approval.device, checkpoint=approval.checkpoint)
    lineage.check_goes_on(approval.checkpoint)
    approval.is_self_approved = _is_own(approval, by=by)
    frozen = _freeze(approval, seen=run_sheet_sha256, at=at)
    approval.issued_at, approval.issued_by = at, by.user
    approval.expires_at = at + settings.TOKEN_FOR
    approval.document, approval.document_sha256 = frozen.document, frozen.sha256
    approval.token = tokens.signed_token(
        approval, frozen=frozen, contract=contract, by=by, at=at, until=approval.expires_at
    )
    approval.save(update_fields=_ISSUED)
    approvals.record(
        "issued",
        approval,
        by=by,
        at=at,
        sentence=f"{by.label} consented to {approvals.run(approval)}{_asked_by_themselves(approval, by=by)}.",
        run_sheet_sha256=frozen.sha256,
        onnx_sha256=approval.onnx_sha256,
        is_self_approved=approval.is_self_approved,
    )
    return approval


def may_consent(approval: Approval, *, by: Actor, at: datetime) -> None:
    """
    Let a person decide who speaks for the device's owner and has signed in lately.

    :raises PersonsOnly: for a program
    :raises RoleForbidden: for an operator
    :raises RecentSignInNeeded: for an old session
    """
    may_decide(by, approval.device.owner)
    signed_in_recently(by, at=at)


_ISSUED = [
    "state",
    "issued_at",
    "issued_by",
    "is_self_approved",
    "expires_at",
    "document",
    "document_sha256",
    "token",
]


def _hold(device: Device) -> None:
    """Against who revokes it: a request is filed before that, and ended by it, or refused after it."""
    Device.objects.select_for_update(no_key=True).get(pk=device.pk)


def _insert(approval: Approval) -> None:
    try:
        with transaction.atomic():
            approval.save(force_insert=True)
    except IntegrityError:
        same = Approval.objects.of(approval.subject_kind, approval.subject_id)
        there = same.filter(state__in=Approval.OPEN).first()
        if there is None:
            raise
        raise AskedAlready(f"{there.pk} is {there.state}.", approval=there.pk, state=there.state) from None


def _freeze(approval: Approval, *, seen: str, at: datetime) -> Frozen:
    frozen = subjects.of(approval).freeze(approval, at=at)
    if frozen.sha256 != seen:
        raise SheetChanged(
            "Read the run sheet again; consent to this digest if you still agree.",
            run_sheet_sha256=frozen.sha256,
        )
    return frozen


def _is_own(approval: Approval, *, by: Actor) -> bool:
    """Say whether a person consents to what they asked for; what their API key asked for counts as theirs."""
    is_own = by.user is not None and approval.requested_by_user_id == by.user.pk
    if is_own and not approval.device.owner.self_approval_allowed:
        raise SelfApprovalForbidden(f"Another person who speaks for {approval.device.owner.name} has to.")
    return is_own


def _person_behind(by: Actor) -> User | None:
    return by.key.created_by if by.key is not None else by.user


def _asked_by_themselves(approval: Approval, *, by: Actor) -> str:
    if not approval.is_self_approved:
        return ""
    if approval.requested_by == by.label:
        return ", which they asked for themselves"
    return f", which their {approval.requested_by} asked for"
