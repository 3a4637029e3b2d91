"""What the demo tells: how the shipped checkpoints behave in simulation and on the body with latency."""

import statistics
import tomllib
from functools import cache
from typing import Any

from driver.bodies.choose import STILT, simulated_options
from driver.contract.document import check_contract
from driver.contract.onnx_file import read_contract
from driver.evaluate import Course, SeedResult, run_seed, worst_tracking
from driver.policy.inference import Model
from driver.wire.robot import robot_from_document

DEMO = STILT.parent
SIDECAR = tomllib.loads((DEMO / "contract.toml").read_text())
ROBOT = robot_from_document(tomllib.loads((DEMO / "stilt.toml").read_text()))
SIM = "mujoco:stilt?noise=1&spread=1&pushes=0.5"
TWIN = f"{SIM}&latency_ticks=1"
POLLUTED = "power=0.5&friction=0.2"
WALK = ((1.0, 0.0, 0.0, 0.0), (4.0, 0.15, 0.0, 0.0))
SEEDS = 3


@cache
def seeds(name: str, body: str, first: int = 1000) -> tuple[SeedResult, ...]:
    path = DEMO / "checkpoints" / f"{name}.onnx"
    contract = check_contract(read_contract(path, sidecar=SIDECAR))
    course = Course(robot=ROBOT, body=simulated_options(body), teleop=WALK)
    with Model(path, contract) as model:
        return tuple(run_seed(model, contract, course, first + seed) for seed in range(SEEDS))


def mean(metric: str, results: tuple[SeedResult, ...]) -> float:
    return statistics.fmean(result.summary[metric] for result in results)


def stages(result: SeedResult) -> dict[str, Any]:
    return {stage["name"]: stage["status"] for stage in result.summary["stages"]}


def test_the_control_and_the_better_one_stay_up_on_the_body_with_latency():
    assert all(result.upright for result in seeds("free_step_279", TWIN))
    assert all(result.upright for result in seeds("tied_step_276", TWIN))


def test_the_better_one_leans_less_and_is_more_even():
    better, control = seeds("tied_step_276", TWIN), seeds("free_step_279", TWIN)

    assert mean("tilt_mean_deg", better) < mean("tilt_mean_deg", control) - 0.5
    assert mean("asym_max_deg", better) < mean("asym_max_deg", control)


def test_the_one_trained_without_latency_is_perfect_in_its_own_simulation():
    own = seeds("nolag_step_400", SIM)

    assert all(result.upright for result in own)
    assert mean("tilt_mean_deg", own) < mean("tilt_mean_deg", seeds("free_step_279", SIM))


def test_on_the_body_with_latency_it_hangs_well_and_falls_on_the_floor():
    for result in seeds("nolag_step_400", TWIN):
        assert stages(result) == {"hang": "done", "floor": "aborted"}
        assert result.summary["stages"][-1]["reason"] == "tilt_deg > 45"
        assert result.summary["falls"] == 1


def deciding(result: SeedResult) -> tuple[float, float, int]:
    """What decides whether a bracket holds."""
    said = result.summary
    tracking = worst_tracking(said, ROBOT.joints)
    assert tracking is not None
    return said["tilt_mean_deg"], tracking, said["falls"]


def holds(first: SeedResult, last: SeedResult) -> bool:
    (tilt, tracking, falls), (other_tilt, other_tracking, other_falls) = deciding(first), deciding(last)
    return falls == other_falls and abs(tilt - other_tilt) <= 1.0 and abs(tracking - other_tracking) <= 0.05


def test_two_runs_of_the_control_on_one_robot_agree():
    first = seeds("free_step_279", f"{TWIN}&seed=7")
    last = seeds("free_step_279", f"{TWIN}&seed=7", first=2000)

    assert all(holds(one, other) for one, other in zip(first, last, strict=True))


def test_a_weaker_robot_on_a_slippery_floor_voids_the_bracket():
    first = seeds("free_step_279", f"{TWIN}&seed=7")
    last = seeds("free_step_279", f"{TWIN}&seed=7&{POLLUTED}", first=2000)

    assert not any(holds(one, other) for one, other in zip(first, last, strict=True))
