"""The run sheet: what a person consents to, and the digest that names it."""

from typing import Any

from driver.wire import canonical, shape
from driver.wire.canonical import JSON
from driver.wire.vocabulary import (
    ABORT_METRICS,
    AGAINST_CONTROL,
    AS_IN_SIM,
    COMPARISONS,
    FORMULAS,
    METRICS,
    OPERATORS,
    ROLES,
)

MAX_STAGES = 16
MAX_RULES = 64  # gates of a stage, abort rules, predictions, criteria: each
MAX_PAIRS = 128
MAX_VALUES = 32
MAX_STAGE_S = 3600
MAX_BYTES = 256 * 1024


class BadSheet(ValueError):
    """A run sheet of another shape than shapes.md gives it; `errors` by path."""

    def __init__(self, errors: shape.Errors) -> None:
        super().__init__("; ".join(f"{path}: {', '.join(said)}" for path, said in errors.items()))
        self.errors = errors


def check_sheet(sheet: JSON) -> None:
    """:raises BadSheet: for an unknown key, a wrong type, a value out of range, a self-contradiction"""
    errors = shape.errors_in(sheet, _SHEET)
    if not errors and isinstance(sheet, dict):
        _check_stages(sheet, errors)
        _check_rules(sheet, errors)
        _check_criteria(sheet, errors)
        _check_size(sheet, errors)
    if errors:
        raise BadSheet(errors)


def sheet_bytes(sheet: JSON) -> bytes:
    """The bytes that are frozen, sent and hashed."""
    return canonical.dumps(sheet)


def sheet_digest(sheet: JSON) -> str:
    return canonical.sha256_hex(sheet_bytes(sheet))


_FINITE = shape.number()
_NAME = shape.text(
    most=80, pattern=r"[A-Za-z0-9][A-Za-z0-9._-]*", means="letters, digits, dot, dash, underscore"
)
_LABEL = shape.text(least=1, most=200)
_WORDS = shape.text(most=200)
_WORD = shape.text(
    least=1, most=80, pattern=r"[A-Za-z0-9._-]+", means="letters, digits, dot, dash, underscore"
)
_KEY = shape.text(most=40, pattern=r"[a-z][a-z0-9_]*", means="a lower-case name")


def _value(value: JSON, path: str, errors: shape.Errors) -> None:
    """A stage's value: never a command, a path or a shell word."""
    if isinstance(value, bool):
        return
    if isinstance(value, str):
        _WORD(value, path, errors)
    elif isinstance(value, list):
        shape.list_of(_FINITE, most=64)(value, path, errors)
    elif not isinstance(value, int | float):
        shape.add(errors, path, "must be a number, true or false, a word or a list of numbers")


def _condition(value: JSON, path: str, errors: shape.Errors) -> None:
    if isinstance(value, str):
        _WORDS(value, path, errors)
    elif value is not None and not isinstance(value, bool | int | float):
        shape.add(errors, path, "must be text, a number, true, false or null")


_GATE = shape.record(
    {"metric": shape.one_of(*METRICS), "op": shape.one_of(*COMPARISONS), "threshold": _FINITE},
    {"joint": shape.joint},
)
_STAGE = shape.record(
    {
        "name": shape.stage_name,
        "duration_s": shape.or_null(shape.number(above=0, most=MAX_STAGE_S)),
        "judged": shape.flag,
        "free_standing": shape.flag,
        "values": shape.table(key=_KEY, value=_value, most=MAX_VALUES),
    },
    {"gate": shape.list_of(_GATE, most=MAX_RULES)},
)
_ABORT_RULE = shape.record(
    {
        "metric": shape.one_of(*ABORT_METRICS),
        "op": shape.one_of("<=", "<", ">=", ">"),
        "value": _FINITE,
        "for_s": shape.number(least=0, most=60),
        "stages": shape.list_of(shape.stage_name, least=1, most=MAX_STAGES),
    }
)
_PAIR = shape.record(
    {
        "name": shape.text(least=1, most=100),
        "left": shape.joint,
        "right": shape.joint,
        "mirror": shape.one_of(1, -1),
    }
)
_PREDICTION = shape.record(
    {
        "gate": _LABEL,
        "metric": _LABEL,  # a round's gate may measure what no log can
        "sim_value": shape.or_null(_FINITE),
        "conditions": shape.table(key=_LABEL, value=_condition, most=MAX_VALUES),
    }
)
_CRITERION = shape.record(
    {"id": _NAME, "metric": shape.one_of(*METRICS), "op": shape.one_of(*OPERATORS)},
    {
        "joint": shape.joint,
        "threshold": _FINITE,
        "sim_value": _FINITE,
        "tolerance": shape.number(least=0),
    },
)
_CHECKPOINT = shape.record(
    {
        "id": shape.identifier("ckp"),
        "run": _LABEL,
        "step": shape.integer(least=0),
        "onnx_sha256": shape.digest,
        "contract": _LABEL,
    }
)
_ENVIRONMENT = shape.record(
    {
        "floor": _WORDS,
        "ambient_c": shape.or_null(_FINITE),
        "battery_min_v": shape.or_null(shape.number(least=0)),
        "notes": shape.text(most=4000),
    }
)

