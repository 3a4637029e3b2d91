"""Who plays in the demo: a robot, its simulated body, the policy it runs, and what is compared with it."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DEMO = Path(__file__).resolve().parents[3] / "driver" / "bodies" / "demo"
ONE_TICK_LATE = "latency_ticks=1&noise=1"


@dataclass(frozen=True)
class Shipped:
    """A checkpoint as a file, under the run and step it is known by, and why it is in the session."""

    run: str
    step: int
    why: str
    path: Path | None = None
    sidecar: Path | None = DEMO / "contract.toml"

    @property
    def file(self) -> Path:
        return self.path or DEMO / "checkpoints" / f"{self.run}_step_{self.step}.onnx"

    @property
    def completing(self) -> dict[str, Any] | None:
        """What a sidecar says where the file says nothing."""
        if self.sidecar is None:
            return None
        said: dict[str, Any] = tomllib.loads(self.sidecar.read_text())["contract"]
        return said


CONTROL = Shipped("free", 279, "runs on the robot today")
CANDIDATES = [
    Shipped("tied", 276, "left and right share their weights"),
    Shipped("free", 50, "an early one"),
    Shipped("nolag", 400, "trained without latency"),
]


def _gates(*, tilt: float, asymmetry: float) -> list[dict[str, Any]]:
    return [
        {"key": "upright", "metric": "falls", "op": "==", "threshold": 0},
        {"key": "tilt", "metric": "tilt_mean_deg", "op": "<=", "threshold": tilt},
        {"key": "asymmetry", "metric": "asym_max_deg", "op": "<=", "threshold": asymmetry},
    ]


@dataclass(frozen=True, kw_only=True)
class Cast:
    """
    By default our own Stilt. `model` may carry options of the body that hold everywhere, as in
    `robot.xml?lift=0.02`; `body` is what the box's robot has that the training's simulation had not.
    """

    robot: Path = DEMO / "stilt.toml"
    model: str = str(DEMO / "stilt.xml")
    control: Shipped = CONTROL
    candidates: Sequence[Shipped] = field(default_factory=lambda: list(CANDIDATES))
    body: str = ONE_TICK_LATE
    speed: float = 0.15
    gates: Sequence[dict[str, Any]] = field(default_factory=lambda: _gates(tilt=3.5, asymmetry=9.0))

    @property
    def simulated(self) -> str:
        """The body of the evaluation, as `--body` takes it."""
        return f"mujoco:{self.model}"

    def on_the_box(self, body: str) -> str:
        """The body of the robot box, with these options beside the model's own."""
        return f"{self.simulated}{'&' if '?' in self.model else '?'}{body}"


STILT = Cast()


def someone_elses(
    *, robot: str, model: str, control: str, candidates: Sequence[str], body: str, speed: float
) -> Cast:
    """A cast out of files: `POLICY.onnx` or `POLICY.onnx,SIDECAR.toml` each."""
    return Cast(
        robot=Path(robot),
        model=_absolute(model),
        control=_shipped(control, 0, "runs on the robot today"),
        candidates=[
            _shipped(named, step, "the challenger") for step, named in enumerate(candidates, start=1)
        ],
        body=body,
        speed=speed,
        gates=_gates(tilt=10.0, asymmetry=10.0),
    )


def _absolute(model: str) -> str:
    path, mark, options = model.partition("?")
    return f"{Path(path).resolve()}{mark}{options}"


def _shipped(named: str, step: int, why: str) -> Shipped:
    policy, _, sidecar = named.partition(",")
    return Shipped(Path(policy).stem, step, why, Path(policy), Path(sidecar) if sidecar else None)
