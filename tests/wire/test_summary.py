import json
import math
from typing import Any

import numpy as np
import pytest

from driver.wire import canonical, csvlog, formulas, robot, shape, summary
from driver.wire.robot import Pair
from driver.wire.summary import Judging, RunFacts, StageLog
from driver.wire.summary_shape import SUMMARY
from tests import cases
from tests.wire import samples
from tests.wire.stages import FLOOR, KNEE, LEVEL, STANDING, floor, log, numbers


def g1() -> robot.Robot:
    header = cases.path("logs/sim_g1/s1_1_control_floor.csv").read_text().partition("\n")[0]
    joints = [name[2:] for name in header.split(",") if name.startswith("q:")]
    mirror = {"pitch": 1, "knee": 1, "elbow": 1}
    return robot.robot_from_document(
        {"robot": {"slug": "unitree-g1-29", "name": "Unitree G1", "joints": joints, "mirror": mirror}}
    )


def test_the_logs_of_two_real_policies_give_the_expected_numbers() -> None:
    folder = cases.path("logs/sim_g1")
    expected = json.loads((folder / "expected.json").read_text())
    pairs = g1().pairs
    by_joint = {joint: pair.name for pair in pairs for joint in (pair.left, pair.right)}

    for name, facts in expected.items():
        stage = StageLog(name="floor", log=csvlog.read(folder / name))
        found = numbers(stage, judging=Judging(stage="floor", pairs=pairs))
        worst, joint = facts["worst_asym_with_signs_deg"]
        assert stage.log is not None
        assert stage.log.rows == facts["rows"]
        assert found["window"]["rows"] == facts["half_rows"]
        assert found["tilt_mean_deg"] == pytest.approx(facts["tilt_mean_deg"], abs=1e-3)
        assert found["tilt_max_deg"] == pytest.approx(facts["tilt_max_deg"], abs=1e-3)
        assert summary.tilt_deg(stage.log).max() == pytest.approx(facts["full_tilt_max_deg"], abs=1e-3)
        assert found["asym_max_deg"] == pytest.approx(worst, abs=1e-3)
        assert found["asym_deg"][by_joint[joint]] == found["asym_max_deg"]
        assert found["tracking_error_rad"] == pytest.approx(facts["tracking_rad"], abs=1e-3)
        assert found["warnings"] == []
    assert len(expected) == 18


def test_the_founders_rule_is_the_sign_minus_one() -> None:
    folder = cases.path("logs/sim_g1")
    expected = json.loads((folder / "expected.json").read_text())
    pairs = [Pair(name=pair.name, left=pair.left, right=pair.right, mirror=-1) for pair in g1().pairs]

    for name, facts in expected.items():
        stage = StageLog(name="floor", log=csvlog.read(folder / name))
        found = numbers(stage, judging=Judging(stage="floor", pairs=pairs))
        assert found["asym_max_deg"] == pytest.approx(facts["worst_abs_sum_deg"], abs=1e-3)


def test_a_summary_has_the_shape_that_is_signed() -> None:
    found = numbers(
        floor({**LEVEL, "q:l": [0.1] * 4, "q:r": [-0.1] * 4, "tgt:l": [0.2] * 4}, **STANDING),
        run=RunFacts(stopped_by="completed"),
    )

    assert not shape.errors_in(found, SUMMARY)
    assert list(found) == list(samples.summary())


# Tilt.


@pytest.mark.parametrize(
    ("gravity", "degrees"),
    [
        ((0, 0, -1), 0),
        ((1, 0, 0), 90),
        ((0, 0, 1), 180),
        ((0.5, 0, -0.8660254), 30),
        ((0, 0.75, -0.75), 45),
        ((0, 0, -1.5), 0),
        ((0, 0, -0.5), 0),
        ((0, 0, -1.51), None),
        ((0, 0, -0.49), None),
        ((0, 0, 0), None),
        ((0, 0, -9.81), None),
        ((0, None, -1), None),
    ],
)
def test_tilt_is_the_angle_between_gravity_and_down(
    gravity: tuple[float, ...], degrees: float | None
) -> None:
    x, y, z = ([part] * 4 for part in gravity)

    found = numbers(floor({"t": [0, 1, 2, 3], "g_x": x, "g_y": y, "g_z": z}))

    assert found["tilt_mean_deg"] == (degrees if degrees is None else pytest.approx(degrees, abs=1e-4))
    assert found["tilt_max_deg"] == (degrees if degrees is None else pytest.approx(degrees, abs=1e-4))


