import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trials.rules.runs import SIDES, control, past, run, summary
from trials.rules.criteria import Case, judge

AGAINST_CONTROL = {"id": "tilt-vs-control", "metric": "tilt_mean_deg", "op": "<=control"}


def judged(criterion, **facts):
    """The one criterion of a case; its own run and two controls have ordinary logs unless said otherwise."""
    whole = {"own": run(), "controls": [control(1), control(3)], "criteria": [criterion], "sides": SIDES}
    return judge(Case(**{**whole, **facts}))[0]


def threshold(op="<=", limit=1.5, metric="tilt_mean_deg", **more):
    return {"id": "limit", "metric": metric, "op": op, "threshold": limit, **more}


def as_in_sim(sim=1.0, tolerance=0.5, metric="tilt_mean_deg", **more):
    return {
        "id": "sim",
        "metric": metric,
        "op": "as_in_sim",
        "sim_value": sim,
        "tolerance": tolerance,
        **more,
    }


def gate(key="tilt", op="<=", limit=2.0, metric="tilt_mean_deg", **more):
    return {"key": key, "metric": metric, "op": op, "threshold": limit, "conditions": {}, **more}


@pytest.mark.parametrize(
    ("op", "limit", "result", "margin"),
    [
        ("<=", 1.2, "PASS", 0.0),
        ("<=", 1.0, "FAIL", -0.2),
        ("<", 1.2, "FAIL", 0.0),
        ("<", 1.5, "PASS", 0.3),
        (">=", 1.2, "PASS", 0.0),
        (">=", 1.5, "FAIL", -0.3),
        (">", 1.2, "FAIL", 0.0),
        (">", 1.0, "PASS", 0.2),
        ("==", 1.2, "PASS", 0.0),
        ("==", 1.5, "FAIL", -0.3),
    ],
)
def test_a_value_is_held_against_its_threshold(op, limit, result, margin):
    found = judged(threshold(op, limit))

    assert (found["result"], found["value"], found["threshold"]) == (result, 1.2, limit)
    assert found["margin"] == pytest.approx(margin)


def test_the_answer_has_the_shape_of_the_contract_and_no_more():
    assert judged(threshold("==", 0, metric="falls")) == {
        "id": "limit",
        "metric": "falls",
        "op": "==",
        "threshold": 0,
        "value": 0,
        "result": "PASS",
        "margin": 0.0,
        "source": "sheet",
    }


@pytest.mark.parametrize("criterion", [threshold(), as_in_sim(), AGAINST_CONTROL])
@pytest.mark.parametrize(
    ("own", "result"),
    [
        (run(log="awaiting"), "pending"),
        (run(log="awaiting", is_closed=True), "unmeasured"),
        (run(log="missing"), "unmeasured"),
        (run(log="malformed", summary=summary()), "unmeasured"),
        (run(summary=summary(tilt_mean_deg=None)), "unmeasured"),
        (run(summary=summary(tilt_mean_deg=math.nan)), "unmeasured"),
        (run(summary=summary(tilt_mean_deg=-math.inf)), "unmeasured"),
    ],
)
def test_without_its_own_number_nothing_passes_or_fails(criterion, own, result):
    found = judged(criterion, own=own)

    assert (found["result"], found["value"]) == (result, None)
    assert "margin" not in found


@pytest.mark.parametrize(
    ("value", "result", "margin"),
    [
        (1.5, "as_in_sim", 0.0),
        (0.5, "as_in_sim", 0.0),
        (1.2, "as_in_sim", 0.3),
        (1.6, "differs_from_sim", -0.1),
    ],
)
def test_a_comparison_with_simulation_never_passes_or_fails(value, result, margin):
    found = judged(as_in_sim(), own=run(summary=summary(tilt_mean_deg=value)))

    assert (found["result"], found["sim_value"], found["tolerance"]) == (result, 1.0, 0.5)
    assert found["margin"] == pytest.approx(margin)


def test_a_decimal_difference_of_exactly_the_tolerance_is_within_it():
    assert judged(as_in_sim(0.3, 0.1), own=run(summary=summary(tilt_mean_deg=0.4)))["result"] == "as_in_sim"
    assert 0.4 - 0.3 > 0.1


def test_against_control_is_the_mean_of_the_sessions_control_logs():
    controls = [
        control(3, summary=summary(tilt_mean_deg=1.5)),
        control(1, summary=summary(tilt_mean_deg=1.0)),
    ]

    found = judged(AGAINST_CONTROL, controls=controls)

    assert found["control"] == {"mean": 1.25, "runs": [1.0, 1.5]}
    assert found["control_source"] == "session"
    assert found["result"] == "PASS"
    assert found["margin"] == pytest.approx(0.05)


def test_one_control_log_is_enough_to_compare_with():
    found = judged(AGAINST_CONTROL, controls=[control(1), control(3, log="awaiting")])

    assert (found["result"], found["control"]) == ("PASS", {"mean": 1.2, "runs": [1.2]})


