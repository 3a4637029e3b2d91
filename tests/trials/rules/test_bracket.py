import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import cases
from tests.trials.rules.runs import SIDES, control, past, summary
from trials.rules.bracket import DEFAULT, BadTolerances, bracket, plan_tolerances, sentence


def bracket_of(first, last, tolerances=DEFAULT, **facts):
    """Two control runs with these numbers changed, or in these states."""
    runs = [
        control(1, **({"log": first} if isinstance(first, str) else {"summary": summary(**first)})),
        control(4, **({"log": last} if isinstance(last, str) else {"summary": summary(**last)}), **facts),
    ]
    return bracket(runs, tolerances, SIDES)


def metric_of(found, name):
    return next(metric for metric in found["metrics"] if metric["metric"] == name)


def test_two_equal_controls_hold():
    found = bracket_of({}, {})

    assert (found["holds"], found["reason"]) == (True, None)
    assert found["falls"] == {"first": 0, "last": 0, "equal": True}


def test_the_answer_has_the_shape_of_the_contract():
    found = bracket_of({"tilt_mean_deg": 1.0}, {"tilt_mean_deg": 1.5})

    assert set(found) == {"holds", "reason", "falls", "metrics"}
    assert [metric["metric"] for metric in found["metrics"]] == [
        "tilt_mean_deg",
        "tracking_error_rad",
        "asym_max_deg",
        "tilt_max_deg",
        "loop_hz",
    ]
    assert metric_of(found, "tilt_mean_deg") == {
        "metric": "tilt_mean_deg",
        "decides": True,
        "first": 1.0,
        "last": 1.5,
        "difference": 0.5,
        "tolerance": {"value": 1.0, "source": "fixed"},
        "within": True,
    }
    assert metric_of(found, "loop_hz")["tolerance"] is None
    assert metric_of(found, "loop_hz")["within"] is None


@pytest.mark.parametrize(
    ("last", "holds"),
    [
        ({"tilt_mean_deg": 2.2}, True),  # 2.2 - 1.2 is a little over 1.0 in binary
        ({"tilt_mean_deg": 0.2}, True),
        ({"tilt_mean_deg": 2.201}, False),
        ({"tilt_mean_deg": 0.199}, False),
        ({"tracking_error_rad": {"left_knee": 0.08, "right_knee": 0.02}}, True),
        ({"tracking_error_rad": {"left_knee": 0.03, "right_knee": -0.081}}, False),
        ({"tracking_error_rad": {"left_knee": 0.03, "right_knee": 0.02}}, True),  # the sign alone changed
        ({"asym_max_deg": 30.0, "tilt_max_deg": 30.0, "loop_hz": 10.0}, True),
        ({"asym_max_deg": None, "tilt_max_deg": None, "loop_hz": None}, True),
        ({"falls": 1}, False),
    ],
)
def test_it_holds_while_falls_are_equal_and_every_deciding_metric_is_within(last, holds):
    assert bracket_of({}, last)["holds"] is holds


def test_an_advisory_metric_out_of_tolerance_is_shown_and_does_not_decide():
    found = bracket_of({}, {"asym_max_deg": 30.0})

    assert metric_of(found, "asym_max_deg")["within"] is False
    assert found["holds"] is True


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ({"tilt_mean_deg": None}, {}),
        ({}, {"tilt_mean_deg": None}),
        ({"tilt_mean_deg": None}, {"tilt_mean_deg": None}),
        ({"tilt_mean_deg": math.nan}, {}),
        ({}, {"tracking_error_rad": {}}),
        ({}, {"tracking_error_rad": {"left_knee": -0.03, "right_knee": None}}),
        ({"falls": None}, {}),
        ({}, {"falls": None}),
        ({"falls": None}, {"falls": None, "tilt_mean_deg": None}),
        ({}, {"falls": 1, "tilt_mean_deg": None}),
    ],
)
def test_a_number_that_decides_and_is_not_there_leaves_it_unmeasured(first, last):
    found = bracket_of(first, last)

    assert (found["holds"], found["reason"]) == (None, "unmeasured")


def test_falls_known_of_one_run_alone_are_neither_equal_nor_unequal():
    assert bracket_of({}, {"falls": None})["falls"] == {"first": 0, "last": None, "equal": None}


def test_falls_that_neither_run_could_count_do_not_decide():
    found = bracket_of({"falls": None}, {"falls": None})

    assert found["falls"] == {"first": None, "last": None, "equal": None}
    assert found["holds"] is True
    assert bracket_of({"falls": None}, {"falls": None, "tilt_mean_deg": 9.0})["holds"] is False


