"""What goes on at this box, told from what is on disk; a running daemon adds what only it knows."""

from dataclasses import asdict
from typing import Any

from driver import facts, journal, pins
from driver.config import Config
from driver.journal import Run, State, Step


def on_disk(config: Config) -> dict[str, Any]:
    """
    The state as the journal and the outbox have it.

    :raises NotEnrolled: :raises JournalUnreadable:
    """
    state_dir = config.device.state_dir
    pinned = pins.load(state_dir)
    return {
        "hub": pinned.url,
        "device_id": pinned.device_id,
        "version": facts.driver_version(),
        **of_state(journal.read(journal.path_in(state_dir))),
        "owed_events": len(list((state_dir / "outbox").glob("*.json"))),
        "refused_events": len(list((state_dir / "outbox" / "refused").glob("*.json"))),
        "free_bytes": facts.free_bytes(state_dir),
    }


def with_daemon(said: dict[str, Any], daemon: dict[str, Any] | None) -> dict[str, Any]:
    """
    Add what a running daemon says; none runs where it is None.

    While a stage runs, the journal has it as aborted, which it is if the power goes now. A daemon that lives
    makes that "running".
    """
    run = said["run"]
    if run and daemon is not None and run["step"] == Step.STAGE:
        begun = [stage for stage in run["stages"] if stage["status"] != "not_run"]
        begun[-1]["status"] = "running"
    return {**said, "daemon": daemon}


def of_state(state: State) -> dict[str, Any]:
    return {
        "attention": state.attention,
        "run": _of_run(state.run) if state.run else None,
        "owed_logs": [{key: str(value) for key, value in asdict(log).items()} for log in state.logs],
        "last_run_stopped_at": state.stopped_at,
        "seq": state.seq,
    }


def _of_run(run: Run) -> dict[str, Any]:
    return {
        "trial_id": run.trial_id,
        "approval_id": run.approval_id,
        "step": str(run.step),
        "stages": [{"name": each.name, "status": each.status, "reason": each.reason} for each in run.stages],
    }


def in_words(said: dict[str, Any]) -> list[str]:
    daemon = said.get("daemon")
    lines = [
        f"device     {said['device_id']} at {said['hub']}",
        f"daemon     {_daemon(daemon)}",
        f"run        {_run(said['run'])}",
        f"owed       {said['owed_events']} events, {len(said['owed_logs'])} logs",
    ]
    if daemon and daemon["waiting"]:
        waiting = daemon["waiting"]
        lines.append(f"waiting    {waiting['stage']} of {waiting['trial_id']}: `trial-driver go`")
    if said["attention"]:
        lines.append(f"ATTENTION  {said['attention']}")
        lines.append("           no run starts; when you have looked: `trial-driver doctor --reconciled`")
    return lines


def _daemon(daemon: dict[str, Any] | None) -> str:
    if daemon is None:
        return "not running"
    heard = daemon["hub_heard_s_ago"]
    link = "has not heard the hub" if heard is None else f"heard the hub {heard:.0f} s ago"
    return f"{daemon['state']}, {link}, clock {daemon['skew_s']:+.1f} s from the hub's"


def _run(run: dict[str, Any] | None) -> str:
    if run is None:
        return "none"
    stages = ", ".join(f"{stage['name']} {stage['status']}" for stage in run["stages"])
    return f"{run['trial_id']}: {run['step']} ({stages})"
