"""
The driver's signed word on a run, taken once and kept as the bytes that were signed.

What is verified and kept are copies on keys that no presigned URL can write. They are taken, hashed and read
before the transaction; that only decides who was first.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import transaction

from devices import statements
from devices.models import Approval
from devices.statements import NotBound, Statement
from driver.wire import moments
from driver.wire import statements as wire
from driver.wire.canonical import JSON
from hub.accounts.actors import Actor
from hub.audit import services as audit
from hub.core import ids
from hub.core.problems import Conflict, Unprocessable
from hub.jobs import services as jobs
from hub.storage import s3
from hub.storage import services as storage
from hub.storage.models import StoredObject
from hub.storage.services import NotReserved
from trials import readings
from trials.models import LogUpload, Trial, TrialLog, TrialLogFile
from trials.services import locks, log_checks, log_uploads

COPIES_ARE_ORPHANS_AFTER = timedelta(hours=1)


class AlreadyRecorded(Conflict):
    """`same` says whether the record holds the very statement that was sent now."""

    slug = "log-already-recorded"
    title = "The log of this trial is recorded."


class BytesDiffer(Unprocessable):
    slug = "log-bytes-differ"
    title = "A stored file is not the one that was signed."


@dataclass(frozen=True, kw_only=True)
class Copy:
    """The hub's own copy of one file: where it is, and what the box said of it."""

    said: dict[str, Any]
    upload: LogUpload
    key: str
    path: Path


def record_log(*, trial: Trial, envelope: JSON, by: Actor, at: datetime) -> TrialLog:
    """
    Record a log: the statement, the files under its digests, and the hub's own numbers beside the driver's.

    :raises StatementInvalid: :raises WrongSignature: :raises NotBound: in this order
    :raises AlreadyRecorded: with the record, and whether it is the same
    :raises NoLogNow: before the run has started
    :raises BytesDiffer: :raises ObjectMissing: for a stored file that is not what was signed
    """
    said = _signed(trial, envelope)
    _check_bound(said, trial)
    _check_once(trial, said)
    log_uploads.check_open(trial)
    uploads = _uploads_of(trial, said)
    pk = ids.new_id("log")
    with _copied(trial, pk, uploads, said, at=at) as copies:
        checked = log_checks.hub_check(trial.run_sheet.document, said.payload, copies, at=at)
    return _write(trial, pk, said, copies, checked, by=by, at=at)


def _signed(trial: Trial, envelope: JSON) -> Statement:
    """Against the key that the device had when the run started; before a start, against today's."""
    statements.shaped(envelope, wire.check_trial_log)
    approval = _approval_of(trial)
    key = approval.started_with or statements.active_key(approval.device)
    return statements.signed(envelope, by=[statements.public_bytes(key)])  # type: ignore[arg-type]


def _approval_of(trial: Trial) -> Approval:
    if trial.approval is None:
        raise LookupError("a device sees only trials with an approval of its own")
    return trial.approval


def _check_bound(said: Statement, trial: Trial) -> None:
    approval = _approval_of(trial)
    statements.check_device(said, approval.device)
    errors = {}
    if said.payload["approval_id"] != approval.pk:
        errors["payload.approval_id"] = [f"The trial's approval is {approval.pk}."]
    if said.payload["trial_id"] != trial.pk:
        errors["payload.trial_id"] = ["The path names another trial."]
    if summary := said.payload["summary"]:
        errors |= _summary_faults(summary, trial)
    if errors:
        raise NotBound(errors=errors)


def _summary_faults(summary: dict[str, Any], trial: Trial) -> dict[str, list[str]]:
    """What a summary says of stages has to fit the sheet that was approved."""
    sheet = trial.run_sheet.document
    errors = {}
    if summary["judged_stage"] != sheet["judging"]["stage"]:
        errors["payload.summary.judged_stage"] = [f"The sheet judges {sheet['judging']['stage']}."]
    ran = [stage["name"] for stage in summary["stages"]]
    planned = [stage["name"] for stage in sheet["stages"]]
    if ran != [name for name in planned if name in ran]:
        errors["payload.summary.stages"] = [f"The sheet's stages are {', '.join(planned)}, in this order."]
    return errors


def _check_once(trial: Trial, said: Statement) -> None:
    log = readings.log_of(trial)
    if log is None:
        return
    is_same = bytes(log.statement) == said.raw
    raise AlreadyRecorded(
        f"It is {log.state}, {'from this very statement' if is_same else 'from another statement'}.",
        same=is_same,
        record=_record_of(log),
    )


def _record_of(log: TrialLog) -> dict[str, Any]:
    """Enough of a record for a box to see whether it is its own."""
    files = log.files.order_by("number").values("name", "stage", "sha256", "bytes", "rows")
    return {
        "id": log.pk,
        "trial": log.trial_id,
        "state": log.state,
        "recorded_at": moments.write(log.recorded_at),
        "files": list(files),
    }