@pytest.mark.parametrize("scale", [1.0, 0.6])
@pytest.mark.parametrize(("angle", "axis"), [(0.0, 0), (0.3, 0), (0.3, 1), (0.3, 2), (2.5, 1), (math.pi, 0)])
def test_tilt_from_a_quaternion_is_the_tilt_from_gravity(angle: float, axis: int, scale: float) -> None:
    quaternion = [math.cos(angle / 2), 0.0, 0.0, 0.0]
    quaternion[1 + axis] = math.sin(angle / 2)
    names = ["quat_w", "quat_x", "quat_y", "quat_z"]
    columns = {name: [scale * part] * 4 for name, part in zip(names, quaternion, strict=True)}

    found = numbers(floor({"t": [0, 1, 2, 3], **columns}))

    expected = 0.0 if axis == 2 else math.degrees(angle)
    assert found["tilt_mean_deg"] == pytest.approx(expected, abs=1e-3)


def test_gravity_is_believed_before_a_quaternion() -> None:
    upside_down = {"quat_w": [0] * 4, "quat_x": [1] * 4, "quat_y": [0] * 4, "quat_z": [0] * 4}

    assert numbers(floor({**LEVEL, **upside_down}))["tilt_mean_deg"] == 0


def test_rows_without_gravity_are_left_out_of_the_mean() -> None:
    found = numbers(floor({**LEVEL, "g_x": [0, 0, None, 1], "g_z": [-1, -1, -1, 0]}))

    assert found["tilt_mean_deg"] == pytest.approx(90)
    assert found["dropped"]["empty_cells"] == 1


# The window.


def test_the_window_is_the_second_half_by_time_not_by_rows() -> None:
    found = numbers(
        floor({"t": [5, 5.1, 5.2, 5.3, 7, 9], "g_x": [1, 1, 1, 1, 0, 0], "g_y": [0] * 6, "g_z": [-1] * 6})
    )

    assert found["window"] == {"t0": 2.0, "t1": 4.0, "rows": 2}
    assert found["tilt_mean_deg"] == 0


def test_a_row_a_millionth_before_the_middle_is_in_the_window() -> None:
    assert list(formulas.window_rows(np.array([0, 0.9999985, 0.9999995, 2]))) == [False, False, True, True]


@pytest.mark.parametrize("times", [[0.0], [0.0, 0.1], [0, 1, 2, 9]])
def test_fewer_than_two_rows_in_the_window_give_no_number(times: list[float]) -> None:
    level = {name: [values[0]] * len(times) for name, values in LEVEL.items()}

    found = numbers(floor({**level, "t": times, "q:l": [0.0] * len(times), "tgt:l": [0.0] * len(times)}))

    assert found["window"] == {"t0": None, "t1": None, "rows": 0}
    assert (found["tilt_mean_deg"], found["asym_max_deg"], found["tracking_error_rad"]) == (None, None, {})


def test_a_judged_stage_that_did_not_run_gives_no_number() -> None:
    found = numbers(
        StageLog(name="hang", log=log(LEVEL)),
        StageLog(name="floor", status="not_run"),
        run=RunFacts(stopped_by="gate"),
    )

    assert not shape.errors_in(found, SUMMARY)
    assert (found["tilt_mean_deg"], found["log_hz"], found["falls"]) == (None, None, None)
    assert found["asym_deg"] == {"knee": None}
    assert found["stages"][1] == {
        "name": "floor",
        "status": "not_run",
        "t0_s": None,
        "duration_s": None,
        "rows": 0,
        "reason": None,
    }


# Asymmetry and tracking.


@pytest.mark.parametrize(("mirror", "degrees"), [(-1, math.degrees(0.1)), (1, math.degrees(0.5))])
def test_asymmetry_takes_the_pairs_sign(mirror: int, degrees: float) -> None:
    pair = Pair(name="knee", left="l", right="r", mirror=mirror)

    found = numbers(
        floor({**LEVEL, "q:l": [9, 0.2, 0.2, 0.4], "q:r": [9, -0.1, -0.2, -0.2]}),
        judging=Judging(stage="floor", pairs=[pair]),
    )

    assert found["asym_deg"] == {"knee": pytest.approx(degrees)}
    assert found["asym_max_deg"] == found["asym_deg"]["knee"]


def test_asymmetry_looks_only_at_rows_where_both_sides_were_measured() -> None:
    found = numbers(floor({**LEVEL, "q:l": [0, 0, 0.3, 5], "q:r": [0, 0, -0.2, None]}))

    assert found["asym_deg"]["knee"] == pytest.approx(math.degrees(0.1))


