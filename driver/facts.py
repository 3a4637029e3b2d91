"""What this box says about itself."""

import shutil
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from driver.box import Box
from driver.journal import State
from driver.wire import moments


def boot_id() -> str:
    """Changes with every start of the machine, so that a power cut can be told from a killed daemon."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"


def driver_version() -> str:
    try:
        return version("robot-trial-hub")
    except PackageNotFoundError:
        return "unknown"


def free_bytes(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def of_run(
    state: State, *, go_by: str | None, now: datetime, said: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The fingerprint that start and stop events carry. What the box cannot know is null."""
    said = said or {}
    volts = said.get("battery_v")
    return {
        "boot_id": boot_id(),
        "battery_v": volts.get("end_v") if isinstance(volts, dict) else volts,
        "motor_temps_c": said.get("motor_temps_c"),
        "ambient_c": None,
        "minutes_since_last_run": _minutes(state.stopped_at, now),
        "go_by": go_by,
    }


def _minutes(stopped_at: str | None, now: datetime) -> float | None:
    if stopped_at is None:
        return None
    minutes = (now - moments.read(stopped_at)).total_seconds() / 60
    return round(minutes, 2) if minutes >= 0 else None


def heartbeat(
    box: Box, state: str, *, stage: str | None = None, waiting_for_go: bool = False
) -> dict[str, Any]:
    said = {
        "version": driver_version(),
        "state": state,
        "waiting_for_go": waiting_for_go,
        "free_bytes": free_bytes(box.state_dir),
        "unsent": len(box.mail.outbox.waiting()) + len(box.journal.state.logs),
        "skew_s": round(box.clock.skew.total_seconds(), 3),
    }
    return {**said, "stage": stage} if stage else said
