"""Run sheets: changed while they are drafts, frozen when a person consents."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from devices.models import Approval
from devices.subjects import Frozen, OutOfOrder
from driver.wire import moments
from driver.wire.sheet import BadSheet, sheet_bytes, sheet_digest
from hub.accounts.actors import Actor
from hub.audit import services as audit
from hub.core.problems import Conflict, Unprocessable
from trials import readings
from trials.models import RunSheet, Trial
from trials.rules import drafting, status
from trials.services import locks


class RunSheetLocked(Conflict):
    slug = "run-sheet-locked"
    title = "The run sheet is what a person approved: there is no tuning on site."


@transaction.atomic
def update_run_sheet(*, trial: Trial, changes: Mapping[str, Any], by: Actor, at: datetime) -> RunSheet:
    """
    Change a draft: an absent key is unchanged, null clears. A change that changes nothing keeps the digest.

    :raises Unprocessable: naming each fault of the sheet as it would be
    :raises RunSheetLocked: once its approval is issued
    """
    sheet = locks.run_sheet(trial)  # issuing takes this lock too: whoever commits first wins
    document = _patched(sheet, changes)
    if sheet.locked_at is not None:
        raise RunSheetLocked(
            f"It was locked at {moments.write(sheet.locked_at)}, when its approval was issued. "
            "Plan another session to try other values.",
            locked_at=moments.write(sheet.locked_at),
            digest=sheet.digest,
        )
    before, sheet.digest = sheet.digest, sheet_digest(document)
    if sheet.digest == before:
        return sheet
    changed = sorted(key for key in document if document[key] != sheet.document[key])
    sheet.document, sheet.updated_at = document, at
    sheet.save(update_fields=["document", "digest", "updated_at"])
    _record_change(sheet, changed, by=by, at=at)
    return sheet


class TrialSubject:
    """A trial as what an approval is about (`devices.subjects`)."""

    def describe(self, approval: Approval) -> str:
        trial = _trial_of(approval)
        return f"{trial} of {trial.session.trials.count()} ({trial.role}), {trial.checkpoint}"

    def freeze(self, approval: Approval, at: datetime) -> Frozen:
        """Lock the sheet. One that an earlier approval locked stays as that one had it."""
        trial = _trial_of(approval)
        sheet = locks.run_sheet(trial)
        if sheet.locked_at is None:
            sheet.locked_at = at
            sheet.save(update_fields=["locked_at"])
        claims = {"session_id": trial.session_id, "trial_id": trial.pk, "position": trial.position}
        return Frozen(claims=claims, document=sheet_bytes(sheet.document))

    def check_start(self, approval: Approval, at: datetime) -> None:
        """:raises OutOfOrder: unless every earlier trial of the session has stopped or is closed"""
        trial = _trial_of(approval)
        trials = list(readings.in_order(trial.session.trials.all()))
        standings = readings.standings_of(trial.session, trials, at=at)
        first = status.blocking(standings, trial.position)
        if first is not None:
            raise OutOfOrder(
                f"Trial {first.position} of this session comes first; it is {status.status(first)}.",
                trial=first.trial,
                position=first.position,
                status=status.status(first),
            )


def _patched(sheet: RunSheet, changes: Mapping[str, Any]) -> drafting.Sheet:
    try:
        return drafting.patch_sheet(sheet.document, changes)
    except BadSheet as bad:
        raise Unprocessable("The run sheet would not fit.", errors=bad.errors) from bad


def _trial_of(approval: Approval) -> Trial:
    return Trial.objects.select_related("session", "checkpoint__run").get(pk=approval.subject_id)


def _record_change(sheet: RunSheet, changed: list[str], *, by: Actor, at: datetime) -> None:
    trial = sheet.trial
    audit.record(
        "run_sheet.changed",
        by=by,
        account_id=trial.session.owner_id,
        target=trial,
        at=at,
        sentence=f"{by.label} changed {', '.join(changed).replace('_', ' ')} in the run sheet of "
        f"{trial} of {trial.session}, {trial.checkpoint}.",
        digest=sheet.digest,
        changed=changed,
    )