def test_a_pair_without_readings_has_no_asymmetry() -> None:
    assert numbers(floor({**LEVEL, "q:l": [1] * 4}))["asym_deg"] == {"knee": None}
    assert numbers(floor({**LEVEL, "q:l": [1] * 4, "q:r": [None] * 4}))["asym_deg"] == {"knee": None}


HIP = Pair(name="hip", left="hl", right="hr", mirror=-1)


@pytest.mark.parametrize("pairs", [(KNEE, HIP), (HIP, KNEE)])
@pytest.mark.parametrize("hip", [{}, {"q:hl": [0.0] * 4}, {"q:hl": [0.0] * 4, "q:hr": [None] * 4}])
def test_the_worst_pair_is_unknown_while_a_judging_pair_is_unmeasured(
    pairs: tuple[Pair, ...], hip: dict[str, list[float | None]]
) -> None:
    stage = floor({**LEVEL, "q:l": [0.1] * 4, "q:r": [0.0] * 4, **hip})

    found = numbers(stage, judging=Judging(stage="floor", pairs=pairs))

    assert found["asym_max_deg"] is None
    assert found["asym_deg"] == {"knee": pytest.approx(math.degrees(0.1)), "hip": None}


def test_the_worst_pair_is_the_largest_of_all_that_judge() -> None:
    columns = {**LEVEL, "q:l": [0.1] * 4, "q:r": [0.0] * 4, "q:hl": [0.3] * 4, "q:hr": [0.0] * 4}

    found = numbers(floor(columns), judging=Judging(stage="floor", pairs=[HIP, KNEE]))

    assert found["asym_max_deg"] == pytest.approx(math.degrees(0.3))
    assert numbers(floor(columns), judging=Judging(stage="floor"))["asym_max_deg"] is None


def test_tracking_is_target_minus_measured_for_each_joint_that_has_both() -> None:
    found = numbers(
        floor(
            {**LEVEL, "q:l": [9, 9, 0.2, 0.3], "tgt:l": [0, 0, 0.1, None], "q:r": [1] * 4, "tgt:x": [1] * 4}
        )
    )

    assert found["tracking_error_rad"] == {"l": pytest.approx(-0.1)}


def test_numbers_at_the_end_of_the_scale_become_null_and_raise_nothing() -> None:
    huge = b"1.7e308,1.7e308,1.7e308,1.7e308,1.7e308,-1.7e308,1.7e308,1.7e308,1.7e308\n"
    names = b"t,g_x,g_y,g_z,q:l,q:r,tgt:r,temp:l,bat_v\n"
    stage = StageLog(name="floor", log=csvlog.read(names + b"-" + huge + huge * 2))

    found = numbers(stage, run=RunFacts(stopped_by="completed"))

    assert not shape.errors_in(found, SUMMARY)
    assert canonical.parse(canonical.dumps(found)) == found
    assert (found["asym_max_deg"], found["tracking_error_rad"]) == (None, {"r": None})
    assert (found["temp_max_c"], found["battery"]["end_v"], found["stages"][0]["duration_s"]) == (
        None,
        None,
        None,
    )


# Rates, falls, temperatures, battery, clock.


def test_rates_are_over_the_whole_judged_stage() -> None:
    found = numbers(floor({**LEVEL, "t": [10, 10.02, 10.04, 10.06], "tick": [100, 102, 104, 106]}))

    assert found["log_hz"] == pytest.approx(50)
    assert found["loop_hz"] == pytest.approx(100)


@pytest.mark.parametrize(
    "tick", [[None, 2, 4, 6], [0, 2, 4, None], [None, 2, 4, None], [0, None, None, 6], [0, 2, 4, 6]]
)
def test_the_loops_rate_is_over_the_time_in_which_ticks_were_read(tick: list[float | None]) -> None:
    found = numbers(floor({**LEVEL, "t": [10, 10.02, 10.04, 10.06], "tick": tick}))

    assert found["loop_hz"] == pytest.approx(100)


@pytest.mark.parametrize("tick", [[None] * 4, [None, 2, None, None]])
def test_fewer_than_two_ticks_give_no_rate(tick: list[float | None]) -> None:
    assert numbers(floor({**LEVEL, "tick": tick}))["loop_hz"] is None


