"""
The way in for the person at the box: a socket in the state folder that only its owner may open.

A go names the ticket of what was shown, so that nobody starts anything else than what they saw; a stop needs
neither the disk nor the hub.
"""

import json
import logging
import os
import pwd
import secrets
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from driver.exits import DriverError

log = logging.getLogger("driver")

NAME = "control.sock"
MAX_LINE = 64 * 1024
PATIENCE_S = 5.0


class NoDaemon(DriverError):
    """No daemon answers in this state folder."""


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """What starts with the next go, as it is shown to the person who gives it."""

    trial_id: str
    approval_id: str
    role: str
    checkpoint: str
    stage: str
    place: str
    seconds: float | None
    free_standing: bool
    limits: str
    digest: str
    ticket: str = field(default_factory=lambda: secrets.token_hex(8))

    def in_words(self) -> list[str]:
        lasting = "until you stop it" if self.seconds is None else f"{self.seconds:g} s"
        standing = ", standing by itself" if self.free_standing else ""
        return [
            f"trial   {self.trial_id} ({self.role}, {self.checkpoint})",
            f"stage   {self.stage} ({self.place}), {lasting}{standing}",
            f"limits  {self.limits}",
            f"sheet   {self.digest}",
        ]


class Console:
    """What was asked at the box. The daemon looks here; the socket's threads write here."""

    def __init__(self, *, reconcile: Callable[[], str]) -> None:
        self.reconcile = reconcile
        self.status: Callable[[], dict[str, Any]] = dict
        self.stop_asked = threading.Event()
        self._lock = threading.Lock()
        self._waiting: Waiting | None = None
        self._go_by: str | None = None
        self._stoppable: str | None = None

    @contextmanager
    def stoppable(self, what: str) -> Iterator[None]:
        """While this lasts, a stop has something to stop."""
        with self._lock:
            self.stop_asked.clear()
            self._stoppable = what
        try:
            yield
        finally:
            with self._lock:
                self._stoppable = None

    @contextmanager
    def waiting(self, waiting: Waiting) -> Iterator[None]:
        """While this lasts, a go for this ticket counts."""
        with self._lock:
            self._waiting, self._go_by = waiting, None
        try:
            yield
        finally:
            with self._lock:
                self._waiting = None

    def go_by(self) -> str | None:
        """Who gave the go for what waits, or nobody yet."""
        with self._lock:
            return self._go_by

    def answer(self, asked: dict[str, Any], *, by: str) -> dict[str, Any]:
        asks: dict[str, Callable[[], dict[str, Any]]] = {
            "status": lambda: {**self.status(), **self._say_waiting()},
            "waiting": self._say_waiting,
            "go": lambda: self._take_go(asked.get("ticket"), by),
            "stop": lambda: self._take_stop(by),
            "reconciled": lambda: {"ok": True, "said": self.reconcile()},
        }
        act = asks.get(str(asked.get("ask")))
        return act() if act else {"ok": False, "said": "this daemon does not know that word"}

    def _say_waiting(self) -> dict[str, Any]:
        with self._lock:
            return {"waiting": asdict(self._waiting) if self._waiting else None}

    def _take_go(self, ticket: object, by: str) -> dict[str, Any]:
        with self._lock:
            if self._waiting is None or self._waiting.ticket != ticket:
                return {"ok": False, "said": "what you saw no longer waits; look again"}
            self._go_by = by
            return {"ok": True, "said": f"{self._waiting.stage} of {self._waiting.trial_id} may start"}

    def _take_stop(self, by: str) -> dict[str, Any]:
        with self._lock:
            if self._stoppable is None:
                return {"ok": False, "said": "nothing is running"}
            self.stop_asked.set()
            log.warning("stop asked by=%s", by)
            return {"ok": True, "said": f"stopping {self._stoppable}"}


@contextmanager
def listening(console: Console, folder: Path) -> Iterator[None]:
    """Answer on the socket, in threads of their own, while this lasts."""
    (folder / NAME).unlink(missing_ok=True)
    with _address(folder) as address:
        before = os.umask(0o177)
        try:
            server = _Server(address, console)
        finally:
            os.umask(before)
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="console", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        (folder / NAME).unlink(missing_ok=True)


def ask(folder: Path, **asked: Any) -> dict[str, Any]:
    """
    Ask the daemon of this state folder.

    :raises NoDaemon: when none answers
    """
    try:
        with _address(folder) as address, socket.socket(socket.AF_UNIX) as link:
            link.settimeout(PATIENCE_S)
            link.connect(address)
            link.sendall(json.dumps(asked).encode() + b"\n")
            answer: dict[str, Any] = json.loads(link.makefile("rb").readline(MAX_LINE))
            return answer
    except (OSError, ValueError) as error:
        raise NoDaemon(f"no daemon answers in {folder}") from error


@contextmanager
def _address(folder: Path) -> Iterator[str]:
    """A short way to the socket: its real path may be longer than the 107 bytes that a socket's may have."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{handle}/{NAME}"
    finally:
        os.close(handle)


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def __init__(self, address: str, console: Console) -> None:
        self.console = console
        super().__init__(address, _Handler)


class _Handler(socketserver.StreamRequestHandler):
    timeout = PATIENCE_S
    server: _Server

    def handle(self) -> None:
        try:
            uid = _peer(self.connection)
            if uid not in (0, os.geteuid()):
                return
            asked = json.loads(self.rfile.readline(MAX_LINE))
            answer = self.server.console.answer(asked, by=f"local {_user(uid)}")
            self.wfile.write(json.dumps(answer).encode() + b"\n")
        except (OSError, ValueError, AttributeError):
            log.warning("a request at the box could not be read")


def _peer(link: socket.socket) -> int:
    _, uid, _ = struct.unpack(
        "3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    )
    return int(uid)


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name[:60]
    except KeyError:
        return f"user {uid}"
