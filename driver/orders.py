"""What a stage's command is told: one JSON object on stdin, and the same values as variables."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from driver import argv, limits
from driver.accept import Accepted
from driver.config import Config, StageCommand
from driver.wire import canonical


@dataclass(frozen=True, kw_only=True)
class StageCall:
    """One stage of an accepted trial, and the box's own command for it."""

    accepted: Accepted
    stage: Mapping[str, Any]
    n: int
    config: Config

    @property
    def name(self) -> str:
        return str(self.stage["name"])

    @property
    def command(self) -> StageCommand:
        command = self.config.stage(self.name)
        if command is None:
            raise LookupError(f"this box has no command for stage {self.name}")
        return command

    @property
    def file_name(self) -> str:
        return f"{self.n:02d}-{self.name}.csv"

    def places(self) -> dict[str, str]:
        return {
            "state_dir": str(self.config.device.state_dir),
            "approval_id": self.accepted.approval_id,
            "n": f"{self.n:02d}",
            "stage": self.name,
        }

    def log(self) -> Path:
        """Where the box config says that this stage's command writes."""
        return self.config.folder / argv.fill(self.command.log, self.places())

    def words(self) -> list[str]:
        return argv.filled(self.command.command, self.places())

    def stop_words(self) -> list[str]:
        return argv.filled(self.command.stop_command, self.places())

    def order(self, *, t0_s: float) -> bytes:
        sheet, config = self.accepted.sheet, self.config
        return canonical.dumps(
            {
                "stage": dict(self.stage),
                "sheet": {
                    "kd_scale": sheet["kd_scale"],
                    "power_scale": sheet["power_scale"],
                    "gain_profile": sheet["gain_profile"],
                    "abort_rules": limits.abort_rules(sheet, self.stage, config.limits),
                },
                "contract": dict(self.accepted.contract),
                "onnx": str(self.accepted.onnx),
                "onnx_sha256": self.accepted.token["checkpoint"]["onnx_sha256"],
                "log": str(self.log()),
                "limits": limits.as_order(config.limits),
                "gains": self._gains(),
                "teleop": self._teleop(),
                "simulated": config.device.simulated,
                "seed": None,
                "t0_s": t0_s,
            }
        )

    def environment(self) -> dict[str, str]:
        """The daemon's own environment without its settings, and the stage's values."""
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("TRIAL_")}
        duration = self.stage["duration_s"]
        return {
            **inherited,
            "PATH": argv.search_path(),
            "TRIAL_ID": self.accepted.trial_id,
            "TRIAL_STAGE": self.name,
            "TRIAL_LOG": str(self.log()),
            "TRIAL_ONNX": str(self.accepted.onnx),
            "TRIAL_DURATION_S": "" if duration is None else f"{duration:g}",
            "TRIAL_VALUES": canonical.dumps(self.stage["values"]).decode(),
        }

    def _gains(self) -> dict[str, Any] | None:
        gains = self.config.gains.get(self.accepted.sheet["gain_profile"])
        return asdict(gains) if gains else None

    def _teleop(self) -> dict[str, Any] | None:
        """Commands come from the box; the sheet may only name one of the box's scripts."""
        values, teleop = self.stage["values"], self.config.teleop
        script = values.get("command_script")
        source = f"script:{script}" if script else teleop.source
        if script is None and ("command" in values or self.stage["duration_s"] is not None):
            return None
        steps = teleop.scripts.get(source.removeprefix("script:")) if source.startswith("script:") else None
        return {"source": source, "script": [list(step) for step in steps] if steps else None}
