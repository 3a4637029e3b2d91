"""The rows of a stage's log: what the contract has and the body measures, once a tick."""

from driver.bodies.base import Array, State
from driver.contract.document import COMMAND_AXES, Contract
from driver.policy.abort import tilt_deg

_XYZ = ("x", "y", "z")

Row = list[float | None]


class Layout:
    """The columns of one log. What the body measures at its first row is what the log has."""

    def __init__(self, contract: Contract, state: State) -> None:
        self._joints = len(contract.joints)
        self._torque = state.torque is not None
        self._temps = state.temps_c is not None
        self._battery = state.battery_v is not None
        kinds = [
            "q",
            "dq",
            "tgt",
            "act",
            *(["tau"] if self._torque else []),
            *(["temp"] if self._temps else []),
        ]
        self.columns = (
            "t",
            "tick",
            *(f"g_{axis}" for axis in _XYZ),
            *(f"w_{axis}" for axis in _XYZ),
            *(f"cmd_{axis}" for axis in COMMAND_AXES),
            *(f"{kind}:{joint}" for kind in kinds for joint in contract.joints),
            *(["bat_v"] if self._battery else []),
            "fall",
        )

    def row(
        self,
        state: State,
        *,
        t: float,
        tick: int,
        command: Array,
        targets: Array,
        action: Array | None,
        fall: int | None,
    ) -> Row:
        """One tick; None is "not measured"."""
        return [
            t,
            tick,
            *state.gravity.tolist(),
            *state.ang_vel.tolist(),
            *command.tolist(),
            *state.joint_pos.tolist(),
            *state.joint_vel.tolist(),
            *targets.tolist(),
            *self._cells(action),
            *(self._cells(state.torque) if self._torque else ()),
            *(self._cells(state.temps_c) if self._temps else ()),
            *((state.battery_v,) if self._battery else ()),
            None if tilt_deg(state.gravity) is None else fall,  # who is blind saw no fall, and no standing
        ]

    def _cells(self, values: Array | None) -> list[float] | list[None]:
        return [None] * self._joints if values is None else values.tolist()
