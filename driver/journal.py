"""
What is going on, on disk: read before anything is done, written before anything is done.

A run's steps are named once, in `Step`. Each is on disk before the act that follows it begins, so that after
a power cut the journal says what may have happened, and never less.
"""

import json
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from driver import durable
from driver.exits import DriverError

VERSION = 1
KEEP_USED = 1000  # approvals that have started here; a token lives 12 hours


class Step(StrEnum):
    """Every durable step of a trial on this box, in order."""

    STARTING = "starting"  # the start event is signed; it may have reached the hub
    STARTED = "started"  # the hub's signed "go on" is here; nothing has moved
    STAGE = "stage"  # a stage's command may be running
    STAGE_ENDED = "stage_ended"  # nothing moves; its log is kept
    STOPPED = "stopped"  # the run is over; from here only its log is of interest
    SIGNED = "signed"  # the log's statement is signed and kept as bytes
    STORED = "stored"  # the storage has every file
    RECORDED = "recorded"  # the hub has the record


class JournalUnreadable(DriverError):
    """What is on disk is not a journal of this version."""


@dataclass(frozen=True, kw_only=True)
class StageRun:
    """One stage of a run, as far as it came."""

    name: str
    n: int
    log: str  # where the box config says that the command writes
    before: str | None = None  # what lay there before the stage
    status: str = "not_run"
    reason: str | None = None
    t0_s: float | None = None
    duration_s: float | None = None
    log_s: float | None = None  # how long its log lasts by the log's own clock
    said: dict[str, Any] | None = None  # what the command said at its stop


@dataclass(frozen=True, kw_only=True)
class Run:
    """The run that this box is in, from its signed start to its stop."""

    approval_id: str
    trial_id: str
    step: Step
    boot_id: str
    start: str  # the signed start event, byte for byte
    stages: tuple[StageRun, ...]
    go_by: str | None = None
    stopped_by: str | None = None
    reason: str | None = None

    def with_stage(self, stage: StageRun) -> "Run":
        return replace(self, stages=tuple(stage if old.n == stage.n else old for old in self.stages))


@dataclass(frozen=True, kw_only=True)
class OwedLog:
    """A signed log on its way to the hub. The statement lies in the run's folder."""

    approval_id: str
    trial_id: str
    step: Step = Step.SIGNED
    is_sent_again: bool = False
    stuck: str | None = None  # why it needs a person


@dataclass(frozen=True, kw_only=True)
class Owed:
    """A signed event that the outbox must hold, for a power cut may come between the two writes."""

    name: str
    message: str


@dataclass(frozen=True, kw_only=True)
class State:
    version: int = VERSION
    seq: int = 0
    run: Run | None = None
    logs: tuple[OwedLog, ...] = ()
    owed: tuple[Owed, ...] = ()
    used: tuple[str, ...] = ()
    refused: dict[str, str] | None = None  # approval -> the reason that the hub was told
    attention: str | None = None  # why no run may start until a person says so
    is_lost: bool = False  # an earlier journal is gone, and the hub has not been told
    may_adopt: bool = False  # a person has looked: end what the hub thinks runs here
    stopped_at: str | None = None  # when the last run stopped

    def log_of(self, approval_id: str) -> OwedLog | None:
        return next((log for log in self.logs if log.approval_id == approval_id), None)


class Journal:
    """The state and its file. Threads of the daemon change it through `change`, one after the other."""

    def __init__(self, path: Path, state: State) -> None:
        self.path, self.state = path, state
        self.lock = threading.RLock()

    @classmethod
    def create(cls, folder: Path) -> "Journal":
        """Begin a journal where none is; one that is there stays."""
        path = path_in(folder)
        if not path.exists():
            durable.write(path, _bytes(State()))
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> "Journal":
        """Read the journal. One that is absent or cannot be read means that a person must look first."""
        path = path_in(folder)
        try:
            return cls(path, read(path))
        except JournalUnreadable as error:
            aside = path.with_name(f"journal-{now():%Y%m%dT%H%M%S%f}.unreadable")
            if path.exists():
                path.rename(aside)
            state = State(attention=f"the journal was lost: {error}; see {aside.name}", is_lost=True)
            durable.write(path, _bytes(state))
            return cls(path, state)

    def change(self, **changes: Any) -> State:
        """Put the new state on disk; only then does it hold."""
        with self.lock:
            state = replace(self.state, **changes)
            durable.write(self.path, _bytes(state))
            self.state = state
            return state

    def attend(self, reason: str) -> None:
        """Start nothing more until a person has looked; the first reason is kept."""
        with self.lock:
            if self.state.attention is None:
                self.change(attention=reason)


def path_in(folder: Path) -> Path:
    return folder / "journal.json"


def read(path: Path) -> State:
    """
    Read a journal without touching it.

    :raises JournalUnreadable: also for one of a newer version
    """
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise JournalUnreadable(error.strerror or "it cannot be read") from None
    except ValueError:
        raise JournalUnreadable("it is not JSON") from None
    if not isinstance(found, dict) or found.get("version") != VERSION:
        raise JournalUnreadable("it is of another version")
    try:
        return _state(found)
    except (TypeError, ValueError, KeyError, AttributeError):
        raise JournalUnreadable("it has another shape") from None


def _bytes(state: State) -> bytes:
    return json.dumps(asdict(state), indent=1).encode()


def _state(found: dict[str, Any]) -> State:
    run = found["run"]
    state = State(
        **{
            **found,
            "run": None if run is None else _run(run),
            "logs": tuple(OwedLog(**{**log, "step": Step(log["step"])}) for log in found["logs"]),
            "owed": tuple(Owed(**owed) for owed in found["owed"]),
            "used": tuple(found["used"]),
        }
    )
    if type(state.seq) is not int or set(found) != {field.name for field in fields(State)}:
        raise ValueError("seq")
    return state


def _run(found: dict[str, Any]) -> Run:
    stages = tuple(StageRun(**stage) for stage in found["stages"])
    return Run(**{**found, "step": Step(found["step"]), "stages": stages})