def test_a_simulated_clock_keeps_no_loop_time() -> None:
    stage = floor({**LEVEL, "tick": [0, 1, 2, 3]}, simulated_clock=True)

    assert numbers(stage)["loop_hz"] is None
    assert numbers(floor(LEVEL))["loop_hz"] is None


def test_a_stage_of_one_moment_has_no_rate() -> None:
    found = numbers(floor({**LEVEL, "t": [1] * 4, "tick": [0, 1, 2, 3]}))

    assert (found["log_hz"], found["loop_hz"]) == (None, None)
    assert found["clock"] == {"dups": 3, "gaps": 0}


def test_falls_are_rising_edges_over_the_stages_that_ran() -> None:
    hang = StageLog(name="hang", log=log({**LEVEL, "fall": [0, 1, 0, 0]}))
    stage = floor({**LEVEL, "fall": [1, None, 1, 0]}, **STANDING)
    teleop = StageLog(name="teleop", log=log({**LEVEL, "fall": [0, 1, 0, 1]}), **STANDING)

    found = numbers(hang, stage, teleop)

    assert found["falls"] == 4
    assert found["tilt_protection"] == {"armed": True, "threshold_deg": 45.0}


@pytest.mark.parametrize(
    "stage",
    [
        floor({**LEVEL, "fall": [0] * 4}, free_standing=True),
        floor({**LEVEL, "fall": [0] * 4}),
        floor(LEVEL, **STANDING),
        floor({**LEVEL, "fall": [None] * 4}, **STANDING),
        StageLog(name="floor", status="failed", **STANDING),
    ],
)
def test_falls_are_unknown_where_none_would_have_been_seen(stage: StageLog) -> None:
    assert numbers(stage)["falls"] is None


def test_one_unguarded_stage_makes_the_falls_unknown() -> None:
    stage = floor({**LEVEL, "fall": [0] * 4}, **STANDING)
    teleop = StageLog(name="teleop", log=log({**LEVEL, "fall": [0] * 4}), free_standing=True)

    assert numbers(stage, teleop)["falls"] is None
    assert numbers(stage, teleop)["tilt_protection"] == {"armed": False, "threshold_deg": None}
    assert numbers(stage, StageLog(name="teleop", free_standing=True, status="not_run"))["falls"] == 0


def test_one_standing_stage_without_a_reading_of_fall_makes_the_falls_unknown() -> None:
    stage = floor({**LEVEL, "fall": [0, 1, 0, 0]}, **STANDING)
    blank = log({**LEVEL, "fall": [None] * 4})

    assert numbers(stage, StageLog(name="teleop", log=blank, **STANDING))["falls"] is None
    assert numbers(stage, StageLog(name="hang", log=blank))["falls"] == 1


def test_temperatures_are_what_the_stage_command_said_at_its_stop() -> None:
    stage = floor({**LEVEL, "temp:l": [30, 31, 32, None]})

    found = numbers(stage, run=RunFacts(motor_temps_c={"l": 40.5, "r": None}))

    assert (found["motor_temps_c"], found["temp_max_c"]) == ({"l": 40.5, "r": None}, 40.5)
    assert found["warnings"] == []


def test_temperatures_are_else_the_last_of_the_log_and_it_is_said() -> None:
    hang = StageLog(name="hang", log=log({**LEVEL, "temp:l": [30] * 4, "temp:r": [29] * 4}))
    stage = floor({**LEVEL, "temp:l": [30, 31, 32, None], "temp:r": [None] * 4})

    found = numbers(hang, stage)

    assert (found["motor_temps_c"], found["temp_max_c"]) == ({"l": 32.0, "r": 29.0}, 32.0)
    assert found["warnings"] == ["motor temperatures are the last ones of the log's temp: columns"]


def test_battery_is_what_was_said_or_the_ends_of_the_log() -> None:
    hang = StageLog(name="hang", log=log({**LEVEL, "bat_v": [None, 25.1, 25, 25]}))
    stage = floor({**LEVEL, "bat_v": [25, 24.9, 24.8, None]})

    assert numbers(hang, stage)["battery"] == {"start_v": 25.1, "end_v": 24.8}
    assert numbers(hang, stage, run=RunFacts(battery_end_v=24.5))["battery"] == {
        "start_v": 25.1,
        "end_v": 24.5,
    }
    assert numbers(floor(LEVEL))["battery"] == {"start_v": None, "end_v": None}


def test_gaps_are_steps_longer_than_one_and_a_half_usual_ones() -> None:
    times = [0, 0.02, 0.04, 0.08, 0.10, 0.12, 0.149, 0.17]
    level = {name: [values[0]] * len(times) for name, values in LEVEL.items()}

    assert numbers(floor({**level, "t": times}))["clock"] == {"dups": 0, "gaps": 1}