@pytest.mark.parametrize(
    ("first", "last", "result", "source"),
    [
        ("awaiting", "awaiting", "pending", None),
        ("missing", "awaiting", "pending", None),
        ("missing", "malformed", "PASS", "baseline"),
        ("missing", "uploaded", "PASS", "session"),
    ],
)
def test_the_baseline_stands_in_only_when_every_control_log_is_lost(first, last, result, source):
    baseline = summary(tilt_mean_deg=1.3)

    found = judged(AGAINST_CONTROL, controls=[control(1, log=first), control(3, log=last)], baseline=baseline)

    assert (found["result"], found.get("control_source"), found["baseline"]) == (result, source, 1.3)


def test_a_control_that_will_never_run_is_not_waited_for():
    controls = [control(1, log="awaiting", is_closed=True), control(3, log="missing")]

    assert judged(AGAINST_CONTROL, controls=controls, baseline=summary())["control_source"] == "baseline"


@pytest.mark.parametrize("baseline", [None, summary(tilt_mean_deg=None)])
def test_with_every_control_log_lost_and_no_baseline_it_is_unmeasured(baseline):
    controls = [control(1, log="missing"), control(3, log="missing")]

    found = judged(AGAINST_CONTROL, controls=controls, baseline=baseline)

    assert found["result"] == "unmeasured"
    assert "control_source" not in found
    assert "baseline" not in found


def test_control_logs_that_lack_the_number_leave_it_pending_until_the_last_one_is_there():
    bare = summary(tilt_mean_deg=None)

    waiting = judged(AGAINST_CONTROL, controls=[control(1, summary=bare), control(3, log="awaiting")])
    done = judged(AGAINST_CONTROL, controls=[control(1, summary=bare), control(3, summary=bare)])

    assert (waiting["result"], done["result"]) == ("pending", "unmeasured")
    assert done["control"] == {"mean": None, "runs": [None, None]}


def test_a_control_is_not_compared_with_a_mean_that_it_is_part_of():
    first, last = control(1), control(3, summary=summary(tilt_mean_deg=1.5))

    found = judged(AGAINST_CONTROL, own=first, controls=[first, last])

    assert found["control"] == {"mean": 1.5, "runs": [1.5]}


def test_a_session_whose_bracket_does_not_hold_says_so_at_every_comparison_with_the_control():
    assert judged(AGAINST_CONTROL, holds=False)["decides"] is False
    assert "decides" not in judged(AGAINST_CONTROL, holds=None)
    assert "decides" not in judged(threshold(), holds=False)


def test_the_noise_floor_stands_beside_a_comparison_with_the_control():
    """t₀.₉₇₅,₃ · 0.288675 · √(3/2) = 1.125165."""
    found = judged(AGAINST_CONTROL, past=past(0.3, -0.4, 0.5))

    assert found["noise_floor"] == pytest.approx(1.125165, abs=1e-6)
    assert judged(AGAINST_CONTROL, past=past(0.3, -0.4))["noise_floor"] is None
    assert "noise_floor" not in judged(threshold(), past=past(0.3, -0.4, 0.5))


@pytest.mark.parametrize(
    ("joint", "value"), [("left_knee", 0.03), ("right_knee", 0.09), ("knee", 0.09), ("hip", None)]
)
def test_tracking_is_judged_by_its_size_and_a_pair_by_its_worse_side(joint, value):
    own = run(summary=summary(tracking_error_rad={"left_knee": 0.03, "right_knee": -0.09}))

    found = judged(threshold("<=", 0.05, metric="tracking_error_rad", joint=joint), own=own)

    assert (found["joint"], found["value"]) == (joint, value)
    assert found["result"] == {0.03: "PASS", 0.09: "FAIL", None: "unmeasured"}[value]


def test_a_signed_tracking_error_of_simulation_is_compared_by_its_size():
    own = run(summary=summary(tracking_error_rad={"left_knee": 0.03, "right_knee": 0.0}))

    found = judged(as_in_sim(-0.04, 0.02, metric="tracking_error_rad", joint="knee"), own=own)

    assert (found["result"], found["sim_value"]) == ("as_in_sim", -0.04)


def differs(*differences):
    return {
        "state": "differs",
        "differences": [{"key": key, "driver": driver, "hub": hub} for key, driver, hub in differences],
    }


def test_a_number_the_hub_gets_differently_is_judged_as_uploaded_and_disputed_with_both():
    own = run(hub_check=differs(("tilt_mean_deg", 1.2, 9.0)))

    found = judged(threshold(), own=own)

    assert (found["result"], found["value"]) == ("PASS", 1.2)
    assert (found["disputed"], found["hub_value"]) == (True, 9.0)


def test_only_the_criteria_on_a_number_that_differs_are_disputed():
    own = run(hub_check=differs(("tracking_error_rad.right_knee", 0.02, 0.025)))

    right = judged(threshold(metric="tracking_error_rad", joint="right_knee"), own=own)
    pair = judged(threshold(metric="tracking_error_rad", joint="knee"), own=own)

    assert right["hub_value"] == 0.025
    assert "disputed" not in pair  # the left knee is the worse one either way
    assert "disputed" not in judged(threshold(), own=own)