@pytest.mark.parametrize(
    ("first", "last", "reason"),
    [
        ("awaiting", "awaiting", "waiting"),
        ({}, "awaiting", "waiting"),
        ("awaiting", {}, "waiting"),
        ({}, "missing", "log_missing"),
        ("malformed", {}, "log_missing"),
        ("missing", "awaiting", "log_missing"),
        ("missing", "missing", "log_missing"),
    ],
)
def test_without_both_logs_it_says_why(first, last, reason):
    found = bracket_of(first, last)

    assert (found["holds"], found["reason"]) == (None, reason)


def test_the_first_runs_numbers_are_shown_while_the_second_is_awaited():
    metric = metric_of(bracket_of({}, "awaiting"), "tilt_mean_deg")

    assert (metric["first"], metric["last"], metric["difference"], metric["within"]) == (
        1.2,
        None,
        None,
        None,
    )


def test_a_control_that_will_never_run_leaves_its_log_missing():
    assert bracket_of({}, "awaiting", is_closed=True)["reason"] == "log_missing"


@pytest.mark.parametrize("runs", [[], [control(1)]])
def test_without_a_second_control_run_there_is_no_bracket(runs):
    found = bracket(runs, DEFAULT, SIDES)

    assert (found["holds"], found["reason"]) == (None, "no_second_control")


def test_two_different_controls_show_their_difference_and_never_call_it_drift():
    found = bracket_of({}, {"tilt_mean_deg": 9.2}, checkpoint="ckp_d")

    assert (found["holds"], found["reason"]) == (None, "two_controls")
    assert metric_of(found, "tilt_mean_deg")["difference"] == pytest.approx(8.0)
    assert metric_of(found, "tilt_mean_deg")["within"] is None
    assert "no drift" in sentence(found)


def test_two_different_controls_are_no_bracket_whether_or_not_their_logs_are_there():
    assert bracket_of({}, "awaiting", checkpoint="ckp_d")["reason"] == "two_controls"


def test_the_order_of_the_runs_is_their_position():
    runs = [control(4, summary=summary(tilt_mean_deg=1.5)), control(1)]

    assert metric_of(bracket(runs, DEFAULT, SIDES), "tilt_mean_deg")["difference"] == pytest.approx(0.3)


number = st.none() | st.floats(-1e6, 1e6) | st.just(math.nan)
numbers = st.fixed_dictionaries(
    {
        "tilt_mean_deg": number,
        "asym_max_deg": number,
        "falls": st.none() | st.integers(0, 3),
        "tracking_error_rad": st.dictionaries(st.sampled_from(["a", "b"]), number),
    }
)
states = numbers | st.sampled_from(["awaiting", "missing", "malformed"])


@given(states, states)
def test_what_is_refused_or_held_does_not_depend_on_which_run_came_first(first, last):
    there, back = bracket_of(first, last), bracket_of(last, first)

    assert (there["holds"], there["reason"]) == (back["holds"], back["reason"])
    for one, other in zip(there["metrics"], back["metrics"], strict=True):
        assert one["within"] == other["within"]
        assert one["difference"] == (other["difference"] and -other["difference"])


@given(states, states)
def test_holds_is_null_exactly_when_a_reason_is_given(first, last):
    found = bracket_of(first, last)

    assert (found["holds"] is None) == (found["reason"] is not None)
    assert sentence(found)
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(("name", "holds"), [("s1_{}_control_floor.csv", True), ("s2_{}_floor.csv", False)])
def test_the_simulated_g1_sessions_hold_and_do_not(name, holds):
    expected = json.loads(cases.path("logs/sim_g1/expected.json").read_text())
    ends = {"s1_{}_control_floor.csv": ("1", "3"), "s2_{}_floor.csv": ("1_control", "4_control_polluted")}[
        name
    ]
    first, last = (
        {
            "tilt_mean_deg": expected[name.format(end)]["tilt_mean_deg"],
            "tracking_error_rad": expected[name.format(end)]["tracking_rad"],
        }
        for end in ends
    )

    found = bracket_of(first, last)

    assert found["holds"] is holds
    worst = metric_of(found, "tracking_error_rad")
    assert worst["difference"] == pytest.approx(-0.014492 if holds else 0.38609 - 0.195521)


def test_the_sentence_names_what_broke_it_with_both_values_and_the_limit():
    assert sentence(bracket_of({}, {"tilt_mean_deg": 3.5, "falls": 1})) == (
        "The bracket does not hold: falls 0 → 1; mean tilt 1.2° → 3.5° (limit ±1°). "
        "This session decides nothing."
    )


def test_the_sentence_of_one_that_holds_shows_both_values():
    assert sentence(bracket_of({}, {"tilt_mean_deg": 1.5})) == (
        "The bracket holds. The control, first and last: mean tilt 1.2° → 1.5° (limit ±1°), "
        "tracking error 0.03 rad → 0.03 rad (limit ±0.05 rad)."
    )


