"""The daemon's round: tell what is owed, look what is offered, carry out one trial. `step` does one pass."""

import logging
import random
from collections.abc import Sequence
from enum import Enum
from typing import Any

from driver import cleanup, facts, recover
from driver.accept import Accepted, Inspector, Refused
from driver.answers import HubRefused, HubUnreachable
from driver.box import Box
from driver.delivery import Delivery
from driver.hub import Offer, UrlExpired
from driver.journal import Step
from driver.permission import StartRefused
from driver.trial import Trial

log = logging.getLogger("driver")

MAX_PAUSE_S = 120.0
HELD_S = 30.0


class Did(Enum):
    """What a pass came to."""

    NOTHING = "nothing"
    WAITED = "waited"  # a trial is offered and has not started
    RAN = "ran"


class Loop:
    def __init__(self, box: Box) -> None:
        self.box = box
        self.delivery = Delivery(box)
        self.inspector = Inspector(config=box.config, pins=box.pins, robot=box.robot, storage=box.storage)
        self._in_hand: Accepted | None = None  # whose start this process has sent
        self._held: dict[str, float] = {}
        self._refused: set[str] = set()  # by this process: looked at again only after a new start
        self._failures = 0
        self._cleaned: float | None = None
        box.console.status = self._status

    def begin(self) -> None:
        """Before anything else: make the robot safe, and put an end to what a crash interrupted."""
        recover.make_safe(self.box)
        recover.end_run(self.box)

    def step(self) -> Did:
        """
        One pass. All that it finds is read from disk and asked from the hub, so it may be cut off anywhere.

        :raises HubUnreachable: the pass ends here, and the next one begins anew
        """
        self.delivery.sign()
        self._tell_loss()
        self.box.mail.beat(self.heartbeat())
        offers = self.box.hub.list_device_approvals("issued", "running")
        in_hand = self._in_hand
        recover.resolve_start(self.box, offers, in_hand=in_hand.approval_id if in_hand else None)
        self._look_for_strangers(offers)
        self.delivery.sign()
        did = self._next_trial(offers)
        self.delivery.sign()
        self.box.mail.deliver()  # the stop before the log: the hub takes them in this order
        self.delivery.step()
        self._clean_up()
        return did

    def run(self, *, once: bool = False) -> None:
        """
        Pass after pass until the daemon is asked to leave.

        :raises HubUnreachable: only with `once`, when nothing could be done
        """
        self.begin()
        while not self.box.leaving.is_asked():
            if once and self.step() is not Did.WAITED:
                return
            self.box.leaving.wait(self.box.config.hub.poll_s if once else self._pass())
        self._leave()

    def _pass(self) -> float:
        """One pass, and how long to pause after it."""
        try:
            self.step()
        except HubUnreachable as error:
            self._failures += 1
            pause = self._pause(error)
            log.warning("hub out of reach, again in %.0f s: %s", pause, error)
            return pause
        except HubRefused as error:
            log.error("%s", error)  # as a whole it does not want this device: no hammering
            return MAX_PAUSE_S
        self._failures = 0
        return self.box.config.hub.poll_s

    def _pause(self, error: HubUnreachable) -> float:
        """Doubling, with spread, so that a fleet does not come back all at once."""
        if error.retry_after_s is not None:
            return error.retry_after_s
        doubled: float = self.box.config.hub.poll_s * 2 ** min(self._failures, 10)
        return min(doubled, MAX_PAUSE_S) * random.uniform(0.5, 1.0)  # noqa: S311  # no secret

    def _leave(self) -> None:
        """One last try to tell what is owed; what remains is on disk for the next start."""
        self.delivery.sign()
        try:
            self.box.mail.deliver()
            self.delivery.step()
        except (HubUnreachable, HubRefused) as error:
            log.warning("left with something owed to the hub: %s", error)

    def heartbeat(self) -> dict[str, Any]:
        state = "needs_attention" if self.box.journal.state.attention else "idle"
        return facts.heartbeat(self.box, state)

    def _status(self) -> dict[str, Any]:
        """What only the running daemon knows."""
        heard, clock = self.box.hub.heard, self.box.clock
        run = self.box.journal.state.run
        return {
            "state": "running" if run else "idle",
            "hub_heard_s_ago": None if heard is None else round(clock.monotonic() - heard, 1),
            "skew_s": round(clock.skew.total_seconds(), 3),
        }

    def _tell_loss(self) -> None:
        state = self.box.journal.state
        if state.is_lost:
            self.box.mail.tell("journal_lost", {"reason": state.attention}, is_lost=False)

    def _look_for_strangers(self, offers: Sequence[Offer]) -> None:
        """What the hub thinks runs on this box, and the box knows nothing of."""
        state = self.box.journal.state
        known = {*state.used, *([state.run.approval_id] if state.run else [])}
        for offer in offers:
            if offer.state != "running" or offer.approval_id in known:
                continue
            if state.may_adopt and state.attention is None:
                recover.adopt(self.box, offer)
                return
            self.box.journal.attend(
                f"the hub says that {offer.approval_id} runs here, but this box did not start it: "
                "is there a second box with the same key?"
            )

    def _next_trial(self, offers: Sequence[Offer]) -> Did:
        run = self.box.journal.state.run
        if run is not None and run.step is Step.STARTED and self._in_hand is not None:
            return self._carry_out(self._in_hand, is_started=True)
        if run is not None or self.box.journal.state.attention is not None:
            return Did.NOTHING
        for offer in sorted(offers, key=_order):
            if offer.state == "issued" and not self._is_held(offer):
                did = self._try(offer)
                if did is not Did.NOTHING:
                    return did
        return Did.NOTHING

    def _is_held(self, offer: Offer) -> bool:
        """Refused here, or by the hub a moment ago, when another one's turn may have been first."""
        until = self._held.get(offer.approval_id, 0.0)
        return offer.approval_id in self._refused or self.box.clock.monotonic() < until

    def _try(self, offer: Offer) -> Did:
        used, now = self.box.journal.state.used, self.box.clock.now()
        try:
            return self._carry_out(self.inspector.accept(offer, used=used, now=now))
        except Refused as refused:
            self._refuse(offer, str(refused))
        except UrlExpired as error:
            log.warning("%s", error)  # the next pass lists a fresh one
        return Did.NOTHING

    def _refuse(self, offer: Offer, reason: str) -> None:
        """Say so once for each reason; a person may change the box config and start the daemon again."""
        self._refused.add(offer.approval_id)
        told = self.box.journal.state.refused or {}
        if told.get(offer.approval_id) == reason:
            return
        log.error("refused %s: %s", offer.approval_id, reason)
        self.box.mail.tell(
            "refused",
            {"reason": reason},
            **_about(offer),
            refused={**told, offer.approval_id: reason},
        )

    def _carry_out(self, accepted: Accepted, *, is_started: bool = False) -> Did:
        self._in_hand = accepted
        try:
            has_run = Trial(self.box, accepted).carry_out(is_started=is_started)
        except StartRefused as refused:
            log.error("%s does not start: %s", accepted.trial_id, refused)
            self._held[accepted.approval_id] = self.box.clock.monotonic() + HELD_S
            return Did.WAITED
        if has_run:
            self._held.clear()  # the turn of what was refused may have come
        return Did.RAN if has_run else Did.WAITED

    def _clean_up(self) -> None:
        now = self.box.clock.monotonic()
        if self._cleaned is None or now - self._cleaned > cleanup.EVERY_S:
            self._cleaned = now
            cleanup.remove_old(self.box)


def _about(offer: Offer) -> dict[str, str]:
    """Whose refusal it is, where the listing is sound enough to say so."""
    trial_id = offer.run_sheet.get("trial_id")
    return {"approval_id": offer.approval_id, "trial_id": trial_id} if isinstance(trial_id, str) else {}


def _order(offer: Offer) -> tuple[str, int, str]:
    """Session by session, in the order that was written before anything ran."""
    session, position = offer.run_sheet.get("session_id"), offer.run_sheet.get("position")
    return str(session), position if isinstance(position, int) else 0, offer.approval_id
