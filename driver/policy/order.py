"""What the daemon asks of the stage child: one JSON object on stdin, read once and strictly."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from driver.contract.document import MAX_JOINTS, BadContract, Contract, check_contract
from driver.wire import canonical, shape, vocabulary

MAX_STEPS = 1000
ABORT_OPERATORS = (">", ">=", "<", "<=")


class BadOrder(ValueError):
    """An order that is not followed; `errors` says why, by path."""

    def __init__(self, errors: shape.Errors) -> None:
        super().__init__("; ".join(f"{path}: {', '.join(said)}" for path, said in errors.items()))
        self.errors = errors


@dataclass(frozen=True, kw_only=True)
class AbortRule:
    """Stop when the metric has broken the bound for `for_s` without a pause. No stages means all of them."""

    metric: str
    op: str
    value: float
    for_s: float = 0.0
    stages: tuple[str, ...] = ()

    def __str__(self) -> str:
        lasting = f" for {self.for_s:g} s" if self.for_s else ""
        return f"{self.metric} {self.op} {self.value:g}{lasting}"


@dataclass(frozen=True, kw_only=True)
class Stage:
    name: str
    duration_s: float | None = None
    free_standing: bool = False
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The box's own, as in the `[limits]` of its config."""

    kd_scale: tuple[float, float] = (0.5, 1.5)
    power_scale: tuple[float, float] = (0.2, 1.0)
    max_stage_s: float = 120.0
    max_offline_s: float = 60.0
    command: tuple[float, float, float] = (0.8, 0.3, 0.6)
    tilt_deg: float = 60.0
    temp_c: float = 85.0
    ramp_s: float = 3.0
    max_ramp_rad: float = 1.0
    joint_pos: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    joint_vel_rad_s: float = 20.0


@dataclass(frozen=True, kw_only=True)
class Gains:
    """A `[gains.NAME]` table of the box: one number for all joints, or one by joint name."""

    stiffness: float | Mapping[str, float]
    damping: float | Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Teleop:
    """Where the command comes from: `zero`, `script:NAME` with its steps, or `udp:HOST:PORT`."""

    source: str
    steps: tuple[tuple[float, float, float, float], ...] = ()  # seconds, vx, vy, wz


@dataclass(frozen=True, kw_only=True)
class StageOrder:
    stage: Stage
    contract: Contract
    onnx: Path
    log: Path
    onnx_sha256: str | None = None
    limits: Limits = Limits()
    kd_scale: float = 1.0
    power_scale: float = 1.0
    gain_profile: str = "policy"
    abort_rules: tuple[AbortRule, ...] = ()
    gains: Gains | None = None
    teleop: Teleop | None = None
    simulated: bool = False
    seed: int | None = None
    t0_s: float = 0.0


def read_order(raw: bytes) -> StageOrder:
    """
    The order in these bytes.

    :raises BadOrder: for anything that is not exactly one, unknown keys included
    """
    try:
        document = canonical.object_of(raw)
    except canonical.NotStrict as error:
        raise BadOrder({".": [str(error)]}) from None
    if errors := shape.errors_in(document, _ORDER):
        raise BadOrder(errors)
    return _order(document)


def _order(said: Mapping[str, Any]) -> StageOrder:
    sheet, teleop = said["sheet"], said["teleop"]
    try:
        contract = check_contract(said["contract"])
    except BadContract as error:
        raise BadOrder({f"contract.{path}": texts for path, texts in error.errors.items()}) from None
    order = StageOrder(
        stage=_stage(said["stage"]),
        contract=contract,
        onnx=Path(said["onnx"]),
        log=Path(said["log"]),
        onnx_sha256=said.get("onnx_sha256"),
        limits=_limits(said["limits"]),
        kd_scale=float(sheet["kd_scale"]),
        power_scale=float(sheet["power_scale"]),
        gain_profile=sheet["gain_profile"],
        abort_rules=tuple(_rule(rule) for rule in sheet["abort_rules"]),
        gains=None if said["gains"] is None else Gains(**said["gains"]),
        teleop=None if teleop is None else _teleop(teleop),
        simulated=said["simulated"],
        seed=None if said["seed"] is None else int(said["seed"]),
        t0_s=float(said["t0_s"]),
    )
    _check_gains(order)
    return order


