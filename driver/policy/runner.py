"""One stage of a trial: ramp, let go, and then the policy on every tick, until something ends it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from driver.bodies.base import Array, Body, BodyError, Plan
from driver.contract.pose import default_outside
from driver.policy.abort import AbortWatch, blindness, readings, rules_for, tilt_deg, tilt_threshold
from driver.policy.braking import brake, damp
from driver.policy.commands import STOP_AFTER_S, Constant, Source, limited
from driver.policy.ending import Ending, Orphaned, Stopped, known, temperatures
from driver.policy.mind import Mind, Policy, Thought
from driver.policy.motion import Motors, TooFar, motors_for, ramp_from
from driver.policy.order import AbortRule, StageOrder
from driver.policy.pace import Pace, Tick
from driver.policy.rows import Layout, Row


class Log(Protocol):
    def write(self, row: Row) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a stage is run with. `asked` is called on every tick and raises what must end it from outside."""

    body: Body
    policy: Policy
    source: Source
    open_log: Callable[[tuple[str, ...]], Log]
    asked: Callable[[], None] = lambda: None


def run_stage(order: StageOrder, parts: Parts) -> Ending:
    """Run one stage. Whatever happens, the motors are left in damping; the answer says how it ended."""
    run = _StageRun(order, parts)
    try:
        stop = _moved(run) if (refused := run.connect()) is None else refused
    finally:
        parts.body.disconnect()
    return run.ending(stop)


def _moved(run: "_StageRun") -> Stopped:
    try:
        stop = run.whole()
    except Orphaned:
        run.brake(holding=False)
        return Stopped("driver_stopped", "whoever started the stage is gone")
    except BaseException:
        damp(run.parts.body, run.motors)
        raise
    run.brake(holding=True)
    return stop


