from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.wire import canonical, sheet
from driver.wire.sheet import BadSheet
from driver.wire.vocabulary import ABORT_METRICS, METRICS
from tests.wire import samples


def errors_of(document: Any) -> dict[str, list[str]]:
    try:
        sheet.check_sheet(document)
    except BadSheet as refused:
        return refused.errors
    return {}


def changed(path: str, value: Any) -> dict[str, Any]:
    """The sample sheet with one place changed; `...` takes the key away."""
    document = samples.run_sheet()
    *steps, last = path.split(".")
    place: Any = document
    for step in steps:
        place = place[int(step)] if isinstance(place, list) else place[step]
    key: Any = int(last) if isinstance(place, list) else last
    if value is ...:
        del place[key]
    else:
        place[key] = value
    return document


def test_the_sheet_of_the_contract_is_taken() -> None:
    sheet.check_sheet(samples.run_sheet())


def test_a_digest_is_of_the_canonical_bytes_and_knows_no_key_order() -> None:
    document = samples.run_sheet()
    turned = dict(reversed(document.items()))

    assert sheet.sheet_digest(turned) == sheet.sheet_digest(document)
    assert sheet.sheet_digest(document) == canonical.sha256_hex(sheet.sheet_bytes(document))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("version", 2),
        ("version", True),
        ("trial_id", 7),
        ("trial_id", "apr_01"),
        ("position", 0),
        ("position", 1.5),
        ("position", True),
        ("role", "spare"),
        ("checkpoint.step", -1),
        ("checkpoint.onnx_sha256", "abc"),
        ("checkpoint.path", "/tmp/x"),
        ("stages", []),
        ("stages.0.name", "hang the robot"),
        ("stages.0.name", ".hang"),
        ("stages.0.duration_s", 0),
        ("stages.0.duration_s", 3601),
        ("stages.0.duration_s", "4"),
        ("stages.0.judged", 0),
        ("stages.0.command", ["rm"]),
        ("stages.0.values", []),
        ("stages.0.gate.0.metric", "tilt"),
        ("stages.0.gate.0.op", "<=control"),
        ("stages.0.gate.0.threshold", None),
        ("gain_profile", "soft profile"),
        ("kd_scale", 0),
        ("kd_scale", 10.5),
        ("kd_scale", "1"),
        ("kd_scale", float("nan")),
        ("criteria.1.threshold", float("inf")),
        ("power_scale", True),
        ("environment.floor", None),
        ("environment.ambient_c", "20"),
        ("environment.humidity", 40),
        ("abort_rules.0.metric", "tilt_mean_deg"),
        ("abort_rules.0.op", "=="),
        ("abort_rules.0.value", None),
        ("abort_rules.0.for_s", -1),
        ("abort_rules.0.for_s", 61),
        ("abort_rules.0.stages", []),
        ("judging.formulas", 2),
        ("judging.pairs.0.mirror", 0),
        ("judging.pairs.0.mirror", True),
        ("judging.pairs.0.left", ""),
        ("predictions.0.sim_value", "1.2"),
        ("predictions.0.conditions", []),
        ("predictions.0.conditions.sim", {"name": "mujoco"}),
        ("criteria.0.metric", "speed"),
        ("criteria.0.op", "!="),
        ("criteria.2.tolerance", -0.1),
        ("notes", "x"),
    ],
)
def test_a_sheet_of_another_shape_is_refused_by_its_path(path: str, value: Any) -> None:
    assert list(errors_of(changed(path, value))) == [path]


@pytest.mark.parametrize("path", list(samples.run_sheet()))
def test_every_key_of_a_sheet_is_required(path: str) -> None:
    assert errors_of(changed(path, ...)) == {path: ["is missing"]}


@pytest.mark.parametrize(
    "value",
    [
        "rm -rf",
        "/etc/passwd",
        "$HOME",
        "a;b",
        "`id`",
        "",
        "x" * 81,
        None,
        {"a": 1},
        ["a"],
        [[1]],
        [True],
        [1] * 65,
    ],
)
def test_a_stages_value_is_never_a_path_or_a_shell_word(value: Any) -> None:
    errors = errors_of(changed("stages.2.values", {"command_script": value}))

    assert errors
    assert all(path.startswith("stages.2.values.command_script") for path in errors)


@pytest.mark.parametrize("value", [0, -1.5, True, "walk-and-turn_2.1", [], [0.5, 0, -1]])
def test_a_stages_value_is_a_number_a_flag_a_word_or_numbers(value: Any) -> None:
    assert not errors_of(changed("stages.2.values", {"command": value}))


