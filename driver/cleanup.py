"""Removes what the hub has had for long. What is still owed is never touched."""

import logging
import shutil
from pathlib import Path

from driver.box import Box
from driver.delivery import RECORDED

log = logging.getLogger("driver")

EVERY_S = 3600.0
A_DAY_S = 24 * 3600.0


def remove_old(box: Box) -> None:
    """Runs whose record is older than `log.keep_days`, and checkpoints not used for as long."""
    older_than = box.clock.wall().timestamp() - box.config.log.keep_days * A_DAY_S
    owed = {log.approval_id for log in box.journal.state.logs}
    for record in (box.state_dir / "runs").glob(f"*/{RECORDED}"):
        if record.parent.name not in owed and _is_older(record, older_than):
            log.info("removing the files of %s", record.parent.name)
            shutil.rmtree(record.parent, ignore_errors=True)
    for checkpoint in (box.state_dir / "checkpoints").glob("*"):
        if _is_older(checkpoint, older_than):
            checkpoint.unlink(missing_ok=True)


def _is_older(path: Path, moment: float) -> bool:
    return path.stat().st_mtime < moment
