"""The files that the stages' commands wrote: found, kept, read. Each is there, missing or malformed."""

import errno
import json
import logging
import os
import shutil
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driver import durable
from driver.journal import StageRun
from driver.wire import canonical, csvlog
from driver.wire.malformed import LIMITS, Malformed

_log = logging.getLogger("driver")

MAX_BYTES = LIMITS.bytes
LOOK_AGAIN_S = 0.1


class Missing(Exception):
    """The command left no log where the box config says that it writes one."""


class Unusable(Exception):
    """It left something that is no log."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """A stage's log as far as it could be read: `log` and `digest`, or the problem and its kind."""

    stage: StageRun
    path: Path
    log: csvlog.Log | None = None
    sha256: str = ""
    size: int = 0
    state: str = "uploaded"
    problem: str | None = None


def file_name(stage: StageRun) -> str:
    return f"{stage.n:02d}-{stage.name}.csv"


def write_plan(folder: Path, **said: Mapping[str, Any]) -> None:
    """Keep what was consented to beside the logs, so that a run can be told without the hub."""
    durable.write(folder / "plan.json", json.dumps(said).encode())


def read_plan(folder: Path) -> dict[str, Any]:
    plan: dict[str, Any] = json.loads((folder / "plan.json").read_bytes())
    return plan


def check_place(path: Path) -> None:
    """:raises OSError: where a command could not write its log"""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path.parent))


def fingerprint(path: Path) -> str | None:
    """What lies there now, so that an older file is not taken for this stage's log. No clock is asked."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return f"{found.st_dev}:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}"


def keep_output(folder: Path, stage: StageRun, output: bytes) -> None:
    (folder / f"{stage.n:02d}-{stage.name}.out").write_bytes(output)


def keep(folder: Path, stage: StageRun, *, settle_s: float) -> None:
    """
    Wait until the log is whole, and keep a copy in the run's folder, where no later run writes.

    What is wrong with it is kept too, in a note beside it, so that it is found out once.
    """
    kept = folder / file_name(stage)
    try:
        _settle(Path(stage.log), stage.before, settle_s)
        _copy(Path(stage.log), kept)
    except Missing as error:
        _note(folder, stage, "missing", str(error))
    except Unusable as error:
        _note(folder, stage, "malformed", str(error))
    except OSError as error:
        # A full disk must not keep the daemon from ending the run; without a copy the log is missing.
        _log.error("the log of stage %s cannot be kept: %s", stage.name, error)


def find(folder: Path, stage: StageRun) -> Found:
    """What was kept of a stage's log."""
    path = folder / file_name(stage)
    note = _note_path(folder, stage)
    if note.exists():
        said = json.loads(note.read_bytes())
        return Found(stage=stage, path=path, state=said["state"], problem=said["problem"])
    try:
        raw = path.read_bytes()
        log = csvlog.read(raw)
    except Malformed as error:
        return Found(stage=stage, path=path, state="malformed", problem=f"{path.name}: {error}")
    except OSError as error:
        return Found(stage=stage, path=path, state="missing", problem=f"{path.name}: {error.strerror}")
    return Found(stage=stage, path=path, log=log, sha256=canonical.sha256_hex(raw), size=len(raw))


def sha256(path: Path) -> str:
    return canonical.sha256_hex(path.read_bytes())


def span_s(log: csvlog.Log) -> float:
    """How long the log lasts by its own clock."""
    times = log.array("t")
    return round(float(times[-1] - times[0]), 6)


def _settle(path: Path, before: str | None, settle_s: float) -> None:
    until = time.monotonic() + settle_s
    last = None
    while True:
        found = fingerprint(path)
        if found is not None and found != before and found == last:
            return
        if time.monotonic() > until:
            raise _not_settled(path, found, before)
        last = found
        time.sleep(LOOK_AGAIN_S)


def _not_settled(path: Path, found: str | None, before: str | None) -> Exception:
    if found is None:
        return Missing(f"the command wrote no log at {path}")
    if found == before:
        return Missing(f"the log at {path} is older than the stage")
    return Unusable(f"the log at {path} still grows")


def _copy(source: Path, kept: Path) -> None:
    try:
        handle = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise Unusable(f"the log at {source} cannot be opened: {error.strerror}") from None
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        os.close(handle)
        raise Unusable(f"the log at {source} is not a regular file")
    with os.fdopen(handle, "rb") as file:
        if found.st_size > MAX_BYTES:
            raise Unusable(f"the log at {source} has more than {MAX_BYTES} bytes")
        if source != kept:
            _copy_bytes(file, kept)
    with kept.open("rb") as file:
        os.fsync(file.fileno())


def _copy_bytes(file: Any, kept: Path) -> None:
    draft = kept.with_name(kept.name + ".part")
    with draft.open("wb") as copy:
        shutil.copyfileobj(file, copy)
        copy.flush()
        os.fsync(copy.fileno())
    draft.rename(kept)


def _note_path(folder: Path, stage: StageRun) -> Path:
    return folder / f"{file_name(stage)}.problem.json"


def _note(folder: Path, stage: StageRun, state: str, problem: str) -> None:
    durable.write(_note_path(folder, stage), json.dumps({"state": state, "problem": problem}).encode())
