import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trials.rules.runs import SIDES, control, past, run, summary
from trials.rules.noise import ControlPair, Spread, compare, fraction_between, spread
from trials.rules.runs import Measure

TILT = Measure("tilt_mean_deg")


def compared(runs, *, history=(), holds=True, metric="tilt_mean_deg"):
    found = compare(runs, sides=SIDES, past=history, holds=holds)
    return next(comparison for comparison in found if comparison["metric"] == metric)


def session(*, first=2.0, candidate=2.2, last=3.0, minute=30, **last_facts):
    """A control at nine, a candidate, the control again an hour later."""
    return [
        control(1, minutes=0, summary=summary(tilt_mean_deg=first)),
        run(minutes=minute, summary=summary(tilt_mean_deg=candidate)),
        control(3, minutes=60, summary=summary(tilt_mean_deg=last), **last_facts),
    ]


def test_the_spread_is_worked_out_from_the_differences_of_past_pairs():
    """√((0.09 + 0.16 + 0.25) / 6) = 0.288675."""
    found = spread(past(0.3, -0.4, 0.5), TILT, SIDES)

    assert found == Spread(pytest.approx(0.288675, abs=1e-6), 3)
    assert found.limit == pytest.approx(1.299229, abs=1e-6)


def test_a_drift_that_comes_back_every_session_widens_the_spread():
    assert spread(past(0.5, 0.5, 0.5), TILT, SIDES).s_r == pytest.approx(0.5 / math.sqrt(2))


def test_two_past_pairs_are_too_few_for_a_spread():
    assert spread(past(0.3, -0.4), TILT, SIDES) is None


def test_a_past_pair_without_the_number_is_no_repeat():
    half = ControlPair(summary(tilt_mean_deg=None), summary())

    assert spread([*past(0.3, -0.4), half], TILT, SIDES) is None
    assert spread([*past(0.3, -0.4, 0.5), half], TILT, SIDES).n == 3


def test_the_floor_against_the_mean_of_controls():
    """t₀.₉₇₅,₃ · 0.288675 · √(1 + 1/k): k = 1 gives 1.299229, k = 2 gives 1.125165."""
    found = spread(past(0.3, -0.4, 0.5), TILT, SIDES)

    assert found.floor_of_mean(1) == pytest.approx(1.299229, abs=1e-6)
    assert found.floor_of_mean(2) == pytest.approx(1.125165, abs=1e-6)


@given(st.floats(0, 1))
def test_half_way_between_the_controls_a_session_sees_most(fraction):
    found = Spread(0.3, 5)

    assert found.floor_at(0.5) <= found.floor_at(fraction) <= found.floor_at(0) == pytest.approx(found.limit)
    assert found.floor_at(0.5) == pytest.approx(found.floor_of_mean(2))


def test_a_candidate_is_compared_with_the_control_as_it_had_drifted_by_then():
    found = compared(session(minute=15))

    assert found["drift"] == pytest.approx(1.0)
    assert found["fraction"] == pytest.approx(0.25)
    assert found["control_mean"] == pytest.approx(2.5)
    assert found["control_interpolated"] == pytest.approx(2.25)
    assert found["from_mean"] == pytest.approx(-0.3)
    assert found["from_interpolated"] == pytest.approx(-0.05)


def test_position_clock_and_waiting_time_stand_beside_a_comparison():
    found = compared(session(minute=30))

    assert (found["position"], found["clock_s"], found["waited_s"]) == (2, 1800.0, 1500.0)


def test_waiting_is_counted_from_the_last_run_that_took_place():
    first, _, last = session(minute=30)
    never_ran = run("trl_y", position=2, log="awaiting", is_closed=True)
    later = run("trl_x", position=3, minutes=30)

    found = compare([first, never_ran, later, last], sides=SIDES, past=(), holds=None)

    assert {c["waited_s"] for c in found if c["trial"] == "trl_x"} == {1500.0}
    assert {c["value"] for c in found if c["trial"] == "trl_y"} == {None}


def test_the_noise_floor_is_that_of_the_time_the_candidate_ran():
    found = compared(session(minute=30), history=past(0.3, -0.4, 0.5))

    assert found["noise_floor"] == {"value": pytest.approx(1.125165, abs=1e-6), "n": 3}
    assert found["words"] is None


def test_without_three_past_pairs_it_says_one_run_no_interval():
    found = compared(session(), history=past(0.3, -0.4))

    assert (found["noise_floor"], found["words"]) == (None, "one run, no interval")


def test_two_different_controls_have_no_drift_to_interpolate():
    found = compared(session(checkpoint="ckp_d"), history=past(0.3, -0.4, 0.5))

    assert (found["drift"], found["control_interpolated"], found["from_interpolated"]) == (None, None, None)
    assert found["from_mean"] == pytest.approx(-0.3)
    assert found["noise_floor"]["value"] == pytest.approx(1.125165, abs=1e-6)


def test_with_one_control_log_the_other_is_not_invented():
    first, candidate, _ = session()
    last = control(3, log="missing", minutes=60)

    found = compared([first, candidate, last], history=past(0.3, -0.4, 0.5))

    assert (found["control_mean"], found["drift"], found["control_interpolated"]) == (2.0, None, None)
    assert found["noise_floor"]["value"] == pytest.approx(1.299229, abs=1e-6)


@pytest.mark.parametrize(("holds", "decides"), [(True, True), (None, True), (False, False)])
def test_once_the_bracket_does_not_hold_a_comparison_says_that_it_decides_nothing(holds, decides):
    assert compared(session(), holds=holds)["decides"] is decides


def test_tracking_is_compared_by_its_worst_joint():
    runs = session()
    runs[2] = control(
        3, minutes=60, summary=summary(tracking_error_rad={"left_knee": 0.0, "right_knee": -0.07})
    )

    assert compared(runs, metric="tracking_error_rad")["drift"] == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("first", "candidate", "last", "fraction"),
    [
        (0, 0, 60, 0.0),
        (0, 45, 60, 0.75),
        (0, 60, 60, 1.0),
        (0, 70, 60, None),
        (0, 0, 0, None),
        (None, 5, 9, None),
    ],
)
def test_a_time_between_the_controls_is_a_fraction(first, candidate, last, fraction):
    found = fraction_between(control(1, minutes=first), run(minutes=candidate), control(3, minutes=last))

    assert found == fraction


number = st.none() | st.floats()


@given(number, number, number, st.lists(st.floats(), max_size=4), st.sampled_from([True, False, None]))
def test_no_comparison_holds_a_number_that_is_none(first, candidate, last, differences, holds):
    runs = session(first=first, candidate=candidate, last=last)

    json.dumps(compare(runs, sides=SIDES, past=past(*differences), holds=holds), allow_nan=False)
