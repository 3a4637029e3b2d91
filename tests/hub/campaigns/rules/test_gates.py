import math

import pytest

from hub.campaigns.rules.gates import (
    MAX_GATES,
    MAX_SEEDS,
    BadGates,
    BadResults,
    check_gates,
    check_results,
    measurable,
    number_of,
    passes,
    sim_verdict,
)


def gate(key="tilt", **changes):
    shape = {"key": key, "metric": "tilt_mean_deg", "op": "<=", "threshold": 2.0, "conditions": {"seeds": 16}}
    return {**shape, **changes}


def result(**changes):
    return {"checkpoint": "ckp_1", "seeds_run": 16, "seeds_upright": 15, "measured": {"tilt": 1.2}} | changes


def faults_of(check, *args):
    with pytest.raises((BadGates, BadResults)) as refused:
        check(*args)
    return refused.value.errors


@pytest.mark.parametrize(
    ("op", "below", "at", "above"),
    [
        ("<=", True, True, False),
        ("<", True, False, False),
        (">=", False, True, True),
        (">", False, False, True),
        ("==", False, True, False),
    ],
)
def test_a_gate_passes_on_its_own_side_of_the_threshold(op, below, at, above):
    chosen = gate(op=op)

    assert [passes(chosen, value) for value in (1.9, 2.0, 2.1)] == [below, at, above]


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf, True])
@pytest.mark.parametrize("op", ["<=", "<", ">=", ">", "=="])
def test_what_is_not_measured_passes_no_gate(op, value):
    assert not passes(gate(op=op, threshold=1), value)


def test_a_checkpoint_that_passes_every_gate_is_pass():
    gates = [gate(), gate("falls", metric="falls", op="==", threshold=0)]

    assert sim_verdict(gates, result(measured={"tilt": 2.0, "falls": 0})) == {
        "verdict": "PASS",
        "gates_passed": 2,
        "gates": 2,
        "seeds_upright": 15,
        "seeds_run": 16,
    }


@pytest.mark.parametrize("measured", [{"tilt": 2.1, "falls": 0}, {"tilt": 1.0, "falls": None}, {"tilt": 1.0}])
def test_one_gate_that_does_not_pass_is_fail(measured):
    gates = [gate(), gate("falls", metric="falls", op="==", threshold=0)]

    sim = sim_verdict(gates, result(measured=measured))

    assert (sim["verdict"], sim["gates_passed"], sim["gates"]) == ("FAIL", 1, 2)


def test_a_log_can_measure_the_seven_metrics_and_no_other():
    assert measurable(gate(metric="temp_max_c"))
    assert not measurable(gate(metric="forward_speed"))


def test_a_gate_of_the_contract_is_taken():
    check_gates([gate(), gate("speed", metric="forward_speed", op=">", threshold=0.1, conditions={})])
    check_gates([gate(conditions={"pushes": True, "terrain": "flat", "latency_s": 0.02, "mass": None})])


def test_a_tracking_gate_may_name_its_joint():
    check_gates([gate(metric="tracking_error_rad", joint="knee")])


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"op": "<=control"}, "gates.0.op"),
        ({"op": ["<="]}, "gates.0.op"),
        ({"threshold": "2"}, "gates.0.threshold"),
        ({"threshold": True}, "gates.0.threshold"),
        ({"threshold": math.nan}, "gates.0.threshold"),
        ({"threshold": None}, "gates.0.threshold"),
        ({"key": "a b"}, "gates.0.key"),
        ({"key": ""}, "gates.0.key"),
        ({"metric": 3}, "gates.0.metric"),
        ({"joint": "knee"}, "gates.0.joint"),
        ({"conditions": []}, "gates.0.conditions"),
        ({"conditions": {"terrain": {"slope": 1}}}, "gates.0.conditions.terrain"),
        ({"conditions": {"friction": math.inf}}, "gates.0.conditions.friction"),
        ({"treshold": 2}, "gates.0.treshold"),
    ],
)
def test_a_misshapen_gate_is_refused_by_its_path(changes, path):
    assert list(faults_of(check_gates, [gate(**changes)])) == [path]


@pytest.mark.parametrize("missing", ["key", "metric", "op", "threshold", "conditions"])
def test_a_gate_lacking_a_key_is_refused(missing):
    given = gate()
    del given[missing]

    assert faults_of(check_gates, [given]) == {f"gates.0.{missing}": ["is missing"]}


@pytest.mark.parametrize("gates", [None, {}, "tilt"])
def test_gates_are_a_list(gates):
    assert list(faults_of(check_gates, gates)) == ["gates"]


def test_two_gates_of_one_key_are_refused():
    assert "twice" in faults_of(check_gates, [gate(), gate(threshold=3)])["gates"][0]


def test_there_may_be_so_many_gates_and_not_one_more():
    check_gates([gate(f"g{number}") for number in range(MAX_GATES)])

    assert list(faults_of(check_gates, [gate(f"g{number}") for number in range(MAX_GATES + 1)])) == ["gates"]


def test_results_of_the_contract_are_taken():
    check_results([result(measured={"tilt": None}), result(checkpoint="ckp_2", measured={})], [gate()])
    check_results([result(seeds_upright=16)], [gate()])


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"measured": {"tlit": 1.0}}, "results.0.measured.tlit"),
        ({"measured": {"tilt": math.nan}}, "results.0.measured.tilt"),
        ({"measured": {"tilt": math.inf}}, "results.0.measured.tilt"),
        ({"measured": {"tilt": "1.0"}}, "results.0.measured.tilt"),
        ({"measured": {"tilt": False}}, "results.0.measured.tilt"),
        ({"measured": []}, "results.0.measured"),
        ({"seeds_upright": 17}, "results.0.seeds_upright"),
        ({"seeds_upright": -1}, "results.0.seeds_upright"),
        ({"seeds_run": 15.5}, "results.0.seeds_run"),
        ({"seeds_run": True}, "results.0.seeds_run"),
        ({"seeds_run": MAX_SEEDS + 1}, "results.0.seeds_run"),
        ({"checkpoint": ""}, "results.0.checkpoint"),
        ({"seed": 1}, "results.0.seed"),
    ],
)
def test_a_misshapen_result_is_refused_by_its_path(changes, path):
    assert list(faults_of(check_results, [result(**changes)], [gate()])) == [path]


def test_two_results_of_one_checkpoint_are_refused():
    assert "ckp_1" in faults_of(check_results, [result(), result()], [gate()])["results"][0]


@pytest.mark.parametrize(
    ("value", "number"),
    [(1, 1), (-0.5, -0.5), (10**400, None), (math.nan, None), (True, None), ("1", None), (None, None)],
)
def test_only_finite_numbers_are_numbers(value, number):
    assert number_of(value) == number
