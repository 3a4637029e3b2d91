"""A recorded log as channels for a plot, read from storage when it is asked for."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driver.wire.canonical import sha256_hex
from hub.core.problems import Conflict, Unprocessable
from hub.storage import s3
from trials import readings, series
from trials.models import Trial, TrialLog, TrialLogFile
from trials.services.log_checks import Unreadable, read_logs


class NoLogYet(Conflict):
    slug = "no-log-yet"
    title = "No log of this trial is recorded."


class NotReadable(Conflict):
    slug = "log-not-readable"
    title = "The log of this trial shows nothing that could be drawn."


@dataclass(frozen=True)
class _Fetched:
    said: Mapping[str, Any]
    path: Path


def readable_log(trial: Trial) -> TrialLog:
    """
    The trial's log, when there is one with files.

    :raises NoLogYet: while none is recorded
    :raises NotReadable: for a log that is missing or malformed
    """
    log = readings.log_of(trial)
    if log is None:
        raise NoLogYet("Ask again when it is.", state="awaiting")
    if log.state != TrialLog.State.UPLOADED:
        raise NotReadable(f"It is {log.state}: {log.detail}", state=log.state)
    return log


def digest_of(log: TrialLog) -> str:
    """The recorded bytes in one name: they never change, and so neither does what is read out of them."""
    return sha256_hex(" ".join(file.sha256 for file in _files(log)).encode())


def read_series(
    log: TrialLog,
    *,
    channels: str = ",".join(series.DEFAULT_CHANNELS),
    buckets: int = series.DEFAULT_BUCKETS,
    t0: float | None = None,
    t1: float | None = None,
) -> dict[str, Any]:
    """
    The channels between t0 and t1, and the names of all that there are.

    :raises Unprocessable: for a channel that the log does not have, or a window that makes no sense
    :raises NotReadable: for files that the hub cannot read
    """
    parts = _parts(log)
    try:
        found = series.series(parts, channels=channels.split(","), buckets=buckets, t0=t0, t1=t1)
    except series.SeriesRefused as why:
        raise Unprocessable(errors={why.field: [str(why)]}) from why
    return {**found, "known": series.channels_of(parts)}


def _parts(log: TrialLog) -> list[series.StagePart]:
    with ExitStack() as stack:
        fetched = [stack.enter_context(_fetched(file)) for file in _files(log)]
        try:
            logs = read_logs(fetched)
        except Unreadable as why:
            raise NotReadable(str(why)) from why
    stages = (log.summary or {}).get("stages", ())
    return [
        series.StagePart(stage["name"], logs[stage["name"]], stage["t0_s"])
        for stage in stages
        if stage["name"] in logs
    ]


def _files(log: TrialLog) -> list[TrialLogFile]:
    return list(log.files.select_related("object").order_by("number"))


@contextmanager
def _fetched(file: TrialLogFile) -> Iterator[_Fetched]:
    with s3.temporary(file.object.key, cap=file.bytes) as (path, _):
        yield _Fetched({"name": file.name, "stage": file.stage, "rows": file.rows}, path)
