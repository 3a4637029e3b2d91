import json
from pathlib import Path
from typing import Any

import pytest

from driver.__main__ import main
from driver.bodies.choose import STILT
from driver.evaluate import SeedResult, measured
from driver.wire.robot import Pair, Robot

DEMO = STILT.parent
ROBOT = Robot(
    slug="walker",
    name="Walker",
    joints=("left_knee", "right_knee"),
    pairs=(Pair(name="knee", left="left_knee", right="right_knee", mirror=1),),
)


def seeds(**columns: list[Any]) -> list[SeedResult]:
    usual = {
        "tilt_mean_deg": None,
        "tilt_max_deg": None,
        "asym_max_deg": None,
        "falls": None,
        "loop_hz": None,
        "temp_max_c": None,
        "tracking_error_rad": {},
    }
    many = len(next(iter(columns.values())))
    return [
        SeedResult(True, usual | {key: column[at] for key, column in columns.items()}) for at in range(many)
    ]


def gate(metric: str, **more: Any) -> dict[str, Any]:
    return {"key": "it", "metric": metric, "op": "<=", "threshold": 1.0, "conditions": {}, **more}


@pytest.mark.parametrize(
    ("metric", "values", "number"),
    [
        ("tilt_mean_deg", [1.0, 2.0, 6.0], 3.0),
        ("tilt_max_deg", [1.0, 2.0, 6.0], 6.0),
        ("asym_max_deg", [1.0, 2.0, 6.0], 3.0),
        ("falls", [0, 1, 1], 2.0),
        ("temp_max_c", [40.0, 60.0, 50.0], 60.0),
    ],
)
def test_means_stay_means_extremes_stay_extremes_and_falls_add_up(
    metric: str, values: list[Any], number: float
):
    assert measured(gate(metric), seeds(**{metric: values}), ROBOT) == number


def test_seeds_without_a_number_are_left_out():
    assert measured(gate("tilt_mean_deg"), seeds(tilt_mean_deg=[1.0, None, 2.0]), ROBOT) == 1.5


def test_what_no_seed_measured_is_null():
    assert measured(gate("loop_hz"), seeds(loop_hz=[None, None]), ROBOT) is None
    assert measured(gate("success_rate"), seeds(falls=[0]), ROBOT) is None


def test_tracking_is_that_of_the_named_joint_of_the_worse_side_or_of_the_worst():
    results = seeds(
        tracking_error_rad=[{"left_knee": 0.1, "right_knee": -0.3}, {"left_knee": 0.2, "right_knee": None}]
    )

    assert measured(gate("tracking_error_rad", joint="left_knee"), results, ROBOT) == pytest.approx(0.15)
    assert measured(gate("tracking_error_rad", joint="knee"), results, ROBOT) == pytest.approx(0.25)
    assert measured(gate("tracking_error_rad"), results, ROBOT) == pytest.approx(0.25)


# The command.


def evaluate(
    capsys: pytest.CaptureFixture[str], *more: str, checkpoints: tuple[str, ...] = ("free_step_279",)
) -> tuple[int, str, str]:
    code = main(
        [
            "evaluate",
            *(str(DEMO / "checkpoints" / f"{name}.onnx") for name in checkpoints),
            f"--robot={DEMO / 'stilt.toml'}",
            f"--sidecar={DEMO / 'contract.toml'}",
            *more,
        ]
    )
    out, error = capsys.readouterr()
    return code, out, error


def test_the_command_prints_the_results_of_a_round(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    gates = tmp_path / "gates.json"
    gates.write_text(json.dumps([gate("tilt_mean_deg") | {"key": "tilt"}, gate("loop_hz") | {"key": "loop"}]))

    code, out, _ = evaluate(
        capsys,
        "--body=mujoco:stilt?noise=1",
        f"--gates={gates}",
        "--seeds=2",
        "--json",
        "--floor=2",
        "--hang=1",
    )

    said = json.loads(out)
    assert code == 0
    assert said["results"] == [
        {
            "checkpoint": "free_step_279",
            "seeds_run": 2,
            "seeds_upright": 2,
            "measured": {"tilt": pytest.approx(2.2, abs=0.5), "loop": None},
        }
    ]
    assert said["conditions"]["latency_ticks"] == 0
    assert said["conditions"]["noise"] == 1.0
    assert said["conditions"]["seeds"] == 2
    assert said["conditions"]["model"] == "stilt.xml"


def test_the_same_seeds_give_the_same_numbers(capsys: pytest.CaptureFixture[str]):
    said = [
        evaluate(
            capsys, "--body=mujoco:stilt?noise=1&spread=1", "--seeds=2", "--json", "--floor=1", "--hang=1"
        )[1]
        for _ in range(2)
    ]

    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--body=gazebo:stilt.sdf"], "simulated body"),
        (["--body=mujoco:stilt?latency=1"], "latency_ticks"),
        (["--body=mujoco:stilt", "--teleop=1,2"], "4"),
        (["--body=mujoco:stilt", "--gates=nowhere.json"], "nowhere.json"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words(
    capsys: pytest.CaptureFixture[str], more: list[str], words: str
):
    code, _, error = evaluate(capsys, *more)

    assert code == 1
    assert words in error


def test_packing_is_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    source = DEMO / "checkpoints" / "free_step_279.onnx"

    assert main(["pack", str(source), "-o", str(tmp_path / "packed.onnx")]) == 0
    assert "sha256" in capsys.readouterr().out
    assert main(["pack", str(tmp_path / "nowhere.onnx")]) == 1
