"""A checkpoint over seeds in simulation -> the numbers of a round, from logs, as on the robot."""

import io
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco

from driver.bodies.mujoco import MujocoBody
from driver.bodies.options import Options
from driver.contract.document import Contract
from driver.policy.commands import source_for
from driver.policy.ending import Ending
from driver.policy.inference import Model
from driver.policy.order import AbortRule, Limits, Stage, StageOrder, Teleop
from driver.policy.rows import Row
from driver.policy.runner import Parts, run_stage
from driver.wire import csvlog, summary
from driver.wire.robot import Robot

FIRST_SEED = 1000
RAMP_S = 0.5  # a simulated robot is put on its feet after the ramp, so a long one would show nothing more
STATUS = {"completed": "done"}


@dataclass(frozen=True, kw_only=True)
class Course:
    """What every seed goes through: the stages, and what would stop them."""

    robot: Robot
    body: Options
    judged: str = "floor"
    hang_s: float = 4.0
    floor_s: float = 10.0
    teleop: tuple[tuple[float, float, float, float], ...] = ()  # seconds, vx, vy, wz
    tilt_deg: float = 45.0

    def stages(self) -> list[Stage]:
        walking = [Stage(name="teleop", free_standing=True)] if self.teleop else []
        return [
            Stage(name="hang", duration_s=self.hang_s),
            Stage(name="floor", duration_s=self.floor_s, free_standing=True),
            *walking,
        ]

    def conditions(self) -> dict[str, str | float | bool]:
        """What the numbers were measured under, as a gate of a round says it."""
        changed = {
            key: value for key, value in vars(self.body).items() if value != getattr(Options, key, None)
        }
        return {
            "sim": f"mujoco {mujoco.__version__}",
            **changed,
            "model": self.body.model.name,
            "latency_ticks": self.body.latency_ticks,
            "hang_s": self.hang_s,
            "floor_s": self.floor_s,
            "teleop_s": sum(step[0] for step in self.teleop),
        }


@dataclass(frozen=True)
class SeedResult:
    upright: bool
    summary: Mapping[str, Any]


@dataclass(frozen=True)
class Reading:
    """How a metric of single runs becomes the one number of a round."""

    of_run: Callable[[Mapping[str, Any]], float | None]
    over_seeds: Callable[[Sequence[float]], float]


# A mean stays a mean, so that it foretells what one run will show; an extreme is that of all seeds.
READINGS: Mapping[str, Reading] = {
    "tilt_mean_deg": Reading(lambda said: said["tilt_mean_deg"], statistics.fmean),
    "tilt_max_deg": Reading(lambda said: said["tilt_max_deg"], max),
    "asym_max_deg": Reading(lambda said: said["asym_max_deg"], statistics.fmean),
    "falls": Reading(lambda said: said["falls"], sum),
    "loop_hz": Reading(lambda said: said["loop_hz"], statistics.fmean),
    "temp_max_c": Reading(lambda said: said["temp_max_c"], max),
}


def evaluate(
    checkpoint: Path, contract: Contract, *, course: Course, gates: Sequence[Mapping[str, Any]], seeds: int
) -> dict[str, Any]:
    """The result of one checkpoint: `{"checkpoint", "seeds_run", "seeds_upright", "measured"}`."""
    with Model(checkpoint, contract) as model:
        model.warm_up()
        results = [run_seed(model, contract, course, FIRST_SEED + seed) for seed in range(seeds)]
    return {
        "checkpoint": checkpoint.stem,
        "seeds_run": len(results),
        "seeds_upright": sum(result.upright for result in results),
        "measured": {gate["key"]: measured(gate, results, course.robot) for gate in gates},
    }


def measured(gate: Mapping[str, Any], results: Sequence[SeedResult], robot: Robot) -> float | None:
    """One gate's number over all seeds that have it; None for what a log cannot measure."""
    reading = READINGS.get(gate["metric"])
    if gate["metric"] == "tracking_error_rad":
        joints = joints_of(gate.get("joint"), robot)
        reading = Reading(lambda said: worst_tracking(said, joints), statistics.fmean)
    if reading is None:
        return None
    values = [value for result in results if (value := reading.of_run(result.summary)) is not None]
    return float(reading.over_seeds(values)) if values else None


def joints_of(name: str | None, robot: Robot) -> tuple[str, ...]:
    """A joint, the two joints of a pair's common name, or all of them."""
    if name is None:
        return robot.joints
    return next(((pair.left, pair.right) for pair in robot.pairs if pair.name == name), (name,))


def worst_tracking(said: Mapping[str, Any], joints: Sequence[str]) -> float | None:
    """The largest |mean of target - measured| among these joints."""
    errors = said["tracking_error_rad"]
    return max((abs(errors[joint]) for joint in joints if errors.get(joint) is not None), default=None)


def run_seed(model: Model, contract: Contract, course: Course, seed: int) -> SeedResult:
    """One trial in simulation: its stages in turn, until one is stopped."""
    logs, upright = [], True
    for stage in course.stages():
        ending, log = _run(model, contract, course, stage, seed)
        logs.append(_stage_log(stage, ending, log))
        if ending.stopped_by != "completed":
            upright = False
            break
    judging = summary.Judging(stage=course.judged, pairs=course.robot.pairs)
    return SeedResult(upright, summary.summarize(logs, judging=judging, run=summary.RunFacts(simulated=True)))


def _run(
    model: Model, contract: Contract, course: Course, stage: Stage, seed: int
) -> tuple[Ending, csvlog.Log | None]:
    order = StageOrder(
        stage=stage,
        contract=contract,
        onnx=Path(),
        log=Path(),
        limits=Limits(ramp_s=RAMP_S),
        abort_rules=(
            AbortRule(metric="tilt_deg", op=">", value=course.tilt_deg, stages=("floor", "teleop")),
        ),
        teleop=Teleop(source="script:evaluate", steps=course.teleop) if stage.name == "teleop" else None,
        simulated=True,
    )
    memory = _Memory()
    body = MujocoBody(course.body, seed=seed)
    parts = Parts(body=body, policy=model, source=source_for(order), open_log=memory.open)
    ending = run_stage(order, parts)
    return ending, memory.log()


def _stage_log(stage: Stage, ending: Ending, log: csvlog.Log | None) -> summary.StageLog:
    return summary.StageLog(
        name=stage.name,
        log=log,
        status=STATUS.get(ending.stopped_by, "aborted"),
        free_standing=stage.free_standing,
        reason=ending.reason,
        protection=summary.Protection(
            armed=bool(ending.tilt_protection["armed"]), threshold_deg=ending.tilt_protection["threshold_deg"]
        ),
        simulated_clock=ending.simulated_clock,
    )


class _Memory:
    """A log that stays in memory, and is read back from the same bytes that a file would have."""

    def __init__(self) -> None:
        self._stream = io.BytesIO()
        self._writer: csvlog.Writer | None = None

    def open(self, columns: tuple[str, ...]) -> "_Memory":
        self._writer = csvlog.Writer(self._stream, columns)
        return self

    def write(self, row: Row) -> None:
        assert self._writer is not None
        self._writer.write(row)

    def log(self) -> csvlog.Log | None:
        return csvlog.read(self._stream.getvalue()) if self._writer else None
