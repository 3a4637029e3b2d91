"""How documents that a rule checks as a whole are described in the API's document."""

from typing import Any

from drf_spectacular.utils import extend_schema_field

from driver.wire.robot import MAX_JOINTS
from driver.wire.vocabulary import COMPARISONS
from hub.campaigns.rules.gates import MAX_GATES, MAX_RESULTS
from hub.core import fields

_TEXT = {"type": "string"}
_NUMBER = {"type": "number"}
_COUNT = {"type": "integer", "minimum": 0}
_MIRROR = {"type": "integer", "enum": [1, -1]}


def _object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def _list(item: dict[str, Any], *, most: int) -> dict[str, Any]:
    return {"type": "array", "items": item, "maxItems": most}


PAIR = _object({"left": _TEXT, "right": _TEXT}, {"name": _TEXT, "mirror": _MIRROR})
ROBOT = _object(
    {"slug": _TEXT, "name": _TEXT, "joints": _list(_TEXT, most=MAX_JOINTS)},
    {
        "mirror": {"type": "object", "additionalProperties": _MIRROR},
        "pairs": _list(PAIR, most=MAX_JOINTS // 2),
    },
)
GATE = _object(
    {
        "key": _TEXT,
        "metric": _TEXT,
        "op": {"type": "string", "enum": list(COMPARISONS)},
        "threshold": _NUMBER,
        "conditions": {"type": "object", "description": "what it was measured under in simulation"},
    },
    {"joint": _TEXT},
)
MEASURED = {
    "type": "object",
    "description": "gate key → measured value, null where it was not measured",
    "additionalProperties": {"type": ["number", "null"]},
}
RESULT = _object(
    {
        "checkpoint": _TEXT,
        "seeds_run": _COUNT,
        "seeds_upright": _COUNT,
        "measured": MEASURED,
    }
)
CONTRACT = {"type": "object", "description": "what a checkpoint needs of a box, as its file and sidecar say"}


@extend_schema_field(ROBOT)
class RobotTable(fields.Document):
    """The `[robot]` table of a robot file."""


@extend_schema_field(CONTRACT)
class ContractTable(fields.Document):
    """A contract, or the part of one that a sidecar adds."""


@extend_schema_field(_list(GATE, most=MAX_GATES))
class Gates(fields.ListOf):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(fields.Document(), max_length=MAX_GATES, **kwargs)


@extend_schema_field(_list(RESULT, most=MAX_RESULTS))
class Results(fields.ListOf):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(fields.Document(), max_length=MAX_RESULTS, **kwargs)


@extend_schema_field(MEASURED)
class Measured(fields.Document):
    pass