def _uploads_of(trial: Trial, said: Statement) -> list[LogUpload]:
    """
    For each signed file the upload that its URL was given for.

    :raises NotBound: for a file that no URL was given for, or with other bytes
    :raises NotReserved: when its reservation has run out
    """
    given = trial.log_uploads.select_related("object").order_by("pk")
    newest = {(upload.name, upload.stage, upload.bytes, upload.sha256): upload for upload in given}
    uploads, errors = [], {}
    for at, file in enumerate(said.payload["files"]):
        upload = newest.get((file["name"], file["stage"], file["bytes"], file["sha256"]))
        if upload is None:
            errors[f"payload.files.{at}"] = [
                "No upload was asked for with this name, stage, size and sha256."
            ]
        else:
            uploads.append(upload)
    if errors:
        raise NotBound(errors=errors)
    for upload in uploads:
        if upload.object.state != StoredObject.State.RESERVED:
            raise NotReserved(f"The upload of {upload.name} ran out; ask for a new one.", name=upload.name)
    return uploads


@contextmanager
def _copied(
    trial: Trial, pk: str, uploads: Sequence[LogUpload], said: Statement, *, at: datetime
) -> Iterator[list[Copy]]:
    """Have the hub's own copies of the files, each hashed from the copy and on disk for a while."""
    keys = [f"trials/{trial.pk}/log/{pk}/{upload.name}" for upload in uploads]
    _drop_later(pk, keys, at=at)
    with ExitStack() as stack:
        yield [
            stack.enter_context(_copy(upload, file, key))
            for upload, file, key in zip(uploads, said.payload["files"], keys, strict=True)
        ]


@contextmanager
def _copy(upload: LogUpload, file: dict[str, Any], key: str) -> Iterator[Copy]:
    try:
        s3.copy(upload.object.key, key)
    except s3.ObjectMissing as why:
        raise s3.ObjectMissing(
            f"{upload.name} is not in storage: upload it first.", name=upload.name
        ) from why
    try:
        with s3.temporary(key, cap=file["bytes"]) as (path, found):
            if found != s3.Digest(file["sha256"], file["bytes"]):
                said = f"{found.bytes} bytes with sha256 {found.sha256} are stored."
                raise BytesDiffer(f"{upload.name}: {said}", name=upload.name)
            yield Copy(said=file, upload=upload, key=key, path=path)
    except s3.ObjectTooLarge as why:
        raise BytesDiffer(
            f"{upload.name}: more bytes are stored than were signed.", name=upload.name
        ) from why


@transaction.atomic
def _drop_later(pk: str, keys: Sequence[str], *, at: datetime) -> None:
    """Have the copies deleted unless a log of this id holds them by then, whatever happens meanwhile."""
    if keys:
        args = {"log_id": pk, "keys": list(keys)}
        jobs.enqueue("trials.drop_copies", args=args, run_after=at + COPIES_ARE_ORPHANS_AFTER, at=at)


@transaction.atomic
def _write(
    trial: Trial,
    pk: str,
    said: Statement,
    copies: Sequence[Copy],
    checked: dict[str, Any],
    *,
    by: Actor,
    at: datetime,
) -> TrialLog:
    trial = locks.trial(trial)
    _check_once(trial, said)  # two records may race; the lock says who was first
    log = TrialLog.objects.create(
        pk=pk,
        trial=trial,
        approval=_approval_of(trial),
        state=said.payload["state"],
        statement=said.raw,
        signature=said.signature,
        kid=said.kid,
        summary=said.payload["summary"],
        detail=said.payload["detail"] or "",
        hub_check=checked,
        recorded_at=at,
    )
    TrialLogFile.objects.bulk_create(_kept(log, number, copy, at=at) for number, copy in enumerate(copies, 1))
    storage.release_under(prefix=log_uploads.incoming(trial), at=at)
    _record(log, trial, by=by, at=at)
    return log


def _kept(log: TrialLog, number: int, copy: Copy, *, at: datetime) -> TrialLogFile:
    return TrialLogFile(
        log=log,
        number=number,
        name=copy.said["name"],
        stage=copy.said["stage"],
        sha256=copy.said["sha256"],
        bytes=copy.said["bytes"],
        rows=copy.said["rows"],
        object=storage.complete(obj=copy.upload.object, at=at, key=copy.key),
    )


_FOUND = {
    "agrees": "the hub finds the same numbers",
    "differs": "the hub finds other numbers",
    "unchecked": "the hub did not check the numbers",
}


def _record(log: TrialLog, trial: Trial, *, by: Actor, at: datetime) -> None:
    said = f"{log.files.count()} files, and {_FOUND[log.hub_check['state']]}"
    if log.state != TrialLog.State.UPLOADED:
        said = f"{log.state}, {log.detail}"
    audit.record(
        "trial.log",
        by=by,
        account_id=trial.session.owner_id,
        target=trial,
        at=at,
        sentence=f"The device {log.approval.device.name} reported the log of {log.approval.about}: {said}.",
        log=log.pk,
        state=log.state,
    )
