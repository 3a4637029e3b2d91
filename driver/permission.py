"""
What permits a stage: a go from a person at the box, and a fresh word signed by the hub.

Neither replaces the other.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from driver import buttons, facts
from driver.accept import Accepted
from driver.answers import HubRefused, HubUnreachable
from driver.box import Box
from driver.console import Waiting
from driver.journal import KEEP_USED, Run, StageRun, Step
from driver.pins import Pins
from driver.watch import Watch
from driver.wire import canonical, moments, signatures, statements
from driver.wire.canonical import JSON

log = logging.getLogger("driver")

GO_WAIT_S = 600.0  # then what waits is looked at anew
GO_LASTS_S = 10.0  # a robot must not start long after the person said so
ANSWER_LASTS = timedelta(seconds=10)
POLL_S = 0.02
AGAIN_S = 0.5


class AnswerRefused(Exception):
    """The hub's word is not signed by the pinned key, not about this approval, or not fresh."""


@dataclass(frozen=True)
class End:
    """Why a run is over."""

    stopped_by: str
    reason: str | None = None


@dataclass(frozen=True)
class Go:
    by: str
    at: float  # on the monotonic clock


class StartRefused(Exception):
    """The hub does not let this run start now, and says why."""


class NoGo(Exception):
    """Nobody gave a go. `end` is what that means for a run that has started: null, it waits again."""

    def __init__(self, reason: str, stopped_by: str | None = None) -> None:
        super().__init__(reason)
        self.end = End(stopped_by, reason) if stopped_by else None


@dataclass(frozen=True)
class Word:
    """The hub's signed answer to "may I?"."""

    go_on: bool
    reason: str | None
    at: datetime


