import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.bodies.base import State
from driver.policy.abort import AbortWatch, readings, rules_for, tilt_deg, tilt_threshold
from driver.policy.order import AbortRule, Limits, Stage
from tests.driver.policy.puppet import leaning

FLOOR = Stage(name="floor", free_standing=True)
HANG = Stage(name="hang")


def rule(metric: str = "tilt_deg", op: str = ">", value: float = 45.0, **more: object) -> AbortRule:
    return AbortRule(metric=metric, op=op, value=value, **more)  # type: ignore[arg-type]


def state(**changes: object) -> State:
    usual = {
        "joint_pos": np.zeros(2),
        "joint_vel": np.zeros(2),
        "ang_vel": np.zeros(3),
        "gravity": np.array([0.0, 0.0, -1.0]),
    }
    return State(**(usual | changes))  # type: ignore[arg-type]


# Which rules there are.


def test_a_rule_acts_only_in_its_stages():
    meant = rules_for(HANG, [rule(stages=("floor",)), rule(metric="action_abs", value=3.0)], Limits())

    assert [one.metric for one in meant if one.value in (45.0, 3.0)] == ["action_abs"]


def test_the_boxs_own_limits_are_rules_whatever_the_sheet_says():
    own = rules_for(FLOOR, [], Limits(tilt_deg=60, temp_c=85, joint_vel_rad_s=20))

    assert {(one.metric, one.value) for one in own} == {
        ("tilt_deg", 60),
        ("temp_c", 85),
        ("joint_vel_rad_s", 20),
    }


def test_what_hangs_may_tilt():
    assert tilt_threshold(rules_for(HANG, [], Limits())) is None


def test_of_two_rules_the_stricter_acts():
    both = rules_for(FLOOR, [rule(value=45.0), rule(value=30.0)], Limits(tilt_deg=60))

    assert tilt_threshold(both) == 30.0


# What they read.


@pytest.mark.parametrize("deg", [0.0, 1.0, 45.0, 90.0, 135.0, 180.0])
def test_tilt_is_the_angle_to_gravity(deg: float):
    assert tilt_deg(leaning(deg)) == pytest.approx(deg, abs=1e-5)


@pytest.mark.parametrize(("z", "tilt"), [(-1.0000002, 0.0), (1.0000002, 180.0)])
def test_a_vector_that_rounding_made_too_long_still_has_a_tilt(z: float, tilt: float):
    assert tilt_deg(np.array([0.0, 0.0, z])) == tilt


@pytest.mark.parametrize("gravity", [(0, 0, 0), (0, 0, -9.81), (math.nan, 0, -1)])
def test_what_is_no_direction_has_no_tilt(gravity: tuple[float, ...]):
    assert tilt_deg(np.array(gravity, dtype=float)) is None


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=3), st.floats(0.6, 1.4))
def test_tilt_does_not_depend_on_the_vectors_length(parts: list[float], length: float):
    vector = np.array(parts)
    norm = float(np.linalg.norm(vector))
    if norm < 0.1:
        return

    unit = vector / norm

    assert tilt_deg(unit * length) == pytest.approx(tilt_deg(unit), abs=1e-4)


def test_every_metric_reads_what_its_name_says():
    read = readings(
        state(
            joint_pos=np.array([0.1, -0.5]),
            joint_vel=np.array([3.0, -7.0]),
            temps_c=np.array([41.0, math.nan]),
            battery_v=47.5,
            age_s=0.02,
        ),
        gap_s=0.021,
        command_age_s=0.5,
        targets=np.array([0.2, -0.1]),
        action=np.array([0.5, -2.5]),
    )

    assert read == {
        "tilt_deg": 0.0,
        "joint_error_rad": pytest.approx(0.4),
        "joint_vel_rad_s": 7.0,
        "temp_c": 41.0,
        "battery_v": 47.5,
        "loop_gap_ms": pytest.approx(21.0),
        "action_abs": 2.5,
        "state_age_ms": pytest.approx(20.0),
        "command_age_ms": pytest.approx(500.0),
    }


def test_what_the_body_does_not_measure_reads_as_nothing():
    read = readings(state(temps_c=np.array([math.nan])), gap_s=None)

    assert [key for key, value in read.items() if value is None] == [
        "joint_error_rad",
        "temp_c",
        "battery_v",
        "loop_gap_ms",
        "action_abs",
        "command_age_ms",
    ]


# When they act.


@pytest.mark.parametrize(
    ("op", "value", "trips"),
    [
        (">", 45.0, False),
        (">", 45.001, True),
        (">=", 45.0, True),
        ("<", 45.0, False),
        ("<", 44.9, True),
        ("<=", 45.0, True),
    ],
)
def test_a_rule_compares_as_it_is_written(op: str, value: float, trips: bool):
    watch = AbortWatch([rule(op=op)])

    assert (watch.tripped({"tilt_deg": value}, 0.0) is not None) is trips


def test_a_lasting_rule_waits_until_it_has_lasted():
    watch = AbortWatch([rule(for_s=0.1)])

    tripped = [watch.tripped({"tilt_deg": 50.0}, tick * 0.02) is not None for tick in range(7)]

    assert tripped == [False, False, False, False, False, True, True]


def test_a_pause_begins_a_lasting_rule_anew():
    watch = AbortWatch([rule(for_s=0.1)])
    tilts = [50.0, 50.0, 50.0, 10.0, 50.0, 50.0, 50.0, 50.0]

    assert not any(watch.tripped({"tilt_deg": tilt}, at * 0.02) for at, tilt in enumerate(tilts))


def test_what_is_not_measured_breaks_no_rule():
    watch = AbortWatch([rule(metric="battery_v", op="<", value=40.0)])

    assert watch.tripped({"battery_v": None}, 0.0) is None


def test_a_rule_says_itself_in_words():
    assert str(rule()) == "tilt_deg > 45"
    assert str(rule(for_s=0.5)) == "tilt_deg > 45 for 0.5 s"
