"""What the policy sees: terms in the contract's order, scaled, with their history."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from driver.bodies.base import Array, State
from driver.contract.document import COMMAND_AXES, Contract, Term

Feeds = dict[str, NDArray[np.float32]]


class Observer:
    """Builds the inputs of one stage. History begins full of the first frame, and the newest comes last."""

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        sizes = [term.size(len(contract.joints)) for term in contract.observation]
        ends = np.cumsum(sizes).tolist()
        self._places = {
            term.name: slice(end - size, end)
            for term, size, end in zip(contract.observation, sizes, ends, strict=True)
        }
        self._scale = np.concatenate(
            [
                np.broadcast_to(term.scale, size)
                for term, size in zip(contract.observation, sizes, strict=True)
            ]
        )
        self._fill = [(self._places[term.name], self._reader(term)) for term in contract.observation]
        self._frame = np.zeros(ends[-1])
        self._history: NDArray[np.float32] | None = None
        self._gather = {name: self._order(terms) for name, terms in contract.inputs.items()}
        self._default = np.array(contract.default_joint_pos)

    def feeds(self, state: State, *, command: Array, last_action: Array, elapsed_s: float) -> Feeds:
        """The inputs for this tick. Called once a tick, because each call makes one frame of history."""
        for place, read in self._fill:
            self._frame[place] = read(state, command, last_action, elapsed_s)
        frame = (self._frame * self._scale).astype(np.float32)
        history = self._remember(frame)
        return {name: history[order] for name, order in self._gather.items()}

    def _remember(self, frame: NDArray[np.float32]) -> NDArray[np.float32]:
        """All frames end to end, oldest first."""
        if self._history is None:
            self._history = np.tile(frame, (self.contract.history_length, 1))
        elif self.contract.history_length == 1:
            self._history[0] = frame
        else:
            self._history[:-1] = self._history[1:]
            self._history[-1] = frame
        return self._history.reshape(-1)

    def _order(self, terms: tuple[str, ...]) -> NDArray[np.intp]:
        """Where each number of an input stands among all frames end to end."""
        width, length = len(self._frame), self.contract.history_length
        columns = [np.arange(self._places[name].start, self._places[name].stop) for name in terms]
        frames = width * np.arange(length)[:, None]
        order: NDArray[np.intp]
        if self.contract.history_order == "frame":
            order = (frames + np.concatenate(columns)).reshape(-1)
            return order
        order = np.concatenate([(frames + column).reshape(-1) for column in columns])
        return order

    def _reader(self, term: Term) -> Callable[[State, Array, Array, float], Array | list[float]]:
        if term.name == "command":
            axes = [COMMAND_AXES.index(name) for name in term.names]
            return lambda _state, command, _action, _elapsed: command[axes]
        return {
            "base_ang_vel": lambda state, _command, _action, _elapsed: state.ang_vel,
            "projected_gravity": lambda state, _command, _action, _elapsed: state.gravity,
            "base_lin_vel": lambda state, _command, _action, _elapsed: state.lin_vel,
            "joint_pos_rel": lambda state, _command, _action, _elapsed: state.joint_pos - self._default,
            "joint_vel": lambda state, _command, _action, _elapsed: state.joint_vel,
            "last_action": lambda _state, _command, action, _elapsed: action,
            "gait_phase": lambda _state, command, _action, elapsed: self._gait(command, elapsed),
            "gait_phase_command": lambda _state, command, _action, elapsed: self._gait_command(
                command, elapsed
            ),
        }[term.name]

    def _gait(self, command: Array, elapsed_s: float) -> list[float]:
        phase = self.contract.phase
        if phase is None or math.sqrt(command @ command) <= phase.hold_below:
            return [0.0, 0.0]
        angle = 2 * math.pi * phase.frequency_hz * elapsed_s
        return [math.sin(angle), math.cos(angle)]

    def _gait_command(self, command: Array, elapsed_s: float) -> list[float]:
        phase = self.contract.phase
        share = float(command[0]) / phase.per if phase is not None and phase.per else 0.0
        return [share * part for part in self._gait(command, elapsed_s)]