class Permission:
    """Asks the person, then the hub, for one trial."""

    def __init__(self, box: Box, accepted: Accepted, watch: Watch) -> None:
        self.box, self.accepted, self.watch = box, accepted, watch
        self._newest: tuple[datetime, float] | None = None  # the hub's newest word, and when it came

    def wait_for_go(self, waiting: Waiting) -> Go:
        """
        Wait until somebody at the box says go for what is shown.

        :raises NoGo: when ten minutes pass, the daemon is to leave, or the hub or the person withdraws it
        """
        clock, device = self.box.clock, self.box.config.device
        if device.go == "auto":
            return Go("auto", clock.monotonic())
        for line in ["waiting for a go: `trial-driver go`", *waiting.in_words()]:
            log.warning("%s", line)
        until = clock.monotonic() + GO_WAIT_S
        with (
            self.box.console.waiting(waiting),
            buttons.watched(device.go_input, self.box.config.folder) as button,
        ):
            button.needs_release = True  # one that is held or stuck would start every stage in a row
            while clock.monotonic() < until:
                if by := self.box.console.go_by() or ("the box's go input" if button.is_pressed() else None):
                    return Go(by, clock.monotonic())
                self._check_wanted()
                self.box.leaving.wait(POLL_S)
        raise NoGo("no go in ten minutes")

    def _check_wanted(self) -> None:
        self.watch.check()
        if self.box.leaving.is_asked():
            raise NoGo("the daemon was asked to leave", self.box.leaving.by)
        if self.box.console.stop_asked.is_set():
            raise NoGo("stopped at the box", "operator")
        if self.watch.revoked.is_set():
            raise NoGo("the consent was revoked", "revoked")

    def start(self, go: Go, stages: tuple[StageRun, ...]) -> bool:
        """
        Tell the hub that the run starts, and hear that it may. Nothing else is sent meanwhile.

        False: nothing started here. Where the hub may think otherwise, the journal stays at `starting`.

        :raises StartRefused: with the hub's reason
        """
        box, accepted = self.box, self.accepted
        try:
            with box.mail.sending:
                box.mail.deliver()
                data = facts.of_run(box.journal.state, go_by=go.by, now=box.clock.now())
                message = box.mail.signed_start(
                    data, approval_id=accepted.approval_id, trial_id=accepted.trial_id
                )
                self._write_starting(message, go, stages)
                word = self._heard(lambda: box.mail.send_start(message), go)
        except HubUnreachable as error:
            log.warning("the start was not answered in time; the go has lapsed: %s", error)
            self._keep_stop()
            return False
        except HubRefused as refused:
            raise self._forgotten_start(str(refused)) from None
        except AnswerRefused as refused:
            self._refuse_answer(str(refused))
            return False
        if not word.go_on:
            raise self._forgotten_start(word.reason or "the hub says no")
        used = (*box.journal.state.used, accepted.approval_id)[-KEEP_USED:]
        box.journal.change(run=replace(box.run, step=Step.STARTED), used=used)
        return True

    def confirm(self, go: Go) -> End | None:
        """Ask the hub whether the run is still wanted; no answer is a no."""
        approval_id = self.accepted.approval_id
        try:
            word = self._heard(lambda: self.box.hub.confirm_approval(approval_id), go)
        except HubUnreachable as error:
            if self.box.console.stop_asked.is_set():
                return End("operator", "stopped at the box")
            return End("link_lost", f"no word from the hub before the next stage: {error}")
        except AnswerRefused as refused:  # somebody on the way changed it: as good as no word
            return End("link_lost", f"the hub's word before the next stage was refused: {refused}")
        except HubRefused as refused:
            return End("revoked", str(refused))
        return None if word.go_on else End("revoked", word.reason)

    def _heard(self, call: Callable[[], dict[str, JSON]], go: Go) -> Word:
        """Ask until the go has lapsed; the same bytes get the same answer."""
        clock = self.box.clock
        while True:
            try:
                word = self._read(call())
                break
            except HubUnreachable:
                if self.box.console.stop_asked.is_set() or clock.monotonic() + AGAIN_S - go.at > GO_LASTS_S:
                    raise
                if self.box.leaving.wait(AGAIN_S):
                    raise
        if clock.monotonic() - go.at > GO_LASTS_S:
            raise HubUnreachable("the answer came after the go had lapsed")
        self._newest = (word.at, clock.monotonic())
        return word

    def _read(self, answer: dict[str, JSON]) -> Word:
        """
        The hub's word, if it is a fresh one.

        Somebody between us and the hub may set our clock, but cannot take back what the hub signed before:
        since then at least as much time has passed as was measured here.
        """
        word = read_word(answer, approval_id=self.accepted.approval_id, pins=self.box.pins)
        now = self.box.clock.now()
        earliest = now - ANSWER_LASTS
        if self._newest:
            at, heard = self._newest
            passed = timedelta(seconds=self.box.clock.monotonic() - heard)
            earliest = max(earliest, at + passed - ANSWER_LASTS)
        if not earliest <= word.at <= now + ANSWER_LASTS:
            raise AnswerRefused(f"it was made at {moments.write(word.at)}, which is not now")
        return word

    def _write_starting(self, message: bytes, go: Go, stages: tuple[StageRun, ...]) -> None:
        run = Run(
            approval_id=self.accepted.approval_id,
            trial_id=self.accepted.trial_id,
            step=Step.STARTING,
            boot_id=facts.boot_id(),
            start=message.decode(),
            stages=stages,
            go_by=go.by,
        )
        self.box.journal.change(run=run)

    def _keep_stop(self) -> None:
        """A start that the hub may yet count ends as the person said who stopped while it was asked."""
        run = self.box.journal.state.run
        if run is not None and self.box.console.stop_asked.is_set():
            self.box.journal.change(run=replace(run, stopped_by="operator", reason="stopped at the box"))

    def _forgotten_start(self, reason: str) -> StartRefused:
        self.box.journal.change(run=None)
        return StartRefused(reason)

    def _refuse_answer(self, reason: str) -> None:
        reason = f"the answer to the start was refused: {reason}"
        log.error("%s", reason)
        run = self.box.run
        self.box.mail.tell(
            "refused",
            {"reason": reason},
            approval_id=run.approval_id,
            trial_id=run.trial_id,
            run=replace(run, reason=reason),
        )


def read_word(answer: dict[str, JSON], *, approval_id: str, pins: Pins) -> Word:
    """:raises AnswerRefused: unless a pinned key signed it, for this approval"""
    try:
        payload, kid, _ = signatures.opened(answer)
        if kid not in pins.keys:
            raise AnswerRefused(f"signed by key {kid[:16]!r}, which is not pinned")
        signatures.verify(answer, pins.keys[kid])
        statements.check_go_on(payload)
    except (signatures.SignatureError, statements.BadStatement) as error:
        raise AnswerRefused(str(error)) from None
    said = canonical.object_of(canonical.dumps(payload))
    if said["approval_id"] != approval_id:
        raise AnswerRefused(f"it is about {said['approval_id']}")
    reason = str(said["reason"]) if said["reason"] else None
    return Word(go_on=said["go_on"] is True, reason=reason, at=moments.read(str(said["at"])))
