"""The robot file: joints by name, left-right pairs and their mirror signs."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from driver.wire import shape

MAX_JOINTS = 256

# How a name says "left", with what says "right" in the same place; group 1 is what changes.
_LEFT = (
    re.compile(r"(left|Left|LEFT)"),
    re.compile(r"(?<![A-Za-z])([lL])(?![A-Za-z])"),  # l_knee, knee_L
    re.compile(r"(?<![A-Za-z])[FBHRMfbhrm]([lL])(?![A-Za-z])"),  # FL_thigh
    re.compile(r"(?<![A-Za-z])([lL])[FBHRMfbhrm](?![A-Za-z])"),  # LF_HAA
    re.compile(r"(?<![A-Za-z])(L)(?=[A-Z][a-z])"),  # LKneePitch
)
_RIGHT = {"left": "right", "Left": "Right", "LEFT": "RIGHT", "l": "r", "L": "R"}


class BadRobot(ValueError):
    """A robot file that says too little, too much or contradicts itself; `errors` by path."""

    def __init__(self, errors: shape.Errors) -> None:
        super().__init__("; ".join(f"{path}: {', '.join(said)}" for path, said in errors.items()))
        self.errors = errors


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two joints that mirror each other: left ≈ mirror × right."""

    name: str
    left: str
    right: str
    mirror: int = -1

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "left": self.left, "right": self.right, "mirror": self.mirror}


@dataclass(frozen=True, kw_only=True)
class Robot:
    slug: str
    name: str
    joints: tuple[str, ...]
    pairs: tuple[Pair, ...]
    mirror: Mapping[str, int] = field(default_factory=dict)


def robot_from_document(document: Mapping[str, Any]) -> Robot:
    """
    Make the robot of a parsed robot file, `{"robot": {...}}`.

    :raises BadRobot: naming each fault
    """
    if errors := shape.errors_in(dict(document), _DOCUMENT):
        raise BadRobot(errors)
    said = document["robot"]
    joints = tuple(said["joints"])
    shape.add_repeats(joints, "robot.joints", errors, what="joint")
    if errors:
        raise BadRobot(errors)
    mirror = dict(said.get("mirror", {}))
    pairs = pairs_of(joints, mirror=mirror, explicit=said.get("pairs", ()))
    return Robot(slug=said["slug"], name=said["name"], joints=joints, pairs=pairs, mirror=mirror)


def pairs_of(
    joints: Sequence[str],
    *,
    mirror: Mapping[str, int] | None = None,
    explicit: Iterable[Mapping[str, Any]] = (),
) -> tuple[Pair, ...]:
    """
    The pairs of a robot: explicit ones, and those that the joints' names show for all other joints.

    :raises BadRobot: for a pair of unknown or repeated joints, and for two pairs of one name
    """
    signs = dict(mirror or {})
    given = [_explicit(pair, signs) for pair in explicit]
    _check_given(given, joints)
    taken = {joint for pair in given for joint in (pair.left, pair.right)}
    derived = [pair for pair in _derived(joints, signs) if not {pair.left, pair.right} & taken]
    place = {joint: number for number, joint in enumerate(joints)}
    pairs = sorted([*given, *derived], key=lambda pair: place[pair.left])
    errors: shape.Errors = {}
    shape.add_repeats([pair.name for pair in pairs], "robot.pairs", errors, what="pair name")
    if errors:
        raise BadRobot(errors)
    return tuple(pairs)


def _explicit(pair: Mapping[str, Any], signs: Mapping[str, int]) -> Pair:
    left = pair["left"]
    return Pair(
        name=pair.get("name") or _common_name(left),
        left=left,
        right=pair["right"],
        mirror=pair.get("mirror") or _sign(left, signs),
    )


def _check_given(given: Sequence[Pair], joints: Sequence[str]) -> None:
    errors: shape.Errors = {}
    for place, pair in enumerate(given):
        for joint in (pair.left, pair.right):
            if joint not in joints:
                shape.add(errors, f"robot.pairs.{place}", f"joint {joint!r} is not among the robot's joints")
    used = [joint for pair in given for joint in (pair.left, pair.right)]
    shape.add_repeats(used, "robot.pairs", errors, what="joint")
    if errors:
        raise BadRobot(errors)


def _derived(joints: Sequence[str], signs: Mapping[str, int]) -> list[Pair]:
    known = set(joints)
    return [
        Pair(name=name, left=joint, right=right, mirror=_sign(joint, signs))
        for joint in joints
        for right, name in [_partner(joint, known)]
        if right
    ]


def _partner(joint: str, known: set[str]) -> tuple[str, str]:
    """The right joint that belongs to a left one and the name of the two, or nothing."""
    for start, end in _marks(joint):
        right = joint[:start] + _RIGHT[joint[start:end]] + joint[end:]
        if right in known:
            return right, _without(joint, start, end)
    return "", ""


def _marks(joint: str) -> list[tuple[int, int]]:
    return [match.span(1) for pattern in _LEFT for match in pattern.finditer(joint)]


def _common_name(left: str) -> str:
    marks = _marks(left)
    return _without(left, *marks[0]) if marks else left.removesuffix("_joint")


def _without(joint: str, start: int, end: int) -> str:
    """A joint's name without its side: `left_knee_joint` → `knee`, `FL_thigh` → `F_thigh`."""
    before, after = joint[:start], joint[end:]
    if before[-1:] in {"_", "-", "."} or not before:
        after = after.lstrip("_-.")
    bare = (before + after).rstrip("_-.").removesuffix("_joint")
    return bare or joint


def _sign(joint: str, signs: Mapping[str, int]) -> int:
    return next((sign for part, sign in signs.items() if part in joint), -1)


_NAME = shape.text(least=1, most=80)
_MIRROR = shape.one_of(1, -1)

_DOCUMENT = shape.record(
    {
        "robot": shape.record(
            {
                "slug": shape.text(
                    most=60, pattern=r"[a-z0-9][a-z0-9-]*", means="lower-case letters, digits and dashes"
                ),
                "name": _NAME,
                "joints": shape.list_of(shape.joint, least=1, most=MAX_JOINTS),
            },
            {
                "mirror": shape.table(key=shape.text(least=1, most=80), value=_MIRROR, most=64),
                "pairs": shape.list_of(
                    shape.record(
                        {"left": shape.joint, "right": shape.joint}, {"mirror": _MIRROR, "name": _NAME}
                    ),
                    most=MAX_JOINTS // 2,
                ),
            },
        )
    }
)
