"""The parts that a running daemon is made of."""

from dataclasses import dataclass, field
from pathlib import Path

from driver.clock import Clock
from driver.config import Config
from driver.console import Console
from driver.hub import Hub, Storage
from driver.journal import Journal, Run
from driver.leaving import Leaving
from driver.mail import Mail
from driver.pins import Pins
from driver.stages import Waits
from driver.wire.robot import Robot


@dataclass(kw_only=True)
class Box:
    config: Config
    pins: Pins
    robot: Robot
    clock: Clock
    hub: Hub
    storage: Storage
    journal: Journal
    mail: Mail
    console: Console
    leaving: Leaving = field(default_factory=Leaving)
    waits: Waits = field(default_factory=Waits)

    def close(self) -> None:
        self.hub.http.close()
        self.storage.http.close()

    @property
    def state_dir(self) -> Path:
        return self.config.device.state_dir

    @property
    def run(self) -> Run:
        """The run that is going on."""
        run = self.journal.state.run
        if run is None:
            raise LookupError("no run is going on")
        return run

    def run_folder(self, approval_id: str) -> Path:
        return self.state_dir / "runs" / approval_id
