"""Where a box may put the files of a log: presigned, bound to length and digest, counted before they come."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NotRequired, TypedDict

from django.conf import settings
from django.db import transaction

from devices.models import Approval
from driver.wire.statements import file_names_problem
from hub.core import ids
from hub.core.problems import Conflict, TooLarge, Unprocessable
from hub.storage import s3
from hub.storage import services as storage
from hub.storage.models import StoredObject
from hub.storage.s3 import Presigned
from hub.storage.services import Wanted
from trials import readings
from trials.models import LogUpload, Trial
from trials.services import locks

OPEN = (Approval.State.RUNNING, Approval.State.STOPPED)


class NoLogNow(Conflict):
    slug = "log-not-now"
    title = "A log comes after its run has started."


class LogTooLarge(TooLarge):
    slug = "log-too-large"
    title = "A file of a log has at most a stated size."


class DeclaredFile(TypedDict):
    """What a box is going to put; `sha256` and `bytes` are bound into the URL."""

    name: str
    stage: str
    bytes: int
    sha256: str
    rows: NotRequired[int | None]


@dataclass(frozen=True, kw_only=True)
class Opened:
    upload: LogUpload
    put: Presigned


def open_log_upload(*, trial: Trial, files: Sequence[DeclaredFile], at: datetime) -> list[Opened]:
    """
    Reserve room for files of a log and give a URL for each. Asking again for a file replaces what was given.

    :raises Unprocessable: for a name, or a stage that the sheet does not have
    :raises NoLogNow: before the run, or once a log is recorded
    :raises LogTooLarge: :raises OverQuota: and then nothing is reserved
    """
    _check_files(trial, files)
    uploads = _reserve(trial, files, at=at)
    return [
        Opened(
            upload=upload,
            put=s3.presign_put(upload.object.key, size=upload.bytes, sha256=upload.sha256, at=at),
        )
        for upload in uploads
    ]


def incoming(trial: Trial) -> str:
    """The prefix that presigned URLs write under; nothing is ever served from there."""
    return f"trials/{trial.pk}/log/incoming/"


def check_open(trial: Trial) -> None:
    """:raises NoLogNow: unless its run has started"""
    state = trial.approval.state if trial.approval else None
    if state not in OPEN:
        raise NoLogNow(f"The approval is {state}.", state=state)


@transaction.atomic
def _reserve(trial: Trial, files: Sequence[DeclaredFile], *, at: datetime) -> list[LogUpload]:
    trial = locks.trial(trial)  # a record that is being written now is seen or sees this
    if log := readings.log_of(trial):
        raise NoLogNow("The log of this trial is recorded, and there is only one.", log=log.pk)
    check_open(trial)
    _check_sizes(files)
    _release_earlier(trial, [file["name"] for file in files], at=at)
    attempt = ids.new_id("att")
    wanted = [
        Wanted(key=f"{incoming(trial)}{attempt}/{file['name']}", bytes=file["bytes"], sha256=file["sha256"])
        for file in files
    ]
    objects = storage.reserve(owner=trial.session.owner, wanted=wanted, at=at)
    return LogUpload.objects.bulk_create(
        LogUpload(
            trial=trial,
            attempt=attempt,
            name=file["name"],
            stage=file["stage"],
            bytes=file["bytes"],
            sha256=file["sha256"],
            object=obj,
            created_at=at,
        )
        for file, obj in zip(files, objects, strict=True)
    )


def _release_earlier(trial: Trial, names: Sequence[str], *, at: datetime) -> None:
    """A file has one open upload, however often its box starts over, so that the quota is not taken twice."""
    for upload in trial.log_uploads.filter(name__in=names, object__state=StoredObject.State.RESERVED):
        storage.release(obj=upload.object, at=at)


def _check_files(trial: Trial, files: Sequence[DeclaredFile]) -> None:
    if problem := file_names_problem([file["name"] for file in files]):
        raise Unprocessable(errors={"files": [problem]})
    stages = stage_names(trial)
    strange = {
        f"files.{at}.stage": [f"The run sheet has no stage {file['stage']!r}."]
        for at, file in enumerate(files)
        if file["stage"] not in stages
    }
    if strange:
        raise Unprocessable(errors=strange)


def _check_sizes(files: Sequence[DeclaredFile]) -> None:
    for file in files:
        if file["bytes"] > settings.LOG_BYTES:
            raise LogTooLarge(
                f"{file['name']} has {file['bytes']} bytes; at most {settings.LOG_BYTES} are taken.",
                name=file["name"],
                most=settings.LOG_BYTES,
            )


def stage_names(trial: Trial) -> set[str]:
    return {stage["name"] for stage in trial.run_sheet.document["stages"]}
