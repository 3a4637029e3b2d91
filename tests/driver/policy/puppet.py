"""A body that goes where it is told, and an order to run on it; what goes wrong is written into a test."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from driver.bodies.base import Array, Plan, State
from driver.bodies.clock import RealClock
from driver.contract.document import Contract, check_contract
from driver.policy.commands import Constant, Source
from driver.policy.ending import Ending
from driver.policy.observation import Feeds
from driver.policy.order import AbortRule, Limits, Stage, StageOrder
from driver.policy.rows import Row
from driver.policy.runner import Parts, run_stage
from tests.driver.models import JOINTS

DEFAULT = np.array([-0.3, 0.6, -0.3, 0.6])

CONTRACT: dict[str, Any] = {
    "robot": "walker",
    "rate_hz": 50,
    "joints": list(JOINTS),
    "default_joint_pos": DEFAULT.tolist(),
    "action_scale": 0.5,
    "stiffness": [40.0, 50.0, 40.0, 50.0],
    "damping": 2.0,
    "observation": [{"term": "projected_gravity"}, {"term": "command"}, {"term": "joint_pos_rel"}],
}


QUICK = Limits(ramp_s=0.1)


def contract(**changes: Any) -> Contract:
    return check_contract(CONTRACT | changes)


def order(
    *,
    name: str = "floor",
    duration_s: float | None = 1.0,
    free_standing: bool = True,
    values: dict[str, Any] | None = None,
    rules: Sequence[AbortRule] = (),
    limits: Limits = QUICK,
    contract_: Contract | None = None,
    **more: Any,
) -> StageOrder:
    return StageOrder(
        stage=Stage(name=name, duration_s=duration_s, free_standing=free_standing, values=values or {}),
        contract=contract_ or contract(),
        onnx=Path("policy.onnx"),
        log=Path("floor.csv"),
        abort_rules=tuple(rules),
        limits=limits,
        **more,
    )


@dataclass
class FakeClock:
    """Time that only passes when somebody sleeps; `late` adds to some of the wakes."""

    time: float = 100.0
    late: dict[int, float] = field(default_factory=dict)
    wakes: int = 0

    def now(self) -> float:
        return self.time

    def sleep_until(self, moment: float) -> None:
        self.wakes += 1
        self.time = max(self.time, moment) + self.late.get(self.wakes, 0.0)


class Puppet:
    """`turns` changes what is read, by the seconds since the policy took over (negative before)."""

    simulated = False

    def __init__(self, *, turns: Callable[[float, State], State] = lambda _t, state: state) -> None:
        self.clock: Any = FakeClock()
        self.turns = turns
        self.position = DEFAULT.copy()
        self.limits = np.tile([-2.0, 2.0], (4, 1))
        self.sent: list[tuple[Array, Array, Array]] = []
        self.let_go_at: float | None = None
        self.is_connected = False

    def connect(self, plan: Plan) -> None:
        self.plan, self.is_connected = plan, True

    def joint_limits(self) -> Array:
        return self.limits

    def read(self) -> State:
        state = State(
            joint_pos=self.position.copy(),
            joint_vel=np.zeros(4),
            ang_vel=np.zeros(3),
            gravity=np.array([0.0, 0.0, -1.0]),
        )
        since = self.clock.now() - self.let_go_at if self.let_go_at is not None else -1.0
        return self.turns(since, state)

    def send(self, targets: Array, stiffness: Array, damping: Array) -> None:
        self.sent.append((targets.copy(), stiffness.copy(), damping.copy()))
        if stiffness.any():
            self.position = targets.copy()

    def let_go(self) -> None:
        self.let_go_at = self.clock.now()

    def disconnect(self) -> None:
        self.is_connected = False


def leaning(deg: float) -> Array:
    return np.array([np.sin(np.radians(deg)), 0.0, -np.cos(np.radians(deg))])


def changed(**values: Any) -> Callable[[State], State]:
    return lambda state: replace(state, **values)


@dataclass
class Says:
    """A policy that says what the function says, tick by tick, and remembers what it saw."""

    what: Callable[[int], Any] = lambda _tick: np.zeros(4)
    saw: list[Feeds] = field(default_factory=list)

    def action(self, feeds: Feeds) -> Array:
        self.saw.append({name: values.copy() for name, values in feeds.items()})
        return np.asarray(self.what(len(self.saw) - 1), dtype=float)


class Notebook:
    """A log in memory."""

    def __init__(self) -> None:
        self.columns: tuple[str, ...] = ()
        self.rows: list[Row] = []

    def open(self, columns: tuple[str, ...]) -> "Notebook":
        self.columns = columns
        return self

    def write(self, row: Row) -> None:
        assert len(row) == len(self.columns)
        self.rows.append(row)

    def column(self, name: str) -> list[Any]:
        return [row[self.columns.index(name)] for row in self.rows]


@dataclass
class Ran:
    ending: Ending
    body: Puppet
    log: Notebook
    policy: Says

    @property
    def stop(self) -> tuple[str, str | None]:
        return self.ending.stopped_by, self.ending.reason


def run(
    order_: StageOrder | None = None,
    *,
    body: Puppet | None = None,
    policy: Says | None = None,
    source: Source | None = None,
    asked: Callable[[], None] = lambda: None,
) -> Ran:
    body, policy, log = body or Puppet(), policy or Says(), Notebook()
    parts = Parts(body=body, policy=policy, source=source or Constant(), open_log=log.open, asked=asked)
    return Ran(run_stage(order_ or order(), parts), body, log, policy)


def on_the_real_clock(_query: str, *, seed: int | None = None) -> Puppet:
    """The factory of `--body python:tests.driver.policy.puppet:on_the_real_clock`."""
    body = Puppet()
    body.clock = RealClock()
    return body


def stuck(mark: str, *, seed: int | None = None) -> Puppet:
    """A body whose bus never answers again once the policy has taken over; a file of that name says when."""

    def wait(since: float, state: State) -> State:
        if since > 0.1:
            Path(mark).touch()
            time.sleep(3600)
        return state

    body = Puppet(turns=wait)
    body.clock = RealClock()
    return body
