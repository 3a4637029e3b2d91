"""The daemon's ear to the hub while a trial is on: nothing at the robot ever waits for the network."""

import logging
import threading
from collections.abc import Callable
from typing import Any, Self

from driver.answers import HubRefused, HubUnreachable
from driver.clock import Clock
from driver.hub import Hub
from driver.mail import Mail

log = logging.getLogger("driver")


class Watch:
    """
    Tells what is owed, sends heartbeats and hears of a revocation, in a thread of its own.

    `revoked` is set when a stop was asked, when the hub lists the approval no longer, and when the box itself
    was revoked.
    """

    def __init__(
        self,
        *,
        approval_id: str,
        hub: Hub,
        mail: Mail,
        clock: Clock,
        every_s: float,
        heartbeat: Callable[[], dict[str, Any]],
    ) -> None:
        self.approval_id, self.hub, self.mail, self.clock = approval_id, hub, mail, clock
        self.every_s, self.heartbeat = every_s, heartbeat
        self.revoked = threading.Event()
        self._done = threading.Event()
        self._heard = clock.monotonic()
        self._broken: Exception | None = None
        self._thread = threading.Thread(target=self._watch, name="watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def offline_s(self) -> float:
        """How long the hub has not been heard."""
        return self.clock.monotonic() - self._heard

    def check(self) -> None:
        """Raise what ended the thread, if anything did: a daemon that hears no revocation must not go on."""
        if self._broken:
            raise self._broken

    def _watch(self) -> None:
        try:
            while not self._done.is_set():
                self._look_if_there()
                self._done.wait(self.every_s)
        except Exception as error:  # noqa: BLE001  # handed to the main thread, which stops the robot
            self._broken = error

    def _look_if_there(self) -> None:
        try:
            self._look()
        except HubUnreachable as error:
            log.warning("hub out of reach: %s", error)
        except HubRefused as error:
            log.error("%s", error)
            if error.says_revoked:
                self.revoked.set()

    def _look(self) -> None:
        self.mail.beat(self.heartbeat())
        listed = self.hub.list_device_approvals("issued", "running")
        ours = next((offer for offer in listed if offer.approval_id == self.approval_id), None)
        self._heard = self.clock.monotonic()
        if ours is None or ours.stop_requested_at is not None:
            self.revoked.set()