def test_a_number_only_the_hub_found_is_unmeasured_and_disputed():
    own = run(summary=summary(tilt_mean_deg=None), hub_check=differs(("tilt_mean_deg", None, 1.1)))

    found = judged(threshold(), own=own)

    assert (found["result"], found["disputed"], found["hub_value"]) == ("unmeasured", True, 1.1)


def test_a_control_the_hub_disputes_makes_the_comparison_disputed():
    controls = [control(1), control(3, hub_check=differs(("tilt_mean_deg", 1.2, 3.2)))]

    found = judged(AGAINST_CONTROL, controls=controls)

    assert found["disputed"] is True
    assert found["control"] == {"mean": 1.2, "runs": [1.2, 1.2], "hub_mean": pytest.approx(2.2)}
    assert "hub_value" not in found


def test_locked_gates_the_log_can_measure_are_judged_after_the_sheet():
    gates = [gate(), gate("speed", metric="forward_speed"), gate("falls", "==", 0, metric="falls")]

    found = judge(
        Case(
            own=run(),
            controls=[],
            criteria=[threshold()],
            sides=SIDES,
            gates=gates,
            measured={"tilt": 1.1, "falls": 0},
        )
    )

    assert [(each["id"], each["source"], each["result"]) for each in found] == [
        ("limit", "sheet", "PASS"),
        ("tilt", "gate", "PASS"),
        ("falls", "gate", "PASS"),
    ]
    assert [each["sim_value"] for each in found] == [1.1, 1.1, 0]


def test_a_gate_the_sheet_repeats_is_judged_once():
    same, other = threshold("<=", 2.0), threshold("<=", 1.5)

    for criterion, ids in ((same, ["limit"]), (other, ["limit", "tilt"])):
        found = judge(Case(own=run(), controls=[], criteria=[criterion], sides=SIDES, gates=[gate()]))
        assert [each["id"] for each in found] == ids


def test_a_tracking_gate_of_no_joint_is_judged_by_the_worst_joint():
    found = judge(
        Case(
            own=run(),
            controls=[],
            criteria=[],
            sides=SIDES,
            gates=[gate("track", "<=", 0.05, metric="tracking_error_rad")],
        )
    )

    assert (found[0]["value"], found[0]["result"]) == (0.03, "PASS")
    assert "joint" not in found[0]


def test_a_sheets_criterion_has_the_measurement_of_its_own_gate_beside_it():
    gates = [gate("loose", limit=9.0), gate("tight", limit=1.5)]
    measured = {"loose": 4.0, "tight": 1.0}

    own_gate = judged(threshold(limit=1.5), gates=gates, measured=measured)
    some_gate = judged(AGAINST_CONTROL, gates=gates, measured=measured)
    no_gate = judged(threshold("==", 0, metric="falls"), gates=gates, measured=measured)

    assert (own_gate["sim_value"], some_gate["sim_value"]) == (1.0, 4.0)
    assert "sim_value" not in no_gate


numbers = st.none() | st.floats() | st.integers(-3, 3) | st.booleans() | st.just(10**400)
summaries = st.none() | st.builds(
    lambda tilt, falls, left, right: summary(
        tilt_mean_deg=tilt, falls=falls, tracking_error_rad={"left_knee": left, "right_knee": right}
    ),
    numbers,
    numbers,
    numbers,
    numbers,
)
logs = st.sampled_from(["awaiting", "uploaded", "missing", "malformed"])
criteria = st.lists(
    st.one_of(
        st.just(AGAINST_CONTROL),
        st.builds(threshold, st.sampled_from(["<=", "<", ">=", ">", "=="]), numbers),
        st.builds(as_in_sim, numbers, numbers),
        st.builds(lambda limit: threshold("<=", limit, metric="tracking_error_rad", joint="knee"), numbers),
    ),
    min_size=1,
    max_size=4,
)


@given(summaries, logs, summaries, logs, summaries, criteria, st.lists(st.floats(), max_size=4), summaries)
def test_nothing_that_is_no_number_passes_or_reaches_json(
    mine, log, theirs, their_log, other, criteria, differences, baseline
):
    case = Case(
        own=run(log=log, summary=mine),
        controls=[control(1, log=their_log, summary=theirs), control(3, summary=other)],
        criteria=criteria,
        sides=SIDES,
        gates=[gate()],
        measured={"tilt": math.nan},
        baseline=baseline,
        past=past(*differences),
    )

    for found in judge(case):
        json.dumps(found, allow_nan=False)
        if found["value"] is None:
            assert found["result"] in ("pending", "unmeasured")
        if found["result"] in ("PASS", "FAIL"):
            assert found["op"] != "as_in_sim"
        if found.get("margin"):
            assert (found["margin"] > 0) == (found["result"] in ("PASS", "as_in_sim"))