def plan(*asked, history=()):
    return {tolerance["metric"]: tolerance for tolerance in plan_tolerances(asked, past=history, sides=SIDES)}


def test_a_plan_that_asks_for_nothing_has_the_defaults():
    assert list(plan().values()) == list(DEFAULT)


def test_a_plan_names_what_decides_and_how_far_apart_it_may_be():
    planned = plan(
        {"metric": "tilt_mean_deg", "decides": False},
        {"metric": "asym_max_deg", "decides": True, "tolerance": {"value": 0.7, "source": "fixed"}},
        {"metric": "temp_max_c", "tolerance": {"value": 5, "source": "fixed"}},
    )

    assert planned["tilt_mean_deg"]["decides"] is False
    assert planned["tilt_mean_deg"]["tolerance"] == {"value": 1.0, "source": "fixed"}
    assert planned["asym_max_deg"] == {
        "metric": "asym_max_deg",
        "decides": True,
        "tolerance": {"value": 0.7, "source": "fixed"},
    }
    assert planned["temp_max_c"]["decides"] is False
    assert len(planned) == len(DEFAULT) + 1


def test_a_limit_of_zero_asks_for_the_very_same_number():
    tolerances = plan_tolerances(
        [{"metric": "tilt_mean_deg", "tolerance": {"source": "fixed", "value": 0}}], past=(), sides=SIDES
    )

    assert bracket_of({}, {}, tolerances)["holds"] is True
    assert bracket_of({}, {"tilt_mean_deg": 1.2001}, tolerances)["holds"] is False


def test_a_limit_from_history_is_worked_out_from_the_past_pairs():
    """d = 0.3, −0.4, 0.5: s_r = √(0.50 / 6) = 0.288675; t₀.₉₇₅,₃·√2·s_r = 3.182446 × 0.408248 = 1.299229."""
    asked = {"metric": "tilt_mean_deg", "tolerance": {"source": "history"}}

    limit = plan(asked, history=past(0.3, -0.4, 0.5))["tilt_mean_deg"]["tolerance"]

    assert limit == {"value": pytest.approx(1.299229, abs=1e-6), "source": "history", "n": 3}


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ({"metric": "tilt_mean_deg", "tolerance": {"source": "history"}}, "tolerances.0.tolerance.source"),
        ({"metric": "falls"}, "tolerances.0.metric"),
        ({"metric": "speed"}, "tolerances.0.metric"),
        ({"metric": ["tilt_mean_deg"]}, "tolerances.0.metric"),
        ({}, "tolerances.0.metric"),
        ({"metric": "tilt_mean_deg", "decides": 1}, "tolerances.0.decides"),
        ({"metric": "tilt_mean_deg", "tolerance": None}, "tolerances.0.tolerance"),
        ({"metric": "loop_hz", "decides": True}, "tolerances.0.tolerance"),
        ({"metric": "loop_hz", "tolerance": 1.0}, "tolerances.0.tolerance"),
        (
            {"metric": "loop_hz", "tolerance": {"source": "guess", "value": 1}},
            "tolerances.0.tolerance.source",
        ),
        ({"metric": "loop_hz", "tolerance": {"source": "fixed"}}, "tolerances.0.tolerance.value"),
        (
            {"metric": "loop_hz", "tolerance": {"source": "fixed", "value": -1}},
            "tolerances.0.tolerance.value",
        ),
        (
            {"metric": "loop_hz", "tolerance": {"source": "fixed", "value": math.nan}},
            "tolerances.0.tolerance.value",
        ),
        (
            {"metric": "loop_hz", "tolerance": {"source": "history", "value": 1}},
            "tolerances.0.tolerance.value",
        ),
        ({"metric": "loop_hz", "limit": 1}, "tolerances.0.limit"),
    ],
)
def test_a_tolerance_that_says_too_little_or_too_much_is_refused_by_its_path(asked, path):
    with pytest.raises(BadTolerances) as refused:
        plan(asked, history=past(0.1, 0.2))

    assert list(refused.value.errors) == [path]


def test_a_metric_may_not_be_there_twice():
    with pytest.raises(BadTolerances) as refused:
        plan({"metric": "loop_hz"}, {"metric": "loop_hz"})

    assert list(refused.value.errors) == ["tolerances.1.metric"]


def test_a_plan_in_which_nothing_decides_is_refused():
    with pytest.raises(BadTolerances) as refused:
        plan(
            {"metric": "tilt_mean_deg", "decides": False}, {"metric": "tracking_error_rad", "decides": False}
        )

    assert list(refused.value.errors) == ["tolerances"]
