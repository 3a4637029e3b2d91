"""Consent requests for the trials of a session (C4-07, C4-09). A request is never an approval."""

from datetime import datetime

from django.db import transaction

from devices.models import Device
from devices.services import consent
from devices.services.consent import ContractNotAccepted
from hub.accounts.actors import Actor
from hub.audit import services as audit
from hub.core.problems import Conflict
from trials import readings
from trials.models import SUBJECT_KIND, Trial, TrialSession
from trials.rules import status
from trials.services import locks


class SessionCancelled(Conflict):
    slug = "session-cancelled"
    title = "The session was called off."


class OnAnotherDevice(Conflict):
    slug = "session-on-another-device"
    title = "The session is planned on another device."


@transaction.atomic
def file_approvals(*, session: TrialSession, device: Device, by: Actor, at: datetime) -> TrialSession:
    """
    Name the session's device and ask for consent to each trial that has no request.

    A trial whose last approval ended without a start is asked for again, unless a later one has started.
    Repeating it changes nothing.

    :raises SessionCancelled: nothing is filed after that
    :raises OnAnotherDevice: a session stays on its device
    :raises DeviceNotActive:
    :raises ContractNotAccepted: naming the first trial in the way; then nothing is filed
    """
    session = locks.session(session)
    _check(session, device)
    device = locks.device(device)
    locks.hold_approvals(session)
    wanted = _without_request(session, at=at)
    for trial in wanted:
        _check_takes(device, trial)
    if session.device_id is None:
        _name_device(session, device, by=by, at=at)
    for trial in wanted:
        _request(trial, session, device, by=by, at=at)
    return session


def _check(session: TrialSession, device: Device) -> None:
    if session.is_cancelled:
        raise SessionCancelled("Nothing is filed for it any more; plan another.")
    if session.device_id not in (None, device.pk):
        raise OnAnotherDevice(
            f"It is planned on {session.device}; plan another session for {device}.", device=session.device_id
        )


def _check_takes(device: Device, trial: Trial) -> None:
    try:
        consent.check_device_takes(device=device, checkpoint=trial.checkpoint)
    except ContractNotAccepted as why:
        raise ContractNotAccepted(
            f"{str(trial).capitalize()} cannot run on it: {why.detail}",
            **{**why.members, "trial": trial.pk, "position": trial.position},  # type: ignore[arg-type]
        ) from why


def _without_request(session: TrialSession, *, at: datetime) -> list[Trial]:
    trials = list(readings.in_order(session.trials.all()))
    standings = readings.standings_of(session, trials, at=at)
    return [
        trial for trial, standing in zip(trials, standings, strict=True) if status.needs_request(standing)
    ]


def _name_device(session: TrialSession, device: Device, *, by: Actor, at: datetime) -> None:
    session.device = device
    session.save(update_fields=["device"])
    audit.record(
        "session.device",
        by=by,
        account_id=session.owner_id,
        target=session,
        at=at,
        sentence=f"{by.label} put {session} on {device}.",
        device=device.pk,
    )


def _request(trial: Trial, session: TrialSession, device: Device, *, by: Actor, at: datetime) -> None:
    trial.approval = consent.request_approval(
        device=device,
        subject_kind=SUBJECT_KIND,
        subject_id=trial.pk,
        checkpoint=trial.checkpoint,
        reason=session.reason,
        by=by,
        at=at,
    )
    trial.save(update_fields=["approval"])