class _StageRun:
    motors: Motors
    pace: Pace
    tick: Tick
    layout: Layout

    def __init__(self, order: StageOrder, parts: Parts) -> None:
        self.order, self.parts, self.contract = order, parts, order.contract
        self.period_s = 1.0 / self.contract.rate_hz
        self.rules = rules_for(order.stage, order.abort_rules, order.limits)
        self.threshold = tilt_threshold(self.rules)
        self.watches_tilt = any(rule.metric == "tilt_deg" for rule in self.rules)
        self.watch = AbortWatch(self.rules)
        self.mind = Mind(self.contract, parts.policy)
        self.seen: Tick | None = None
        self.held: Array | None = None
        self.log: Log | None = None
        self.fell = False
        self.clamped_ticks = 0

    # The parts of a stage.

    def connect(self) -> Stopped | None:
        """Make the body ready. What stands in the way is answered, and nothing has moved."""
        plan = Plan(
            joints=self.contract.joints,
            period_s=self.period_s,
            free_standing=self.order.stage.free_standing,
        )
        try:
            self.parts.body.connect(plan)
        except BodyError as error:
            return Stopped("command_failed", str(error))
        self.motors = motors_for(self.order, self.parts.body.joint_limits())
        self.pace = Pace(self.parts.body, period_s=self.period_s, asked=self.parts.asked)
        return None

    def whole(self) -> Stopped:
        """From the first reading to whatever ends the stage."""
        try:
            self._look(self.pace.here())
            self._check_senses()
            self._check_default()
            self._ramp()
            return self._walk()
        except Stopped as stop:
            return stop

    def brake(self, *, holding: bool) -> None:
        brake(
            self.parts.body,
            self.motors,
            held=self.held if holding else None,
            period_s=self.period_s,
            asked=self.parts.asked,
        )

    def ending(self, stop: Stopped) -> Ending:
        state = self.seen.state if self.seen else None
        return Ending(
            stopped_by=stop.stopped_by,
            reason=stop.reason,
            motor_temps_c=temperatures(self.contract.joints, state),
            battery_v=known(state.battery_v) if state else None,
            fell=self._fell(),
            tilt_protection={"armed": self.threshold is not None, "threshold_deg": self.threshold},
            clamped_ticks=self.clamped_ticks,
            simulated_clock=self.parts.body.simulated,
        )

    def _fell(self) -> bool | None:
        """Unknown where nobody watched, and where the last reading had no tilt."""
        blind = self.seen is None or tilt_deg(self.seen.state.gravity) is None
        return None if self.threshold is None or blind else self.fell

    def _ramp(self) -> None:
        """Bring the robot to the default pose, watched by the same rules as the policy."""
        try:
            ramp = ramp_from(self.tick.state.joint_pos, self.contract, self.order.limits)
        except TooFar as error:
            raise Stopped("command_failed", str(error)) from None
        began = self.tick.now
        while (elapsed := self.tick.now - began) < ramp.duration_s - 1e-9:
            wanted, share = ramp.at(elapsed)
            targets, _ = self.motors.clamped(wanted)  # the robot may hang beyond its limits
            rule = self._tripped(targets)
            if rule is not None:
                self._write(elapsed, 0, Constant().command(elapsed), targets, None)
            self._stop_if(rule)
            self._send(targets, share * self.motors.stiffness)
            self._look(self.pace.next())

    def _walk(self) -> Stopped:
        """Let go and run the policy. Returns when the stage is over by itself."""
        self.parts.body.let_go()
        self._look(self.pace.here())
        self.watch = AbortWatch(self.rules)
        self.parts.source.begin(self.tick.now)
        began, count = self.tick.now, 0
        ends_s, why = self._end()
        while (elapsed := self.tick.now - began) < ends_s - 1e-9:
            if self.parts.source.is_over(self.tick.now):
                return Stopped("completed")
            self._step(elapsed, count)
            self._look(self.pace.next())
            count += 1
        return Stopped("completed", why)

    def _end(self) -> tuple[float, str | None]:
        """When the stage is over by itself, and what to say when that is not its own duration."""
        longest, asked = self.order.limits.max_stage_s, self.order.stage.duration_s
        if asked is not None and asked <= longest:
            return asked, None
        return longest, f"the box's max_stage_s of {longest:g} s is over"

    # One tick.

    def _step(self, elapsed_s: float, count: int) -> None:
        """See, think, check, write down, act. What trips a rule is written down and never sent."""
        command = self._command()
        thought = self.mind.think(self.tick.state, command=command, elapsed_s=elapsed_s)
        if count == 0:
            self._check_first(thought)
        targets, moved = self.motors.clamped(thought.wanted)
        self.clamped_ticks += moved
        rule = self._tripped(targets, thought.action)
        self._write(elapsed_s, count, command, targets, thought.action)
        self._stop_if(rule)
        self._send(targets, self.motors.stiffness)

    def _command(self) -> Array:
        command = limited(self.parts.source.command(self.tick.now), self.order.limits)
        age_s = self.parts.source.age_s(self.tick.now)
        if age_s is not None and age_s > STOP_AFTER_S:
            raise Stopped("link_lost", f"the stream of commands has been silent for {age_s:.1f} s")
        return command

    def _check_first(self, thought: Thought) -> None:
        """Later targets may be clamped; the first of all has no excuse for leaving the joints' limits."""
        place = self.motors.outside(thought.wanted)
        if place is None:
            return
        low, high = self.motors.low[place], self.motors.high[place]
        raise Stopped(
            "command_failed",
            f"the first action wants {self.contract.joints[place]} at {thought.wanted[place]:.3f} rad, "
            f"outside its limits {low:.3f} to {high:.3f}",
        )

    def _tripped(self, targets: Array, action: Array | None = None) -> AbortRule | None:
        read = readings(
            self.tick.state,
            gap_s=self.tick.gap_s,
            command_age_s=self.parts.source.age_s(self.tick.now) if action is not None else None,
            targets=targets,
            action=action,
        )
        rule = self.watch.tripped(read, self.tick.now)
        self.fell = rule is not None and rule.metric == "tilt_deg"
        return rule

    def _stop_if(self, rule: AbortRule | None) -> None:
        if rule is not None:
            raise Stopped("abort_rule", str(rule))

    def _write(
        self, elapsed_s: float, count: int, command: Array, targets: Array, action: Array | None
    ) -> None:
        if self.log is None:
            self.layout = Layout(self.contract, self.tick.state)
            self.log = self.parts.open_log(self.layout.columns)
        line = self.layout.row(
            self.tick.state,
            t=elapsed_s,
            tick=count,
            command=command,
            targets=targets,
            action=action,
            fall=None if self.threshold is None else int(self.fell),
        )
        try:
            self.log.write(line)
        except OSError as error:
            raise Stopped("command_failed", f"the log cannot be written: {error}") from None

    def _send(self, targets: Array, stiffness: Array) -> None:
        self.held = targets
        self.parts.body.send(targets, stiffness, self.motors.damping)

    def _look(self, tick: Tick) -> None:
        """
        Take in a reading.

        :raises Stopped: where a rule acts on the tilt and the reading has none
        """
        self.tick = self.seen = tick
        if self.watches_tilt and (blind := blindness(tick.state)) is not None:
            raise Stopped("command_failed", blind)

    def _check_senses(self) -> None:
        needs = any(term.name == "base_lin_vel" for term in self.contract.observation)
        if needs and self.tick.state.lin_vel is None:
            raise Stopped("command_failed", "the policy needs base_lin_vel, which this body does not measure")

    def _check_default(self) -> None:
        outside = default_outside(self.contract, self.motors.spans(self.contract.joints))
        if outside is not None:
            raise Stopped("command_failed", outside)
