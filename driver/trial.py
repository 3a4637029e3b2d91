"""One trial at the robot, in the order of its acts: go, start, stage after stage, stop."""

import logging
from dataclasses import replace
from typing import Any

from driver import buttons, facts, gates, limits, logs
from driver.accept import Accepted, Refused
from driver.box import Box
from driver.buttons import Button
from driver.console import Waiting
from driver.journal import StageRun, Step
from driver.orders import StageCall
from driver.permission import End, Go, NoGo, Permission
from driver.running import Outcome, run_stage
from driver.watch import Watch
from driver.wire import moments

log = logging.getLogger("driver")


class Trial:
    """Carries out one accepted approval. Every step is in the journal before the act that follows it."""

    def __init__(self, box: Box, accepted: Accepted) -> None:
        self.box, self.accepted = box, accepted
        self.calls = [
            StageCall(accepted=accepted, stage=stage, n=n, config=box.config)
            for n, stage in enumerate(accepted.sheet["stages"], start=1)
        ]
        self._began: float | None = None  # when the first stage did, on the monotonic clock
        self._stage: str | None = None
        self._is_waiting = False

    def carry_out(self, *, is_started: bool = False) -> bool:
        """
        Run the trial to its stop. False: nothing has started, and it may be offered again.

        `is_started`: the hub has the start from an earlier try that was answered too late to count.
        """
        box = self.box
        watch = Watch(
            approval_id=self.accepted.approval_id,
            hub=box.hub,
            mail=box.mail,
            clock=box.clock,
            every_s=box.config.hub.heartbeat_s,
            heartbeat=self.heartbeat,
        )
        with (
            box.console.stoppable(self.accepted.trial_id),
            buttons.asking(
                box.config.device.stop_input, box.config.folder, box.console.stop_asked
            ) as stop_input,
            watch,
        ):
            permission = Permission(box, self.accepted, watch)
            if not is_started and not self._start(permission):
                return False
            end = self._stages(permission, watch, stop_input, is_started=is_started)
            stop(box, end)
        return True

    def heartbeat(self) -> dict[str, Any]:
        state = "waiting_for_go" if self._is_waiting else "running"
        return facts.heartbeat(self.box, state, stage=self._stage, waiting_for_go=self._is_waiting)

    def _start(self, permission: Permission) -> bool:
        self._prepare()
        try:
            go = self._wait_for_go(permission, self.calls[0])
        except NoGo as reason:
            log.info("nothing started: %s", reason)
            return False
        if self.box.console.stop_asked.is_set():
            log.info("nothing started: stopped at the box")
            return False
        if self.box.clock.now() > self.accepted.latest_start:
            log.info("nothing started: the consent has expired")
            return False
        stages = (StageRun(name=call.name, n=call.n, log=str(call.log())) for call in self.calls)
        return permission.start(go, tuple(stages))

    def _prepare(self) -> None:
        """:raises Refused: where the box cannot keep what the run would leave"""
        accepted = self.accepted
        folder = self.box.run_folder(accepted.approval_id)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            logs.write_plan(folder, sheet=accepted.sheet, token=accepted.token, contract=accepted.contract)
            for call in self.calls:
                logs.check_place(call.log())
        except OSError as error:
            raise Refused(f"this box cannot write {error.filename}: {error.strerror}") from None

    def _stages(self, permission: Permission, watch: Watch, stop_input: Button, *, is_started: bool) -> End:
        end = None
        for call in self.calls:
            if call.n > 1 or is_started:
                end = self._permitted(permission, call)
            end = end or self._carry_out(call, watch, stop_input)
            if end:
                return end
        return End("completed")

    def _permitted(self, permission: Permission, call: StageCall) -> End | None:
        """A go and the hub's fresh word for a stage after the start; none while a person must look."""
        while True:
            if attention := self.box.journal.state.attention:
                return End("driver_stopped", f"nothing starts before a person has looked: {attention}")
            try:
                go = self._wait_for_go(permission, call)
            except NoGo as reason:
                if reason.end:
                    return reason.end
            else:
                return permission.confirm(go)

    def _wait_for_go(self, permission: Permission, call: StageCall) -> Go:
        sheet, checkpoint = self.accepted.sheet, self.accepted.sheet["checkpoint"]
        waiting = Waiting(
            trial_id=self.accepted.trial_id,
            approval_id=self.accepted.approval_id,
            role=sheet["role"],
            checkpoint=f"{checkpoint['run']} step {checkpoint['step']}",
            stage=call.name,
            place=f"{call.n} of {len(self.calls)}",
            seconds=call.stage["duration_s"],
            free_standing=call.stage["free_standing"],
            limits=limits.in_words(self.box.config.limits),
            digest=self.accepted.digest[:8],
        )
        self._stage, self._is_waiting = call.name, True
        try:
            return permission.wait_for_go(waiting)
        finally:
            self._is_waiting = False

    def _carry_out(self, call: StageCall, watch: Watch, stop_input: Button) -> End | None:
        """One stage: its start on disk, the command, its log kept, its gate; then its end on disk."""
        if self.box.console.stop_asked.is_set() or stop_input.needs_release:
            return End("operator", f"stopped at the box before {call.name}")
        t0_s = self._t0_s()
        self._note_start(call, t0_s)
        log.warning("stage %s of %s starts", call.name, self.accepted.trial_id)
        began = self._seconds()
        outcome = run_stage(self.box, call, watch, t0_s=t0_s)
        took = self._seconds() - began
        found = self._kept(call, outcome)
        end = outcome.end or self._failed_gate(call, found) or self._operator_end(call, outcome)
        self._note_end(call, outcome, found, took)
        return end

    def _kept(self, call: StageCall, outcome: Outcome) -> logs.Found:
        folder, stage = self.box.run_folder(self.accepted.approval_id), self._stage_run(call)
        logs.keep_output(folder, stage, outcome.output)
        logs.keep(folder, stage, settle_s=self.box.config.log.settle_s)
        return logs.find(folder, stage)

    def _note_start(self, call: StageCall, t0_s: float) -> None:
        before = logs.fingerprint(call.log())
        stage = replace(self._stage_run(call), before=before, t0_s=t0_s, status="aborted")
        run = replace(self.box.run, step=Step.STAGE).with_stage(stage)
        self.box.mail.tell_of(run, "stage_started", {"stage": call.name, "at_s": t0_s})

    def _note_end(self, call: StageCall, outcome: Outcome, found: logs.Found, took: float) -> None:
        log_s = logs.span_s(found.log) if found.log else None
        is_simulated = self.box.config.device.simulated
        stage = replace(
            self._stage_run(call),
            status=outcome.status,
            reason=outcome.reason,
            duration_s=log_s if is_simulated and log_s is not None else round(took, 3),
            log_s=log_s,
            said=dict(outcome.said),
        )
        run = replace(self.box.run, step=Step.STAGE_ENDED).with_stage(stage)
        data = {"stage": call.name, "at_s": self._seconds(), "status": stage.status, "reason": stage.reason}
        self.box.mail.tell_of(run, "stage_finished", data)

    def _failed_gate(self, call: StageCall, found: logs.Found) -> End | None:
        failed = gates.failed(self.accepted.sheet, call.stage, found.log)
        return End("gate", f"{call.name}: {failed}") if failed else None

    def _operator_end(self, call: StageCall, outcome: Outcome) -> End | None:
        """An open-ended stage ends at the operator's stop; the run goes on where another stage follows."""
        if self.box.console.stop_asked.is_set():
            return End("operator", f"stopped at the box after {call.name}")
        is_last = call is self.calls[-1]
        return End("operator", outcome.reason) if outcome.is_operators and is_last else None

    def _stage_run(self, call: StageCall) -> StageRun:
        return self.box.run.stages[call.n - 1]

    def _seconds(self) -> float:
        """On the trial's own clock, which starts with its first stage."""
        now = self.box.clock.monotonic()
        self._began = now if self._began is None else self._began
        return round(now - self._began, 3)

    def _t0_s(self) -> float:
        """A simulated body may run faster than we do; stages never overlap on the trial's clock."""
        ends = (stage.t0_s + (stage.log_s or 0.0) for stage in self.box.run.stages if stage.t0_s is not None)
        return max([self._seconds(), *ends])


def stop(box: Box, end: End) -> None:
    """Write down that the run is over, and owe the hub its stop. From here on nothing of it moves again."""
    run = replace(box.run, step=Step.STOPPED, stopped_by=end.stopped_by, reason=end.reason)
    now = box.clock.now()
    last = next((stage.said for stage in reversed(run.stages) if stage.said), None)
    data = facts.of_run(box.journal.state, go_by=run.go_by, now=now, said=last)
    log.warning("run of %s stopped: %s %s", run.trial_id, end.stopped_by, end.reason or "")
    box.mail.tell_of(run, "run_stopped", data, stopped_at=moments.write(now))
