"""The rows of a stage's log: what the contract has and the body measures, once a tick."""

from driver.bodies.base import Array, State
from driver.contract.document import COMMAND_AXES, Contract

_XYZ = ("x", "y", "z")

Row = list[float | None]


def columns(contract: Contract, state: State) -> tuple[str, ...]:
    """The header: what the contract has and this body measures."""
    kinds = ["q", "dq", "tgt", "act"]
    kinds += ["tau"] if state.torque is not None else []
    kinds += ["temp"] if state.temps_c is not None else []
    return (
        "t",
        "tick",
        *(f"g_{axis}" for axis in _XYZ),
        *(f"w_{axis}" for axis in _XYZ),
        *(f"cmd_{axis}" for axis in COMMAND_AXES),
        *(f"{kind}:{joint}" for kind in kinds for joint in contract.joints),
        *(["bat_v"] if state.battery_v is not None else []),
        "fall",
    )


def row(
    state: State,
    *,
    t: float,
    tick: int,
    command: Array,
    targets: Array,
    action: Array | None,
    fall: float | None,
) -> Row:
    """One tick, in the order of `columns`."""
    return [
        t,
        tick,
        *state.gravity.tolist(),
        *state.ang_vel.tolist(),
        *command.tolist(),
        *state.joint_pos.tolist(),
        *state.joint_vel.tolist(),
        *targets.tolist(),
        *(action.tolist() if action is not None else [None] * len(targets)),
        *(state.torque.tolist() if state.torque is not None else ()),
        *(state.temps_c.tolist() if state.temps_c is not None else ()),
        *((state.battery_v,) if state.battery_v is not None else ()),
        fall,
    ]