@pytest.mark.parametrize("judged", [[], [0, 1], [0]])
def test_exactly_one_stage_is_judged_and_judging_names_it(judged: list[int]) -> None:
    document = samples.run_sheet()
    for place, stage in enumerate(document["stages"]):
        stage["judged"] = place in judged

    assert set(errors_of(document)) == {"judging.stage" if judged == [0] else "stages"}


def test_two_stages_may_not_differ_only_in_their_case() -> None:
    assert errors_of(changed("stages.0.name", "Floor")) == {"stages": ["stage 'floor' is there twice"]}


@pytest.mark.parametrize(
    ("path", "value", "at"),
    [
        ("abort_rules.0.stages", ["floor", "flor"], "abort_rules.0.stages"),
        ("abort_rules.0.stages", ["floor", "floor"], "abort_rules.0.stages"),
        ("judging.pairs.0.right", "left_knee_joint", "judging.pairs.0"),
        ("judging.pairs", samples.run_sheet()["judging"]["pairs"] * 2, "judging.pairs"),
        ("criteria.1.id", "tilt-vs-control", "criteria"),
        ("criteria.1.joint", ..., "criteria.1.joint"),
        ("criteria.0.joint", "knee", "criteria.0.joint"),
        ("criteria.1.threshold", ..., "criteria.1.threshold"),
        ("criteria.0.threshold", 1.0, "criteria.0.threshold"),
        ("criteria.1.sim_value", 1.0, "criteria.1.sim_value"),
        ("criteria.2.tolerance", ..., "criteria.2.tolerance"),
        ("criteria.2.sim_value", ..., "criteria.2.sim_value"),
        ("criteria.2.threshold", 1.0, "criteria.2.threshold"),
        ("stages.0.gate.0.joint", "knee", "stages.0.gate.0.joint"),
        ("stages.0.gate.0.metric", "tracking_error_rad", "stages.0.gate.0.joint"),
    ],
)
def test_a_sheet_at_odds_with_itself_is_refused_by_its_path(path: str, value: Any, at: str) -> None:
    assert list(errors_of(changed(path, value))) == [at]


@pytest.mark.parametrize("metric", METRICS)
def test_a_criterion_may_ask_any_metric(metric: str) -> None:
    criterion = {"id": "c", "metric": metric, "op": ">=", "threshold": 0}
    if metric == "tracking_error_rad":
        criterion["joint"] = "knee"

    assert not errors_of(samples.run_sheet(criteria=[criterion]))


@pytest.mark.parametrize("metric", ABORT_METRICS)
def test_an_abort_rule_may_watch_any_abort_metric(metric: str) -> None:
    assert not errors_of(changed("abort_rules.0.metric", metric))


def stages(count: int) -> list[dict[str, Any]]:
    floor = samples.run_sheet()["stages"][1]
    return [floor, *({**floor, "name": f"s{n}", "judged": False} for n in range(1, count))]


def test_sixteen_stages_are_taken_and_seventeen_are_not() -> None:
    rules: list[Any] = []

    assert not errors_of(samples.run_sheet(stages=stages(16), abort_rules=rules))
    assert list(errors_of(samples.run_sheet(stages=stages(17), abort_rules=rules))) == ["stages"]


def test_sixty_four_rules_are_taken_and_sixty_five_are_not() -> None:
    rule = samples.run_sheet()["abort_rules"][0]

    assert not errors_of(samples.run_sheet(abort_rules=[rule] * 64))
    assert list(errors_of(samples.run_sheet(abort_rules=[rule] * 65))) == ["abort_rules"]


def test_a_sheet_of_too_many_bytes_is_refused() -> None:
    conditions = {f"condition {n}": "ü" * 200 for n in range(32)}
    prediction = {**samples.run_sheet()["predictions"][0], "conditions": conditions}

    assert list(errors_of(samples.run_sheet(predictions=[prediction] * 64))) == ["."]


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=5)
)
def test_any_value_anywhere_is_taken_or_refused_in_words(value: Any) -> None:
    for path in ("stages", "stages.0.values.command", "criteria.0", "judging.pairs.0.mirror", "kd_scale"):
        errors_of(changed(path, value))


@pytest.mark.parametrize("document", [None, [], "sheet", 1, {}])
def test_what_is_no_sheet_at_all_is_refused(document: Any) -> None:
    assert errors_of(document)
