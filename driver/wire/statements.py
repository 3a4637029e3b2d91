"""What a device signs, and what the hub answers under its own signature: built here, checked here."""

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from driver.wire import base64url, moments, shape
from driver.wire.canonical import JSON
from driver.wire.shape import Check
from driver.wire.summary_shape import SUMMARY
from driver.wire.vocabulary import EVENT_KINDS, LOG_STATES, STAGE_STATUS

MAX_FILES = 40
MAX_FILE_BYTES = 256 * 2**20
MAX_NAME = 80
# Version 1 logs, and what a robot-side command wrote beside them.
LOG_EXTENSIONS = ("csv", "txt", "log", "json", "npz", "mcap", "bin")

_FILE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", re.ASCII)


class BadStatement(ValueError):
    """A statement of another shape than wire.md gives it; `errors` by path."""

    def __init__(self, errors: shape.Errors) -> None:
        super().__init__("; ".join(f"{path}: {', '.join(said)}" for path, said in errors.items()))
        self.errors = errors


def file_name_problem(name: str, *, extensions: Collection[str] = LOG_EXTENSIONS) -> str | None:
    """What is wrong about a file's name, or nothing."""
    if not 1 <= len(name) <= MAX_NAME:
        return f"a file name has 1 to {MAX_NAME} characters"
    if not _FILE_NAME.fullmatch(name):
        return "a file name has letters, digits, dot, dash and underscore, and no dot first"
    stem, _, extension = name.rpartition(".")
    if not stem or extension.lower() not in extensions:
        return f"a file name ends in one of .{', .'.join(extensions)}"
    return None


def file_names_problem(names: Sequence[str], *, extensions: Collection[str] = LOG_EXTENSIONS) -> str | None:
    """What is wrong about the names of files that lie side by side, or nothing."""
    for name in names:
        if problem := file_name_problem(name, extensions=extensions):
            return f"{name[:MAX_NAME]!r}: {problem}"
    if len({name.lower() for name in names}) < len(names):
        return "two file names are equal, or differ only in their case"
    return None


def trial_log_payload(
    *,
    approval_id: str,
    device_id: str,
    trial_id: str,
    state: str,
    files: Sequence[Mapping[str, Any]],
    summary: Mapping[str, Any] | None,
    detail: str | None,
    at: datetime,
) -> dict[str, Any]:
    """The word of a device on a trial's log. Made once and kept as bytes: its `ts` is never made again."""
    return {
        "approval_id": approval_id,
        "device_id": device_id,
        "trial_id": trial_id,
        "kind": "trial_log",
        "state": state,
        "files": [dict(file) for file in files],
        "summary": None if summary is None else dict(summary),
        "detail": detail,
        "ts": moments.write(at),
    }


def device_event_payload(
    *,
    approval_id: str | None,
    device_id: str,
    trial_id: str | None,
    kind: str,
    seq: int,
    data: Mapping[str, Any],
    at: datetime,
) -> dict[str, Any]:
    return {
        "approval_id": approval_id,
        "device_id": device_id,
        "trial_id": trial_id,
        "kind": kind,
        "seq": seq,
        "data": dict(data),
        "ts": moments.write(at),
    }


def enrol_payload(*, code: str, public_key: bytes, at: datetime) -> dict[str, Any]:
    """What a new device signs with the key that it registers: proof that it has the private half."""
    return {
        "kind": "enrol",
        "code": code,
        "public_key": base64url.encode(public_key),
        "ts": moments.write(at),
    }


def go_on_payload(*, approval_id: str, go_on: bool, reason: str | None, at: datetime) -> dict[str, Any]:
    """What the hub signs when a device asks whether it may start, or go on."""
    return {"approval_id": approval_id, "go_on": go_on, "reason": reason, "at": moments.write(at)}


def check_trial_log(payload: JSON) -> None:
    """:raises BadStatement: for anything but the statement of a trial's log"""
    _check(payload, _trial_log)


def check_device_event(payload: JSON) -> None:
    """:raises BadStatement: for anything but an event with the data of its kind"""
    _check(payload, _device_event)


def check_enrol(payload: JSON) -> None:
    """:raises BadStatement: for anything but an enrolment; whether the key is usable is asked elsewhere"""
    _check(payload, _ENROL)


def check_go_on(payload: JSON) -> None:
    """:raises BadStatement: for anything but the hub's answer to "may I?" """
    _check(payload, _GO_ON)


def _check(payload: JSON, check: Check) -> None:
    if errors := shape.errors_in(payload, check):
        raise BadStatement(errors)


_TEXT = shape.text(most=2000)
_NUMBER = shape.or_null(shape.number())
_APPROVAL = shape.identifier("apr")
_TRIAL = shape.identifier("trl")


def _file_name(value: JSON, path: str, errors: shape.Errors) -> None:
    if not isinstance(value, str):
        shape.add(errors, path, "must be text")
    elif problem := file_name_problem(value):
        shape.add(errors, path, problem)


