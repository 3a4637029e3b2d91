"""The hub's own numbers beside the driver's: from the recorded bytes, by the reader and formulas of both."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from driver.wire import csvlog, moments
from driver.wire.csvlog import Log, Malformed
from driver.wire.summary import Judging, StageLog, compare, rederive


class Kept(Protocol):
    """A recorded file, and what the box said of it."""

    @property
    def said(self) -> Mapping[str, Any]: ...
    @property
    def path(self) -> Path: ...


class Unreadable(ValueError):
    """Why the hub cannot read a recorded file as a version 1 log."""


def hub_check(
    sheet: Mapping[str, Any], payload: Mapping[str, Any], files: Sequence[Kept], *, at: datetime
) -> dict[str, Any]:
    """Say whether the numbers agree. It refuses nothing: what cannot be checked says why."""
    said: dict[str, Any] = {"state": "unchecked", "checked_at": moments.write(at), "differences": []}
    if payload["state"] != "uploaded":
        return {**said, "reason": f"the log is {payload['state']}"}
    try:
        logs = read_logs(files)
    except Unreadable as why:
        return {**said, "reason": str(why)}
    numbers = rederive(_stages(sheet, payload["summary"], logs), Judging.of_sheet(sheet))
    found = compare(payload["summary"], numbers)
    differences = [*found["differences"], *_other_rows(files, logs)]
    return {**said, "state": "differs" if differences else "agrees", "differences": differences}


def read_logs(files: Iterable[Kept]) -> dict[str, Log]:
    """
    The version 1 log of each stage; a file whose rows nobody counted is something else beside one.

    :raises Unreadable: for one that is no version 1 log, and for two of one stage
    """
    logs: dict[str, Log] = {}
    for file in files:
        name, stage = file.said["name"], file.said["stage"]
        if file.said["rows"] is None:
            continue
        if stage in logs:
            raise Unreadable(f"{name} is a second log of stage {stage}")
        try:
            logs[stage] = csvlog.read(file.path)
        except Malformed as why:
            raise Unreadable(f"{name}: {why}") from why
    return logs


def _stages(sheet: Mapping[str, Any], summary: Mapping[str, Any], logs: Mapping[str, Log]) -> list[StageLog]:
    free = {stage["name"]: stage["free_standing"] for stage in sheet["stages"]}
    return [
        StageLog(
            name=stage["name"],
            log=logs.get(stage["name"]),
            free_standing=free[stage["name"]],
            status=stage["status"],
            reason=stage["reason"],
            duration_s=stage["duration_s"],
            t0_s=stage["t0_s"],
        )
        for stage in summary["stages"]
    ]


def _other_rows(files: Iterable[Kept], logs: Mapping[str, Log]) -> list[dict[str, Any]]:
    return [
        {"key": f"rows.{file.said['name']}", "driver": file.said["rows"], "hub": found}
        for file in files
        if file.said["rows"] is not None and (found := logs[file.said["stage"]].rows) != file.said["rows"]
    ]
