"""A robot box to be killed and cut off. Its stages are the simulated Stilt's, each start is written down."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driver import assemble, config, console, enrolment, journal
from driver.clock import Clock
from driver.journal import State
from hub.web.demo.box import BODY, DEMO
from hub.web.demo.processes import driver
from tests.driver.rig.box import wait_for

SOME_ROWS = 4000  # bytes

CONFIG = """\
[hub]
url = "{origin}"
poll_s = 0.05
heartbeat_s = 0.2

[device]
key_file = "{folder}/device.key"
state_dir = "{folder}/state"
robot = "{demo}/stilt.toml"
simulated = true
go = "{go}"

[limits]
max_stage_s = 60
ramp_s = 0.1
max_ramp_rad = 1.5
joint_vel_rad_s = 30.0

[stages.hang]
command = ["{folder}/stage", "{body}"]
stop_command = ["{folder}/stop"]

[stages.default]
command = ["{folder}/stage", "{body}{lasting}"]
stop_command = ["{folder}/stop"]

[log]
settle_s = 1
"""

# The shell becomes the stage, so its number is the stage's.
STAGE = """\
#!/bin/sh
echo "$TRIAL_ID $TRIAL_STAGE $$" >> "{folder}/ran"
exec "{python}" -m driver stage --body "mujoco:{demo}/stilt.xml?$1"
"""

STOP = """\
#!/bin/sh
echo "$TRIAL_ID $TRIAL_STAGE" >> "{folder}/stopped"
"""


@dataclass(frozen=True)
class Ran:
    """A stage that was started."""

    trial: str
    stage: str
    pid: int


@dataclass
class RobotBox:
    """
    One box in one folder.

    `lasting`: the floor stage takes the world's time, so that there is a middle to do something in.
    """

    folder: Path
    origin: str
    device_id: str
    go: str = "auto"
    lasting: bool = False
    daemons: int = 0

    def enrol(self, code: str) -> None:
        self.folder.mkdir(parents=True)
        self._write("config.toml", CONFIG)
        for script, text in {"stage": STAGE, "stop": STOP}.items():
            self._write(script, text).chmod(0o700)
        with assemble.locked(self.state_dir):
            enrolment.enrol(config.load(flags={"config": str(self.config)}), code, clock=Clock())

    def _write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(
            text.format(
                folder=self.folder,
                origin=self.origin,
                go=self.go,
                demo=DEMO,
                python=sys.executable,
                body=BODY,
                lasting="&realtime=1" if self.lasting else "",
            )
        )
        return path

    @property
    def config(self) -> Path:
        return self.folder / "config.toml"

    @property
    def state_dir(self) -> Path:
        return self.folder / "state"

    @contextmanager
    def daemon(self) -> Iterator[subprocess.Popen[bytes]]:
        """The real one. What it said is shown where a test fails."""
        self.daemons += 1
        try:
            with driver(config=self.config, log=self.folder / f"daemon-{self.daemons}.log") as process:
                yield process
        except BaseException:
            print(self.said())
            raise

    def said(self) -> str:
        return "\n".join(log.read_text() for log in sorted(self.folder.glob("daemon-*.log")))

    @property
    def journal(self) -> State:
        return journal.read(journal.path_in(self.state_dir))

    def step(self) -> str | None:
        """How far its run is, by its journal."""
        run = self.journal.run
        return run.step if run else None

    def waiting(self) -> dict[str, Any] | None:
        """What it shows to the person who is to say go."""
        try:
            shown: dict[str, Any] | None = console.ask(self.state_dir, ask="waiting")["waiting"]
        except console.NoDaemon:
            return None
        return shown

    def ran(self) -> list[Ran]:
        lines = (line.split() for line in self._lines("ran"))
        return [Ran(trial, stage, int(pid)) for trial, stage, pid in lines]

    def stages(self) -> list[str]:
        return [ran.stage for ran in self.ran()]

    def stop_commands(self) -> list[str]:
        """The stages that the stop command was run for."""
        return [line.split()[1] for line in self._lines("stopped")]

    def _lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def moves_in(self, stage: str) -> None:
        """Look until a stage has been started and its log grows."""
        wait_for(lambda: self.stages()[-1:] == [stage], within_s=30)
        wait_for(lambda: self.written(stage) > SOME_ROWS, within_s=30)

    def written(self, stage: str) -> int:
        """How many bytes the log of a stage has."""
        return sum(path.stat().st_size for path in self.state_dir.glob(f"runs/*/*-{stage}.csv"))


def kill(process: subprocess.Popen[bytes]) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
