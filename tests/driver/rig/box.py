"""A robot box for tests: a state folder, a config whose stages are the scripted robot, the daemon's parts."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from driver import assemble, config, enrolment, journal
from driver.box import Box
from driver.clock import Clock
from driver.loop import Loop
from driver.stages import Waits
from tests.driver.rig import papers
from tests.driver.rig.hub import FakeHub

ROBOT = Path(__file__).with_name("robot.py")
ROOT = Path(__file__).parents[3]

T = TypeVar("T")


def wait_for(look: Callable[[], T], *, within_s: float = 20.0) -> T:
    """Look until something is there; real processes take a moment."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if found := look():
            return found
        time.sleep(0.005)
    raise AssertionError(f"{look} stayed empty for {within_s} s")


@dataclass
class TestBox:
    """The folder of one box, its config file, and what can be started on it."""

    __test__ = False

    folder: Path
    hub: FakeHub
    modes: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    stop_command: tuple[str, ...] = ()
    has_default: bool = True
    opened: list[Box] = field(default_factory=list)

    @property
    def state_dir(self) -> Path:
        return self.folder / "state"

    @property
    def config_file(self) -> Path:
        return self.folder / "config.toml"

    @property
    def ran(self) -> Path:
        return self.folder / "ran.txt"

    def write_config(self) -> None:
        (self.folder / "robot.toml").write_text(papers.ROBOT)
        said: dict[str, dict[str, Any]] = {
            "hub": {"url": self.hub.url, "poll_s": 0.05, "heartbeat_s": 0.1},
            "device": {"state_dir": "state", "robot": "robot.toml", "simulated": True, "go": "auto"},
            "log": {"settle_s": 1},
            "teleop.scripts.walk-and-turn": {"steps": [[3.0, 0.2, 0.0, 0.0]]},
        }
        for name in (*(["default"] if self.has_default else []), *self.modes):
            command = [sys.executable, "-S", str(ROBOT), str(self.ran), self.modes.get(name, "walk")]
            said[f"stages.{name}"] = {"command": command, "stop_command": list(self.stop_command)}
        for table, values in self.settings.items():
            said[table] = {**said.get(table, {}), **values}
        self.config_file.write_text("".join(_table(name, values) for name, values in said.items()))

    def load(self) -> config.Config:
        self.write_config()
        return config.load(flags={"config": str(self.config_file)}, environ={})

    def enrol(self) -> None:
        enrolment.enrol(self.load(), self.hub.code, clock=Clock())

    def box(self) -> Box:
        box = assemble.box(self.load())
        box.waits = Waits(interrupt_s=0.3, terminate_s=0.3)
        self.opened.append(box)
        return box

    def close(self) -> None:
        for box in self.opened:
            box.close()

    def loop(self) -> Loop:
        loop = Loop(self.box())
        loop.begin()
        return loop

    def journal(self) -> journal.State:
        return journal.read(journal.path_in(self.state_dir))

    def step(self) -> str | None:
        """The durable step that the journal shows now."""
        try:
            state = self.journal()
        except journal.JournalUnreadable:
            return None
        if state.run is not None:
            return str(state.run.step)
        return str(state.logs[0].step) if state.logs else None

    def stages_ran(self) -> list[str]:
        if not self.ran.exists():
            return []
        return [line.split()[1] for line in self.ran.read_text().splitlines()]

    def notes(self) -> list[str]:
        notes = Path(f"{self.ran}.notes")
        return notes.read_text().split("\n")[:-1] if notes.exists() else []

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "driver", *words, "--config", str(self.config_file)]

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        self.write_config()
        return self.run_words(self.command(*words))

    def run_words(
        self, words: list[str], *, stdin: int = subprocess.DEVNULL
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=ROOT,
            env=_environment(),
            stdin=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    @contextmanager
    def daemon(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """The real daemon; killed at the end where it still runs."""
        self.write_config()
        with (self.folder / "daemon.log").open("ab") as log:
            process = subprocess.Popen(self.command("run", *words), cwd=ROOT, env=_environment(), stderr=log)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()

    def daemon_log(self) -> str:
        return (self.folder / "daemon.log").read_text()


def kill(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("TRIAL_")}


def _table(name: str, values: Mapping[str, Any]) -> str:
    return f"[{name}]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in values.items()) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, str):
        return json.dumps(value)
    return repr(value)
