"""The box's word on a trial's log: uploaded, missing or malformed, never silence. Signed once."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from driver import durable, logs, summaries
from driver.box import Box
from driver.journal import Run
from driver.logs import Found
from driver.wire import canonical, signatures, statements

log = logging.getLogger("driver")

NAME = "statement.json"


def keep_statement(box: Box, run: Run) -> None:
    """Make the statement of a stopped run, unless it was made before a crash."""
    path = box.run_folder(run.approval_id) / NAME
    if path.exists():
        return
    folder = path.parent
    sheet: dict[str, Any] = logs.read_plan(folder)["sheet"]
    found = [logs.find(folder, stage) for stage in run.stages if stage.status != "not_run"]
    state, detail = said_of(found, judged=sheet["judging"]["stage"])
    payload = statements.trial_log_payload(
        approval_id=run.approval_id,
        device_id=box.pins.device_id,
        trial_id=run.trial_id,
        state=state,
        files=[_file(each) for each in found if each.log is not None] if state == "uploaded" else [],
        summary=summaries.of_run(run, found, sheet, simulated=box.config.device.simulated),
        detail=detail or (None if state == "uploaded" else run.reason or "nothing ran"),
        at=box.clock.now(),
    )
    statements.check_trial_log(payload)
    durable.write(path, canonical.dumps(signatures.sign(payload, box.mail.key)))
    log.info("log of %s: %s %s", run.trial_id, state, detail or "")


def statement_of(folder: Path) -> bytes:
    return (folder / NAME).read_bytes()


def payload_of(folder: Path) -> dict[str, Any]:
    payload, _, _ = signatures.opened(canonical.object_of(statement_of(folder)))
    return payload


def said_of(found: Sequence[Found], *, judged: str) -> tuple[str, str | None]:
    """
    The state of a trial's log, and in words what is wrong.

    It turns on the judged stage where that ran, and on every stage where it did not; what is wrong with
    another stage is said, and does not take away what the judged one shows.
    """
    deciding = [each for each in found if each.stage.name == judged] or list(found)
    problems = "; ".join(each.problem for each in found if each.problem) or None
    if not found:
        return "missing", None
    for state in ("malformed", "missing"):
        if any(each.state == state for each in deciding):
            return state, problems
    return "uploaded", problems


def _file(found: Found) -> Mapping[str, Any]:
    return {
        "name": found.path.name,
        "stage": found.stage.name,
        "sha256": found.sha256,
        "bytes": found.size,
        "rows": found.log.rows if found.log else None,
    }