def _public_key(value: JSON, path: str, errors: shape.Errors) -> None:
    try:
        known = isinstance(value, str) and len(base64url.decode(value)) == 32
    except base64url.BadEncoding:
        known = False
    if not known:
        shape.add(errors, path, "must be 32 bytes in base64url")


_FILE = shape.record(
    {
        "name": _file_name,
        "stage": shape.stage_name,
        "sha256": shape.digest,
        "bytes": shape.integer(least=0, most=MAX_FILE_BYTES),
        "rows": shape.or_null(shape.integer(least=0)),  # null: a file that is no version 1 log
    }
)

_TRIAL_LOG = shape.record(
    {
        "approval_id": _APPROVAL,
        "device_id": shape.identifier("dev"),
        "trial_id": _TRIAL,
        "kind": shape.one_of("trial_log"),
        "state": shape.one_of(*LOG_STATES),
        "files": shape.list_of(_FILE, most=MAX_FILES),
        "summary": shape.or_null(SUMMARY),
        "detail": shape.or_null(_TEXT),
        "ts": shape.moment,
    }
)


def _trial_log(value: JSON, path: str, errors: shape.Errors) -> None:
    _TRIAL_LOG(value, path, errors)
    if errors or not isinstance(value, dict):
        return
    if value["state"] == "uploaded":
        _uploaded(value, errors)
    else:
        _not_uploaded(value, errors)


def _uploaded(value: dict[str, Any], errors: shape.Errors) -> None:
    if not value["files"]:
        shape.add(errors, "files", "an uploaded log has a file")
    if value["summary"] is None:
        shape.add(errors, "summary", "an uploaded log has a summary")
    if problem := file_names_problem([file["name"] for file in value["files"]]):
        shape.add(errors, "files", problem)


def _not_uploaded(value: dict[str, Any], errors: shape.Errors) -> None:
    if not value["detail"]:
        shape.add(errors, "detail", f"a {value['state']} log says why")
    if value["files"] and value["state"] == "missing":
        shape.add(errors, "files", "a missing log has no files")


_RUN = shape.record(
    {
        "boot_id": shape.text(least=1, most=80),
        "battery_v": _NUMBER,
        "motor_temps_c": shape.or_null(shape.table(key=shape.joint, value=_NUMBER, most=256)),
        "ambient_c": _NUMBER,
        "minutes_since_last_run": shape.or_null(shape.number(least=0)),
        "go_by": shape.or_null(shape.text(most=80)),
    }
)
_STAGE = shape.record(
    {"stage": shape.stage_name, "at_s": shape.or_null(shape.number(least=0))},
    {"status": shape.or_null(shape.one_of(*STAGE_STATUS)), "reason": shape.or_null(_TEXT)},
)
_HEARTBEAT = shape.record(
    {
        "version": shape.text(least=1, most=80),
        "state": shape.text(least=1, most=80),
        "waiting_for_go": shape.flag,
        "free_bytes": shape.or_null(shape.integer(least=0)),
        "unsent": shape.integer(least=0),
        "skew_s": _NUMBER,
    },
    {"stage": shape.or_null(shape.stage_name)},
)
_DATA: dict[str, Check] = {
    "run_started": _RUN,
    "stage_started": _STAGE,
    "stage_finished": _STAGE,
    "run_stopped": _RUN,
    "refused": shape.record({"reason": shape.text(least=1, most=2000)}),
    "journal_lost": shape.record({}, {"reason": shape.or_null(_TEXT)}),
    "heartbeat": _HEARTBEAT,
}
# Kinds that are about one run, and so name its approval and its trial.
_ABOUT_A_RUN = {"run_started", "stage_started", "stage_finished", "run_stopped"}


def _any(value: JSON, path: str, errors: shape.Errors) -> None:
    """What another check looks at."""


_EVENT = shape.record(
    {
        "approval_id": shape.or_null(_APPROVAL),
        "device_id": shape.identifier("dev"),
        "trial_id": shape.or_null(_TRIAL),
        "kind": shape.one_of(*EVENT_KINDS),
        "seq": shape.integer(least=1),
        "data": _any,
        "ts": shape.moment,
    }
)


def _device_event(value: JSON, path: str, errors: shape.Errors) -> None:
    _EVENT(value, path, errors)
    if errors or not isinstance(value, dict):
        return
    kind = str(value["kind"])
    _DATA[kind](value["data"], "data", errors)
    if kind in _ABOUT_A_RUN:
        for key in ("approval_id", "trial_id"):
            if value[key] is None:
                shape.add(errors, key, f"{kind} is about one run")


_ENROL = shape.record(
    {
        "kind": shape.one_of("enrol"),
        "code": shape.text(
            most=60, pattern=r"[A-Za-z0-9_-]{20}\.[0-9a-f]{16}", means="the code that the hub showed"
        ),
        "public_key": _public_key,
        "ts": shape.moment,
    }
)

_GO_ON = shape.record(
    {
        "approval_id": _APPROVAL,
        "go_on": shape.flag,
        "reason": shape.or_null(_TEXT),
        "at": shape.moment,
    }
)