def test_equal_times_make_no_gaps() -> None:
    times = [0, 0, 0, 1, 1, 1, 2, 2, 2]
    level = {name: [values[0]] * len(times) for name, values in LEVEL.items()}

    assert numbers(floor({**level, "t": times}))["clock"] == {"dups": 6, "gaps": 0}


def test_what_was_dropped_is_summed_over_the_stages() -> None:
    torn = StageLog(name="hang", log=csvlog.read(b"t,q:l\n0,\n\n1,nan\n2,1"))
    stage = StageLog(name="floor", log=csvlog.read(b"t,q:l\n0,1\n1,\n2"))

    assert numbers(torn, stage)["dropped"] == {"torn_tail": 2, "blank_lines": 1, "empty_cells": 3}


# Warnings.


def test_gravity_that_points_up_in_every_stage_is_called_inverted() -> None:
    upside = {**LEVEL, "g_z": [1] * 4}
    hang = StageLog(name="hang", log=log(upside))

    assert numbers(hang, floor(upside))["warnings"] == [
        "gravity looks inverted: the mean tilt is above 90° in every stage"
    ]
    assert numbers(hang, floor(LEVEL))["warnings"] == []


def test_what_was_tolerated_is_said() -> None:
    stage = StageLog(name="floor", log=csvlog.read(b"\xef\xbb\xbft,loop_ms\r\n0,1\r\n1,1\r\n\0\0"))

    assert numbers(stage)["warnings"] == [
        "floor: 2 NUL bytes behind the last line end, as after a loss of power",
        "floor: the log starts with a byte order mark",
        "floor: the log has CRLF line ends",
        "floor: 1 columns that version 1 does not know were not looked at",
    ]


def test_a_robot_that_hangs_unlike_the_control_is_asked_for_its_joint_order() -> None:
    hang = {"asym_max_deg": 20.0, "tracking_error_rad": {"l": 0.0}}
    control = {"asym_max_deg": 2.0, "tracking_error_rad": {"l": 0.0}}
    off = {"asym_max_deg": 2.0, "tracking_error_rad": {"l": 0.4, "r": None}}

    assert summary.joint_order_warning(control, control) is None
    assert "joint order?" in str(summary.joint_order_warning(hang, control))
    assert "joint order? l misses" in str(summary.joint_order_warning(off, control))


# Hub and driver.


def test_the_hub_derives_what_the_driver_signed() -> None:
    stages = [floor({**LEVEL, "q:l": [0.1] * 4, "q:r": [0.2] * 4, "tgt:l": [0.3] * 4})]
    signed = numbers(*stages, run=RunFacts(stopped_by="completed"))

    assert summary.compare(signed, summary.rederive(stages, FLOOR)) == {"state": "agrees", "differences": []}


@pytest.mark.parametrize(
    ("changes", "differences"),
    [
        ({"tilt_mean_deg": 1.18 + 0.9e-6}, []),
        ({"tilt_mean_deg": 1.5}, [{"key": "tilt_mean_deg", "driver": 1.5, "hub": 1.18}]),
        ({"tilt_max_deg": None}, [{"key": "tilt_max_deg", "driver": None, "hub": 2.65}]),
        ({"asym_deg": {}}, [{"key": "asym_deg.knee", "driver": None, "hub": 2.56}]),
        (
            {"tracking_error_rad": {"left_knee_joint": -0.031, "x": 1.0}},
            [{"key": "tracking_error_rad.x", "driver": 1.0, "hub": None}],
        ),
        ({"falls": 3, "loop_hz": None}, []),
    ],
)
def test_every_number_that_differs_is_named_with_both_values(
    changes: dict[str, Any], differences: list[dict[str, Any]]
) -> None:
    keys = ["tilt_mean_deg", "tilt_max_deg", "asym_max_deg", "asym_deg", "tracking_error_rad"]
    hub = {key: samples.summary()[key] for key in keys}

    found = summary.compare(samples.summary(**changes), hub)

    assert found == {"state": "differs" if differences else "agrees", "differences": differences}


def test_judging_is_read_from_the_sheet() -> None:
    pair = Pair(name="knee", left="left_knee_joint", right="right_knee_joint", mirror=1)

    assert Judging.of_sheet(samples.run_sheet()) == Judging(stage="floor", pairs=(pair,), formulas=1)
