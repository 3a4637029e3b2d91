"""What the device says to the hub: signed once, in order, under numbers that only rise."""

import logging
import threading
from collections.abc import Mapping
from typing import Any

from nacl.signing import SigningKey

from driver.answers import HubRefused, HubUnreachable
from driver.clock import Clock
from driver.hub import Hub
from driver.journal import Journal, Owed, Run
from driver.outbox import Outbox
from driver.wire import canonical, signatures, statements
from driver.wire.canonical import JSON

log = logging.getLogger("driver")

BLOCK = 50  # heartbeats that may go out between two writes of the journal


class Mail:
    """
    Events and heartbeats.

    An event is in the journal, then in the outbox, then told. One sender works at a time, for the hub takes
    numbers only upwards; heartbeats are not kept and never overtake an event.
    """

    def __init__(self, *, hub: Hub, journal: Journal, outbox: Outbox, key: SigningKey, clock: Clock) -> None:
        self.hub, self.journal, self.outbox, self.key, self.clock = hub, journal, outbox, key, clock
        self.sending = threading.RLock()
        self._seq = journal.state.seq  # in use; the journal's own is the highest that may have been used
        for owed in journal.state.owed:
            outbox.put(owed.name, owed.message.encode())

    def tell(
        self,
        kind: str,
        data: Mapping[str, Any],
        *,
        approval_id: str | None = None,
        trial_id: str | None = None,
        **changes: Any,
    ) -> None:
        """Owe the hub an event. `changes` of the journal land in the same write as the event."""
        with self.journal.lock:
            seq = self._next()
            message = self.sign(kind, data, seq=seq, approval_id=approval_id, trial_id=trial_id)
            owed = Owed(name=f"{seq:012d}-{kind}", message=message.decode())
            self.journal.change(owed=(owed,), seq=max(seq, self.journal.state.seq), **changes)
            self.outbox.put(owed.name, message)

    def tell_of(self, run: Run, kind: str, data: Mapping[str, Any], **changes: Any) -> None:
        """Owe the hub an event about a run; the run as given is what the journal then says."""
        self.tell(kind, data, approval_id=run.approval_id, trial_id=run.trial_id, run=run, **changes)

    def sign(
        self, kind: str, data: Mapping[str, Any], *, seq: int, approval_id: str | None, trial_id: str | None
    ) -> bytes:
        payload = statements.device_event_payload(
            approval_id=approval_id,
            device_id=self.hub.device_id,
            trial_id=trial_id,
            kind=kind,
            seq=seq,
            data=data,
            at=self.clock.now(),
        )
        statements.check_device_event(payload)
        return canonical.dumps(signatures.sign(payload, self.key))

    def deliver(self) -> int:
        """
        Tell all that is owed.

        :raises HubUnreachable: when some of it still waits
        """
        with self.sending:
            return self.outbox.deliver(self._send, self._set_aside)

    def beat(self, data: Mapping[str, Any]) -> None:
        """Say that the box lives, after all that is owed has been told."""
        with self.sending:
            self.deliver()
            message = self._heartbeat(data)
            if message is None:
                return  # an event came up just now; it goes first
            try:
                self._send(message)
            except HubRefused as refused:
                if not self._learn_seq(refused):
                    raise

    def _heartbeat(self, data: Mapping[str, Any]) -> bytes | None:
        with self.journal.lock:
            if self.outbox.waiting():
                return None
            seq = self._next()
            if seq > self.journal.state.seq:
                self.journal.change(seq=seq + BLOCK)
            return self.sign("heartbeat", data, seq=seq, approval_id=None, trial_id=None)

    def signed_start(self, data: Mapping[str, Any], *, approval_id: str, trial_id: str) -> bytes:
        """Sign a start event. The caller writes it down and sends it while nothing else is sent."""
        with self.journal.lock:
            seq = self._next()
            self.journal.change(seq=max(seq, self.journal.state.seq))
            return self.sign("run_started", data, seq=seq, approval_id=approval_id, trial_id=trial_id)

    def send_start(self, message: bytes) -> dict[str, JSON]:
        try:
            return self.hub.post_device_event(message)
        except HubRefused as refused:
            self._learn_seq(refused)
            raise

    def _next(self) -> int:
        self._seq += 1
        return self._seq

    def _send(self, message: bytes) -> None:
        try:
            self.hub.post_device_event(message)
        except HubRefused as refused:
            if refused.is_about_the_box:
                raise HubUnreachable(str(refused)) from refused  # nothing is wrong with what it says
            raise

    def _set_aside(self, message: bytes, refused: HubRefused) -> None:
        payload = _payload(message)
        log.error("the hub refused an event: kind=%s seq=%s %s", payload["kind"], payload["seq"], refused)
        self._learn_seq(refused)
        if refused.status == 409 and refused.last_seq is not None:
            self._say_again(payload)  # only its number was refused

    def _learn_seq(self, refused: HubRefused) -> bool:
        """A 409 with the hub's last number means that our journal is older than what we said."""
        last = refused.last_seq
        if refused.status != 409 or last is None or last < self._seq:
            return False
        log.error("journal lost: the hub knows number %s, this box was at %s", last, self._seq)
        with self.journal.lock:
            self._seq = last
            self.journal.change(seq=last)
        self.tell("journal_lost", {"reason": f"this box was at a number below {last}"})
        return True

    def _say_again(self, payload: dict[str, Any]) -> None:
        """Say it under a new number. The old bytes stay with the refused."""
        if payload["kind"] == "journal_lost":
            return
        self.tell(
            payload["kind"], payload["data"], approval_id=payload["approval_id"], trial_id=payload["trial_id"]
        )


def _payload(message: bytes) -> dict[str, Any]:
    payload, _, _ = signatures.opened(canonical.object_of(message))
    return payload
