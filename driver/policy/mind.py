"""The policy with its memory: what it sees, what it says, and where it wants the joints."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from driver.bodies.base import Array, State
from driver.contract.document import Contract
from driver.policy.ending import Stopped
from driver.policy.inference import ModelFailed
from driver.policy.observation import Feeds, Observer


class Policy(Protocol):
    def action(self, feeds: Feeds) -> Array: ...


@dataclass(frozen=True)
class Thought:
    action: Array  # as the policy said it
    wanted: Array  # joint targets, before any clamp


class Mind:
    def __init__(self, contract: Contract, policy: Policy) -> None:
        self._policy, self._observer = policy, Observer(contract)
        self._default = np.array(contract.default_joint_pos)
        self._scale = np.array(contract.action_scale)
        self._clip = contract.action_clip or np.inf
        self._last_action = np.zeros(len(contract.joints))

    def think(self, state: State, *, command: Array, elapsed_s: float) -> Thought:
        """:raises Stopped: where the policy fails or says what is no number"""
        feeds = self._observer.feeds(
            state, command=command, last_action=self._last_action, elapsed_s=elapsed_s
        )
        try:
            action = self._policy.action(feeds)
        except ModelFailed as error:
            raise Stopped("command_failed", str(error)) from None
        if not np.isfinite(action).all():
            raise Stopped("command_failed", "the policy's action is not finite")
        self._last_action = np.minimum(np.maximum(action, -self._clip), self._clip)
        return Thought(action, self._default + self._scale * self._last_action)