_SHEET = shape.record(
    {
        "version": shape.one_of(1),
        "trial_id": shape.identifier("trl"),
        "session_id": shape.identifier("ses"),
        "position": shape.integer(least=1, most=1000),
        "role": shape.one_of(*ROLES),
        "checkpoint": _CHECKPOINT,
        "stages": shape.list_of(_STAGE, least=1, most=MAX_STAGES),
        "gain_profile": _NAME,
        "kd_scale": shape.number(above=0, most=10),
        "power_scale": shape.number(above=0, most=10),
        "environment": _ENVIRONMENT,
        "abort_rules": shape.list_of(_ABORT_RULE, most=MAX_RULES),
        "judging": shape.record(
            {
                "formulas": shape.one_of(FORMULAS),
                "stage": shape.stage_name,
                "pairs": shape.list_of(_PAIR, most=MAX_PAIRS),
            }
        ),
        "predictions": shape.list_of(_PREDICTION, most=MAX_RULES),
        "criteria": shape.list_of(_CRITERION, most=MAX_RULES),
    }
)


def _check_stages(sheet: dict[str, Any], errors: shape.Errors) -> None:
    # Files are named after stages, and two file names may not differ only in their case.
    folded = [stage["name"].lower() for stage in sheet["stages"]]
    shape.add_repeats(folded, "stages", errors, what="stage")
    judged = [stage["name"] for stage in sheet["stages"] if stage["judged"]]
    if len(judged) != 1:
        shape.add(errors, "stages", "exactly one stage is judged")
    elif judged[0] != sheet["judging"]["stage"]:
        shape.add(errors, "judging.stage", "must be the stage that is judged")
    for place, stage in enumerate(sheet["stages"]):
        for number, gate in enumerate(stage.get("gate", ())):
            _check_joint(gate, f"stages.{place}.gate.{number}", errors)


def _check_rules(sheet: dict[str, Any], errors: shape.Errors) -> None:
    names = {stage["name"] for stage in sheet["stages"]}
    for place, rule in enumerate(sheet["abort_rules"]):
        path = f"abort_rules.{place}.stages"
        shape.add_repeats(rule["stages"], path, errors, what="stage")
        for name in sorted(set(rule["stages"]) - names):
            shape.add(errors, path, f"there is no stage {name!r}")
    pairs = sheet["judging"]["pairs"]
    shape.add_repeats([pair["name"] for pair in pairs], "judging.pairs", errors, what="pair")
    for place, pair in enumerate(pairs):
        if pair["left"] == pair["right"]:
            shape.add(errors, f"judging.pairs.{place}", "a joint is no pair with itself")


def _check_criteria(sheet: dict[str, Any], errors: shape.Errors) -> None:
    ids = [criterion["id"] for criterion in sheet["criteria"]]
    shape.add_repeats(ids, "criteria", errors, what="criterion")
    for place, criterion in enumerate(sheet["criteria"]):
        path = f"criteria.{place}"
        _check_joint(criterion, path, errors)
        wanted = _wanted(criterion["op"])
        for key in ("threshold", "sim_value", "tolerance"):
            if key in wanted and key not in criterion:
                shape.add(errors, f"{path}.{key}", f"{criterion['op']} needs it")
            if key in criterion and key not in wanted:
                shape.add(errors, f"{path}.{key}", f"{criterion['op']} has none")


def _wanted(op: str) -> set[str]:
    return {AS_IN_SIM: {"sim_value", "tolerance"}, AGAINST_CONTROL: set()}.get(op, {"threshold"})


def _check_joint(rule: dict[str, Any], path: str, errors: shape.Errors) -> None:
    needs = rule["metric"] == "tracking_error_rad"
    if needs and "joint" not in rule:
        shape.add(errors, f"{path}.joint", "tracking_error_rad needs a joint, or a pair's common name")
    if not needs and "joint" in rule:
        shape.add(errors, f"{path}.joint", f"{rule['metric']} is about no joint")


def _check_size(sheet: dict[str, Any], errors: shape.Errors) -> None:
    try:
        size = len(sheet_bytes(sheet))
    except canonical.NotStrict as error:
        shape.add(errors, "", str(error))
        return
    if size > MAX_BYTES:
        shape.add(errors, "", f"must have at most {MAX_BYTES} bytes")
