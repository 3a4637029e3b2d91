import math

import pytest

from tests.trials.rules.runs import PAIRS, SIDES, run, summary
from trials.rules.runs import Measure, hub_view, sides_of, value_of, values_of

TRACKING = "tracking_error_rad"


def test_the_sides_of_a_pair_come_from_the_sheet():
    assert sides_of(PAIRS) == SIDES


@pytest.mark.parametrize(
    ("joint", "value"),
    [("left_knee", 0.03), ("right_knee", 0.02), ("knee", 0.03), (None, 0.03), ("hip", None)],
    ids=["one side", "other side", "pair", "no joint", "unknown joint"],
)
def test_a_tracking_error_is_the_size_of_the_worse_side(joint, value):
    assert value_of(summary(), Measure(TRACKING, joint), SIDES) == value


def test_a_pair_with_one_side_unmeasured_is_unmeasured():
    half = summary(tracking_error_rad={"left_knee": 0.5, "right_knee": None})

    assert value_of(half, Measure(TRACKING, "knee"), SIDES) is None


def test_a_joint_that_is_named_like_a_pair_is_the_joint():
    both = summary(tracking_error_rad={"knee": 0.1, "left_knee": 0.5, "right_knee": 0.5})

    assert value_of(both, Measure(TRACKING, "knee"), SIDES) == 0.1


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None, "1.2", True, [1.2]])
def test_what_is_no_finite_number_is_unmeasured(value):
    assert value_of(summary(tilt_mean_deg=value), Measure("tilt_mean_deg"), SIDES) is None
    assert value_of(summary(tracking_error_rad={"hip": value}), Measure(TRACKING, "hip"), SIDES) is None


@pytest.mark.parametrize("found", [None, {}, {"tracking_error_rad": None}, {"tracking_error_rad": []}])
def test_a_summary_without_the_number_is_unmeasured(found):
    assert value_of(found, Measure(TRACKING), SIDES) is None


def test_the_worst_of_two_runs_is_over_the_same_joints_or_none():
    first = summary(tracking_error_rad={"left_knee": 0.1, "right_knee": 0.4})
    last = summary(tracking_error_rad={"left_knee": 0.2, "right_knee": None})

    assert values_of(first, last, Measure(TRACKING), SIDES) == (0.4, None)


def test_a_joint_that_neither_run_measured_is_left_out_of_the_worst():
    first = summary(tracking_error_rad={"left_knee": 0.1, "waist": None})
    last = summary(tracking_error_rad={"left_knee": -0.2})

    assert values_of(first, last, Measure(TRACKING), SIDES) == (0.1, 0.2)


def test_the_hubs_view_has_its_own_numbers_where_they_differ():
    check = {
        "state": "differs",
        "differences": [
            {"key": "tilt_mean_deg", "driver": 1.2, "hub": 9.0},
            {"key": "tracking_error_rad.left_knee", "driver": -0.03, "hub": 0.3},
            {"key": "asym_deg.knee", "driver": 1.0, "hub": None},
        ],
    }

    seen = hub_view(run(hub_check=check))

    assert seen["tilt_mean_deg"] == 9.0
    assert seen["tracking_error_rad"] == {"left_knee": 0.3, "right_knee": 0.02}
    assert seen["asym_deg"] == {"knee": None}
    assert seen["tilt_max_deg"] == 2.6


@pytest.mark.parametrize("check", [None, {"state": "agrees", "differences": []}, {"state": "unchecked"}])
def test_without_a_difference_the_hubs_view_is_the_drivers(check):
    assert hub_view(run(hub_check=check)) == summary()


@pytest.mark.parametrize(
    ("log", "is_closed", "awaited", "lost"),
    [
        ("awaiting", False, True, False),
        ("awaiting", True, False, True),
        ("uploaded", False, False, False),
        ("missing", False, False, True),
        ("malformed", False, False, True),
    ],
)
def test_a_log_is_awaited_there_or_lost(log, is_closed, awaited, lost):
    known = run(log=log, is_closed=is_closed)

    assert (known.is_awaited, known.is_lost, known.measured is not None) == (awaited, lost, log == "uploaded")