def _stage(said: Mapping[str, Any]) -> Stage:
    known = ("name", "duration_s", "free_standing", "values")
    return Stage(**{key: said[key] for key in known if key in said})


def _rule(said: Mapping[str, Any]) -> AbortRule:
    return AbortRule(**{**said, "stages": tuple(said.get("stages", ()))})


def _limits(said: Mapping[str, Any]) -> Limits:
    spans: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in said.items()
    }
    if "joint_pos" in said:
        spans["joint_pos"] = {joint: tuple(span) for joint, span in said["joint_pos"].items()}
    return Limits(**spans)


def _teleop(said: Mapping[str, Any]) -> Teleop:
    return Teleop(source=said["source"], steps=tuple(tuple(step) for step in said["script"] or ()))


def _check_gains(order: StageOrder) -> None:
    if order.gains is None and (order.gain_profile != "policy" or order.contract.stiffness is None):
        raise BadOrder({"gains": [f"the gain profile {order.gain_profile!r} has no gains on this box"]})
    if order.gains is None:
        return
    for name, value in vars(order.gains).items():
        missing = [
            joint for joint in order.contract.joints if isinstance(value, Mapping) and joint not in value
        ]
        if missing:
            raise BadOrder({f"gains.{name}": [f"says nothing for {', '.join(missing)[:200]}"]})


def _span(least: float | None = None) -> shape.Check:
    return shape.list_of(shape.number(least=least), least=2, most=2)


_PLUS = shape.number(least=0)
_ABOVE = shape.number(above=0)
_GAIN_TABLE = shape.table(key=shape.joint, value=_ABOVE, most=MAX_JOINTS)


def _gain(value: canonical.JSON, path: str, errors: shape.Errors) -> None:
    (_GAIN_TABLE if isinstance(value, dict) else _ABOVE)(value, path, errors)


def _anything(value: canonical.JSON, path: str, errors: shape.Errors) -> None:
    """Checked where it is read."""


_RULE = shape.record(
    {
        "metric": shape.one_of(*vocabulary.ABORT_METRICS),
        "op": shape.one_of(*ABORT_OPERATORS),
        "value": shape.number(),
    },
    {"for_s": _PLUS, "stages": shape.list_of(shape.stage_name, most=64)},
)

_VALUES = shape.record(
    {},
    {
        "command": shape.list_of(shape.number(), least=3, most=3),
        "command_script": shape.stage_name,
    },
)

_ORDER = shape.record(
    {
        "stage": shape.record(
            {"name": shape.stage_name, "duration_s": shape.or_null(_ABOVE)},
            {"judged": shape.flag, "free_standing": shape.flag, "values": _VALUES, "gate": _anything},
        ),
        "sheet": shape.record(
            {
                "kd_scale": _ABOVE,
                "power_scale": _ABOVE,
                "gain_profile": shape.text(least=1, most=64),
                "abort_rules": shape.list_of(_RULE, most=64),
            }
        ),
        "contract": _anything,
        "onnx": shape.text(least=1, most=4096),
        "log": shape.text(least=1, most=4096),
        "limits": shape.record(
            {},
            {
                "kd_scale": _span(0),
                "power_scale": _span(0),
                "max_stage_s": _ABOVE,
                "max_offline_s": _ABOVE,
                "command": shape.list_of(_PLUS, least=3, most=3),
                "tilt_deg": _ABOVE,
                "temp_c": shape.number(),
                "ramp_s": _PLUS,
                "max_ramp_rad": _ABOVE,
                "joint_pos": shape.table(key=shape.joint, value=_span(), most=MAX_JOINTS),
                "joint_vel_rad_s": _ABOVE,
            },
        ),
        "gains": shape.or_null(shape.record({"stiffness": _gain, "damping": _gain})),
        "teleop": shape.or_null(
            shape.record(
                {"source": shape.text(least=1, most=200)},
                {
                    "script": shape.or_null(
                        shape.list_of(shape.list_of(shape.number(), least=4, most=4), least=1, most=MAX_STEPS)
                    )
                },
            )
        ),
        "simulated": shape.flag,
        "seed": shape.or_null(shape.integer(least=0)),
        "t0_s": shape.number(),
    },
    {"onnx_sha256": shape.or_null(shape.digest)},
)
