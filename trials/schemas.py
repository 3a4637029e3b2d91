"""How the JSON that the rules write is described in the API's document; shapes.md is the prose of it."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from driver.wire.vocabulary import METRICS, OPERATORS
from hub.core import fields
from trials.rules.bracket import BRACKETED

_TEXT = {"type": "string"}
_NUMBER = {"type": ["number", "null"]}
_FLAG = {"type": ["boolean", "null"]}
_FREE = {"type": "object", "additionalProperties": True}


def _object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


def _list(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


def _one_of(*values: str | None) -> dict[str, Any]:
    kinds = ["string", "null"] if None in values else "string"
    return {"type": kinds, "enum": list(values)}


_LIMIT = {
    **_object(
        {"value": {"type": "number"}, "source": _one_of("fixed", "history")}, {"n": {"type": "integer"}}
    ),
    "type": ["object", "null"],
}
TOLERANCE = _object({"metric": _one_of(*BRACKETED)}, {"decides": {"type": "boolean"}, "tolerance": _LIMIT})
BRACKET = _object(
    {
        "holds": _FLAG,
        "reason": _one_of(None, "waiting", "no_second_control", "two_controls", "log_missing", "unmeasured"),
        "falls": _object({"first": _NUMBER, "last": _NUMBER, "equal": _FLAG}),
        "metrics": _list(
            _object(
                {
                    "metric": _TEXT,
                    "decides": {"type": "boolean"},
                    "first": _NUMBER,
                    "last": _NUMBER,
                    "difference": _NUMBER,
                    "tolerance": _LIMIT,
                    "within": _FLAG,
                }
            )
        ),
    }
)
CRITERION = _object(
    {
        "id": _TEXT,
        "metric": _one_of(*METRICS),
        "op": _one_of(*OPERATORS),
        "value": _NUMBER,
        "result": _one_of("PASS", "FAIL", "as_in_sim", "differs_from_sim", "pending", "unmeasured"),
        "source": _one_of("sheet", "gate"),
    },
    {
        "joint": _TEXT,
        "threshold": _NUMBER,
        "control": _object({"mean": _NUMBER, "runs": _list(_NUMBER)}, {"hub_mean": _NUMBER}),
        "baseline": _NUMBER,
        "control_source": _one_of("session", "baseline"),
        "sim_value": _NUMBER,
        "tolerance": _NUMBER,
        "margin": _NUMBER,
        "noise_floor": _NUMBER,
        "disputed": {"type": "boolean"},
        "hub_value": _NUMBER,
        "decides": {"type": "boolean"},
    },
)
COMPARISON = _object(
    {
        "trial": _TEXT,
        "position": {"type": "integer"},
        "clock_s": _NUMBER,
        "waited_s": _NUMBER,
        "metric": _TEXT,
        "value": _NUMBER,
        "control_mean": _NUMBER,
        "control_interpolated": _NUMBER,
        "drift": _NUMBER,
        "fraction": _NUMBER,
        "from_mean": _NUMBER,
        "from_interpolated": _NUMBER,
        "noise_floor": {"type": ["object", "null"]},
        "words": {"type": ["string", "null"]},
        "decides": {"type": "boolean"},
    }
)
STAGE = _object(
    {
        "name": _TEXT,
        "duration_s": _NUMBER,
        "judged": {"type": "boolean"},
        "free_standing": {"type": "boolean"},
        "values": _FREE,
        "status": _one_of(None, "done", "aborted", "failed", "not_run"),
        "reason": {"type": ["string", "null"]},
        "t0_s": _NUMBER,
    },
    {"gate": _list(_FREE)},
)
HUB_CHECK = _object(
    {
        "state": _one_of("agrees", "differs", "unchecked"),
        "checked_at": _TEXT,
        "differences": _list(_object({"key": _TEXT, "driver": _NUMBER, "hub": _NUMBER})),
    },
    {"reason": _TEXT},
)
CHANNEL = _object(
    {
        "agg": _one_of("minmax"),
        "t": _list({"type": "number"}),
        "min": _list(_NUMBER),
        "max": _list(_NUMBER),
    }
)
CHECKPOINT_NAME = {
    "oneOf": [
        {**_TEXT, "description": "a checkpoint's id"},
        _object({"run": _TEXT, "step": {"type": "integer", "minimum": 0}}),
    ]
}


class Plain(fields.Document):
    """JSON that a rule of ours wrote."""


@extend_schema_field(BRACKET)
class BracketField(Plain):
    pass


@extend_schema_field(_list(CRITERION))
class CriteriaField(serializers.JSONField):
    pass


@extend_schema_field(_list(COMPARISON))
class ComparisonsField(serializers.JSONField):
    pass


@extend_schema_field(_list(STAGE))
class StagesField(serializers.JSONField):
    pass


@extend_schema_field(HUB_CHECK)
class HubCheckField(Plain):
    pass


@extend_schema_field({"type": "object", "additionalProperties": CHANNEL})
class ChannelsField(Plain):
    pass


@extend_schema_field(TOLERANCE)
class ToleranceField(fields.Document):
    """One metric of the bracket; the rules check its inside."""


@extend_schema_field({"type": ["object", "array", "string", "number", "boolean"]})
class SheetPart(serializers.JSONField):
    """A part of a run sheet, as JSON; the sheet is checked as a whole."""
