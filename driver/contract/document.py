"""A contract: what a checkpoint needs of a box. Its strict check, and its name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from driver.wire import canonical, shape

Document = Mapping[str, Any]

# How many numbers a term is made of; what depends on the joints or the command is counted by `Term.size`.
FIXED_SIZES = {
    "base_ang_vel": 3,
    "projected_gravity": 3,
    "base_lin_vel": 3,
    "gait_phase": 2,
    "gait_phase_command": 2,
}
JOINT_TERMS = frozenset({"joint_pos_rel", "joint_vel", "last_action"})
GAIT_TERMS = frozenset({"gait_phase", "gait_phase_command"})
TERMS = (*FIXED_SIZES, *sorted(JOINT_TERMS), "command")

# Names met in exports, and what they mean here.
ALIASES = {
    "velocity_commands": "command",
    "velocity_command": "command",
    "twist": "command",
    "commands": "command",
    "actions": "last_action",
    "joint_pos": "joint_pos_rel",
    "joint_vel_rel": "joint_vel",
    "gyro": "base_ang_vel",
    "gravity": "projected_gravity",
}

COMMAND_AXES = ("vx", "vy", "wz")
ORDERS = ("term", "frame")
REQUIRED = ("robot", "rate_hz", "joints", "default_joint_pos", "action_scale", "observation")
OPTIONAL = ("input", "output", "history", "action_clip", "stiffness", "damping", "phase")
MAX_JOINTS = 256
MAX_HISTORY = 200
MAX_RATE_HZ = 2000
MAX_NUMBER = 1e9


class BadContract(ValueError):
    """A contract that cannot be used: `errors` has a sentence for each field that is wrong."""

    def __init__(self, errors: Mapping[str, Sequence[str]]) -> None:
        self.errors = {path: list(messages) for path, messages in errors.items()}
        super().__init__(
            "; ".join(f"{path}: {text}" for path, texts in self.errors.items() for text in texts)
        )


@dataclass(frozen=True)
class Term:
    """One block of the observation. A scale is one number, or one for each number of the block."""

    name: str
    scale: float | tuple[float, ...] = 1.0
    names: tuple[str, ...] = ()

    def size(self, joints: int) -> int:
        if self.name == "command":
            return len(self.names)
        return joints if self.name in JOINT_TERMS else FIXED_SIZES[self.name]


@dataclass(frozen=True)
class Phase:
    frequency_hz: float
    hold_below: float
    per: float | None = None


@dataclass(frozen=True)
class Contract:
    robot: str
    rate_hz: float
    inputs: Mapping[str, tuple[str, ...]]
    output: str
    history_length: int
    history_order: str
    joints: tuple[str, ...]
    default_joint_pos: tuple[float, ...]
    action_scale: tuple[float, ...]
    action_clip: float
    stiffness: tuple[float, ...] | None
    damping: tuple[float, ...] | None
    observation: tuple[Term, ...]
    phase: Phase | None

    def width(self, input_name: str) -> int:
        """How many numbers that input takes, history included."""
        terms = self.inputs[input_name]
        sizes = {term.name: term.size(len(self.joints)) for term in self.observation}
        return self.history_length * sum(sizes[name] for name in terms)


def contract_name(document: Document) -> str:
    """`<robot>/<12 hex>`: two documents have the same name exactly when they say the same."""
    digest = canonical.sha256_hex(canonical.dumps(dict(document)))
    return f"{document['robot']}/{digest[:12]}"


def check_contract(document: Document) -> Contract:
    """
    Read a contract's document strictly.

    :raises BadContract: with every fault found, by field
    """
    if errors := shape.errors_in(dict(document), _DOCUMENT):
        raise BadContract(errors)
    contract = _contract(document)
    errors = {}
    _check_lengths(document, len(contract.joints), errors)
    _check_terms(contract, errors)
    _check_gains(document, errors)
    _check_phase(contract, errors)
    if errors:
        raise BadContract(errors)
    return contract


def document_of(contract: Contract) -> dict[str, Any]:
    """The one spelling of a contract: everything said, nothing left to a default."""
    shared = {name: list(terms) for name, terms in contract.inputs.items()}
    document: dict[str, Any] = {
        "robot": contract.robot,
        "rate_hz": contract.rate_hz,
        "input": shared if len(shared) > 1 else next(iter(shared)),
        "output": contract.output,
        "history": {"length": contract.history_length, "order": contract.history_order},
        "joints": list(contract.joints),
        "default_joint_pos": list(contract.default_joint_pos),
        "action_scale": list(contract.action_scale),
        "action_clip": contract.action_clip,
        "observation": [_term_document(term) for term in contract.observation],
    }
    if contract.stiffness is not None and contract.damping is not None:
        document |= {"stiffness": list(contract.stiffness), "damping": list(contract.damping)}
    if contract.phase is not None:
        document["phase"] = {key: value for key, value in vars(contract.phase).items() if value is not None}
    return document


def _term_document(term: Term) -> dict[str, Any]:
    scale = list(term.scale) if isinstance(term.scale, tuple) else term.scale
    names = {"names": list(term.names)} if term.names else {}
    return {"term": term.name, "scale": scale, **names}


def _contract(document: Document) -> Contract:
    """The contract of a document whose shape is right; lists may still have a wrong length."""
    joints = tuple(document["joints"])
    history = document.get("history", {"length": 1})
    terms = tuple(_term(entry) for entry in document["observation"])
    given = document.get("input", "obs")
    return Contract(
        robot=document["robot"],
        rate_hz=float(document["rate_hz"]),
        inputs={given: tuple(term.name for term in terms)}
        if isinstance(given, str)
        else {name: tuple(ALIASES.get(term, term) for term in listed) for name, listed in given.items()},
        output=document.get("output", "actions"),
        history_length=int(history["length"]),
        history_order=history.get("order", ORDERS[0]),
        joints=joints,
        default_joint_pos=_each(document["default_joint_pos"], len(joints)),
        action_scale=_each(document["action_scale"], len(joints)),
        action_clip=float(document.get("action_clip", 0.0)),
        stiffness=_each(document["stiffness"], len(joints)) if "stiffness" in document else None,
        damping=_each(document["damping"], len(joints)) if "damping" in document else None,
        observation=terms,
        phase=_phase(document["phase"]) if "phase" in document else None,
    )


def _each(value: Any, count: int) -> tuple[float, ...]:
    return tuple(float(item) for item in (value if isinstance(value, list) else [value] * count))


def _term(entry: Document) -> Term:
    said: str = entry["term"]
    name = ALIASES.get(said, said)
    scale = entry.get("scale", 1.0)
    names = tuple(entry.get("names", COMMAND_AXES if name == "command" else ()))
    return Term(name, _each(scale, 0) if isinstance(scale, list) else float(scale), names)


def _phase(said: Document) -> Phase:
    per = float(said["per"]) if "per" in said else None
    return Phase(float(said["frequency_hz"]), float(said["hold_below"]), per)


def _check_lengths(document: Document, joints: int, errors: shape.Errors) -> None:
    shape.add_repeats(document["joints"], "joints", errors, what="joint")
    for field in ("default_joint_pos", "action_scale", "stiffness", "damping"):
        value = document.get(field)
        if isinstance(value, list) and len(value) != joints:
            shape.add(errors, field, f"has {len(value)} values for {joints} joints")
    history = document.get("history", {"length": 1})
    if history["length"] > 1 and "order" not in history:
        shape.add(errors, "history.order", f"is missing: with {history['length']:g} frames it must be said")


def _check_terms(contract: Contract, errors: shape.Errors) -> None:
    names = [term.name for term in contract.observation]
    shape.add_repeats(names, "observation", errors, what="term")
    for place, term in enumerate(contract.observation):
        size = term.size(len(contract.joints))
        if term.names and term.name != "command":
            shape.add(errors, f"observation.{place}.names", "only the command has names")
        if isinstance(term.scale, tuple) and len(term.scale) != size:
            shape.add(
                errors, f"observation.{place}.scale", f"has {len(term.scale)} values for {size} numbers"
            )
        shape.add_repeats(term.names, f"observation.{place}.names", errors, what="axis")
    shared = [name for terms in contract.inputs.values() for name in terms]
    if sorted(shared) != sorted(names):
        shape.add(errors, "input", "every term of the observation belongs to exactly one input")


def _check_gains(document: Document, errors: shape.Errors) -> None:
    for one, other in (("stiffness", "damping"), ("damping", "stiffness")):
        if one in document and other not in document:
            shape.add(errors, other, f"is missing: {one} is there, and the two belong together")


def _check_phase(contract: Contract, errors: shape.Errors) -> None:
    terms = {term.name: term for term in contract.observation}
    walking = sorted(GAIT_TERMS & terms.keys())
    if not walking and contract.phase is not None:
        shape.add(errors, "phase", "no term of the observation uses it")
    if not walking:
        return
    if contract.phase is None:
        shape.add(errors, "phase", f"is missing: {' and '.join(walking)} needs frequency_hz and hold_below")
    elif "gait_phase_command" in walking and contract.phase.per is None:
        shape.add(errors, "phase.per", "is missing: gait_phase_command is vx / per times the phase")
    if "command" not in terms or "vx" not in terms["command"].names:
        shape.add(errors, "phase", "the gait follows a command with vx, and the observation has none")


def _number(
    *, least: float | None = None, above: float | None = None, most: float = MAX_NUMBER, zero: bool = True
) -> shape.Check:
    """A number that is one: TOML can say nan and inf."""
    inner = shape.number(least=least, above=above, most=most)

    def check(value: canonical.JSON, path: str, errors: shape.Errors) -> None:
        if isinstance(value, int | float) and not -MAX_NUMBER <= value <= MAX_NUMBER:
            shape.add(errors, path, "must be a finite number")
        elif not zero and value == 0:
            shape.add(errors, path, "must not be 0")
        else:
            inner(value, path, errors)

    return check


def _one_or_each(item: shape.Check) -> shape.Check:
    """One number for all, or a list with one for each."""
    many = shape.list_of(item, least=1, most=MAX_JOINTS)

    def check(value: canonical.JSON, path: str, errors: shape.Errors) -> None:
        (many if isinstance(value, list) else item)(value, path, errors)

    return check


def _input(value: canonical.JSON, path: str, errors: shape.Errors) -> None:
    (_SHARED if isinstance(value, dict) else _PORT)(value, path, errors)


_PORT = shape.text(least=1, most=200)
_TERM = shape.one_of(*TERMS, *ALIASES)
_SHARED = shape.table(key=_PORT, value=shape.list_of(_TERM, least=1, most=len(TERMS)), most=len(TERMS))
_POSITIVE = _one_or_each(_number(above=0))

_DOCUMENT = shape.record(
    {
        "robot": shape.text(
            most=60, pattern=r"[a-z0-9][a-z0-9-]*", means="lower-case letters, digits and dashes"
        ),
        "rate_hz": _number(above=0, most=MAX_RATE_HZ),
        "joints": shape.list_of(shape.joint, least=1, most=MAX_JOINTS),
        "default_joint_pos": shape.list_of(_number(), least=1, most=MAX_JOINTS),
        "action_scale": _one_or_each(_number(zero=False)),
        "observation": shape.list_of(
            shape.record(
                {"term": _TERM},
                {
                    "scale": _one_or_each(_number(zero=False)),
                    "names": shape.list_of(shape.one_of(*COMMAND_AXES), least=1, most=len(COMMAND_AXES)),
                },
            ),
            least=1,
            most=len(TERMS),
        ),
    },
    {
        "input": _input,
        "output": _PORT,
        "history": shape.record(
            {"length": shape.integer(least=1, most=MAX_HISTORY)}, {"order": shape.one_of(*ORDERS)}
        ),
        "action_clip": _number(least=0),
        "stiffness": _POSITIVE,
        "damping": _POSITIVE,
        "phase": shape.record(
            {"frequency_hz": _number(above=0, most=100), "hold_below": _number(least=0)},
            {"per": _number(above=0)},
        ),
    },
)
