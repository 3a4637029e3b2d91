"""What the doctor looks at, in the order in which one thing needs the other. Nothing here changes a thing."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from driver import argv, assemble, hub, journal, keys, pins
from driver.accept import MIN_FREE
from driver.answers import HubRefused
from driver.clock import Clock
from driver.config import Config
from driver.exits import DriverError
from driver.hub import Hub

SKEW_OK_S, SKEW_FAIL_S = 5.0, 30.0


@dataclass(frozen=True)
class Finding:
    """One line of the doctor: ok, warn, FAIL or skipped; `fix` is what to do."""

    name: str
    result: str
    said: str = ""
    fix: str = ""


class Wrong(Exception):
    """The check failed; the second argument is what to do."""

    def __init__(self, said: str, fix: str) -> None:
        super().__init__(said)
        self.fix = fix


class Doubtful(Wrong):
    """It works, and a person should know."""


@dataclass
class Patient:
    """The box as the checks get to know it, one after the other."""

    config: Config
    found: dict[str, Any] = field(default_factory=dict)


Check = Callable[[Patient], str]


def key_file(patient: Patient) -> str:
    path = patient.config.device.key_file
    try:
        patient.found["key"] = keys.load(path)
    except keys.KeyRefused as error:
        raise Wrong(str(error), "run `trial-driver enroll` on this box, or mend the file as said") from None
    return str(path)


def state_dir(patient: Patient) -> str:
    path = patient.config.device.state_dir
    if not path.is_dir():
        raise Wrong(f"{path} is not there", f"mkdir -m 700 -p {path}")
    if not os.access(path, os.W_OK | os.X_OK):
        raise Wrong(f"{path} cannot be written", f"chown {os.geteuid()} {path}")
    if path.stat().st_mode & 0o022:
        raise Wrong(f"others may write {path}", f"chmod 700 {path}")
    free = shutil.disk_usage(path).free
    if free < MIN_FREE:
        raise Wrong(f"{free // 2**20} MB are free", f"make room: a run needs {MIN_FREE // 2**20} MB")
    return f"{path}, {free // 2**20} MB free"


def enrolment(patient: Patient) -> str:
    try:
        pinned = patient.found["pins"] = pins.load(patient.config.device.state_dir)
    except pins.NotEnrolled as error:
        raise Wrong(str(error), "ask an owner of the device for a code") from None
    if pinned.url != patient.config.hub.url:
        raise Wrong(
            f"enrolled at {pinned.url}, but hub.url is {patient.config.hub.url}",
            "set hub.url, or enrol anew with `trial-driver enroll CODE --again`",
        )
    return f"{pinned.device_id} at {pinned.url}"


def robot(patient: Patient) -> str:
    try:
        found = assemble.load_robot(patient.config.device.robot)
    except DriverError as error:
        raise Wrong(str(error), "mend the robot file; `device.robot` names it") from None
    try:
        assemble.check_joints(patient.config, found)
    except DriverError as error:
        raise Wrong(str(error), "correct the joint's name in the config file") from None
    return f"{found.slug}, {len(found.joints)} joints, {len(found.pairs)} pairs"


def stage_commands(patient: Patient) -> str:
    stages = patient.config.stages
    if not stages:
        raise Wrong("no [stages.NAME] has a command", "add [stages.default] with a command to the config")
    device = patient.config.device
    inputs = {"device.go_input": device.go_input, "device.stop_input": device.stop_input}
    commands = {f"stages.{name}": stage.command for name, stage in stages.items()}
    commands |= {f"stages.{name}.stop_command": stage.stop_command for name, stage in stages.items()}
    for name, words in {**inputs, **commands}.items():
        if words and (problem := argv.problem(words, patient.config.folder)):
            raise Wrong(f"{name}: {problem}", "install the program, or correct the path in the config")
    return ", ".join(stages)


def stop_commands(patient: Patient) -> str:
    without = [name for name, stage in patient.config.stages.items() if not stage.stop_command]
    if without and not patient.config.device.simulated:
        raise Doubtful(
            f"{', '.join(without)} have no stop_command",
            "add one that makes the robot safe: it is run after every unclean end",
        )
    return "each stage has one" if not without else "a simulated body needs none"


def logs(patient: Patient) -> str:
    for name, stage in patient.config.stages.items():
        fixed = stage.log.partition("{")[0]
        folder = Path(fixed if fixed.endswith("/") else str(Path(fixed).parent)) if fixed else None
        if folder is not None and not os.access(folder, os.W_OK | os.X_OK):
            raise Wrong(f"stages.{name}.log: {folder} cannot be written", "make it, or change that key")
    return "can be written"


def journal_state(patient: Patient) -> str:
    path = journal.path_in(patient.config.device.state_dir)
    try:
        state = journal.read(path)
    except journal.JournalUnreadable as error:
        raise Wrong(
            f"{path}: {error}",
            "start the daemon, which sets it aside; look at the robot; `trial-driver doctor --reconciled`",
        ) from None
    if state.attention:
        raise Wrong(state.attention, "when you have looked at the robot: `trial-driver doctor --reconciled`")
    return f"run: {state.run.step if state.run else 'none'}"


def hub_answers(patient: Patient) -> str:
    """Name, route and certificate, before anything is signed."""
    url = patient.config.hub.url
    try:
        patient.found["date"] = hub.reach(patient.found["http"], url)
    except DriverError as error:
        fix = "check the network, DNS, the clock and the certificate; then hub.url"
        raise Wrong(f"{url}: {error}", fix) from None
    return url


def clock(patient: Patient) -> str:
    """A certificate and a signature need the time; a box without a battery has none after a cold start."""
    date = patient.found["date"]
    if date is None:
        raise Doubtful("the hub's answer has no Date", "look whether a proxy answers in its place")
    ahead = (datetime.now(UTC) - date).total_seconds()
    said, fix = f"{ahead:+.0f} s from the hub's", "start time synchronisation (chrony, systemd-timesyncd)"
    if abs(ahead) > SKEW_FAIL_S:
        raise Wrong(said, fix)
    if abs(ahead) > SKEW_OK_S:
        raise Doubtful(said, fix)
    return said


def known_at_hub(patient: Patient) -> str:
    pinned = patient.found["pins"]
    key, http = patient.found["key"], patient.found["http"]
    this = Hub(url=pinned.url, device_id=pinned.device_id, key=key, clock=Clock(), http=http)
    try:
        offers = this.list_device_approvals("issued", "running")
    except HubRefused as error:
        raise Wrong(
            str(error), "ask an owner whether the device is active; enrol anew where the key is another"
        ) from None
    except DriverError as error:
        raise Wrong(str(error), "see what answers at hub.url") from None
    return f"active, {len(offers)} approvals offered"


def owed(patient: Patient) -> str:
    state = journal.read(journal.path_in(patient.config.device.state_dir))
    events = len(list((patient.config.device.state_dir / "outbox").glob("*.json")))
    said = f"{events} events, {len(state.logs)} logs"
    if events or state.logs:
        raise Doubtful(said, "start the daemon; it tells the hub")
    return said


# Each with what it needs; what stands on a check that failed is skipped.
CHECKS: dict[str, tuple[Check, tuple[str, ...]]] = {
    "key file": (key_file, ()),
    "state folder": (state_dir, ()),
    "enrolment": (enrolment, ("state folder",)),
    "robot file": (robot, ()),
    "stage commands": (stage_commands, ()),
    "stop commands": (stop_commands, ("stage commands",)),
    "log paths": (logs, ("stage commands",)),
    "journal": (journal_state, ("enrolment",)),
    "hub answers": (hub_answers, ()),
    "clock": (clock, ("hub answers",)),
    "known at hub": (known_at_hub, ("key file", "enrolment", "hub answers")),
    "owed": (owed, ("journal",)),
}


def examine(patient: Patient) -> Iterator[Finding]:
    """Run the checks in their order."""
    failed: set[str] = set()
    for name, (check, needs) in CHECKS.items():
        missing = [need for need in needs if need in failed]
        skipped = Finding(name, "skipped", f"needs {', '.join(missing)}")
        finding = skipped if missing else _look(name, check, patient)
        if finding.result in ("FAIL", "skipped"):
            failed.add(name)
        yield finding


def _look(name: str, check: Check, patient: Patient) -> Finding:
    try:
        return Finding(name, "ok", check(patient))
    except Doubtful as doubt:
        return Finding(name, "warn", str(doubt), doubt.fix)
    except Wrong as wrong:
        return Finding(name, "FAIL", str(wrong), wrong.fix)
