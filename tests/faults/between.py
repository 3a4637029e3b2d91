"""
Somebody between the box and the hub, or between the box and the storage.

He passes everything on byte for byte, so that signatures hold, until a test has him do otherwise. The box
knows him by an origin of his own.
"""

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import urlsplit

from driver.wire import canonical

OURS = {"connection", "keep-alive", "transfer-encoding", "content-length"}
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    body: bytes

    def is_for(self, method: str, end: str) -> bool:
        return self.method == method and self.path.endswith(end)

    @property
    def event(self) -> str | None:
        """The kind of the event that a device posts, where it is one."""
        if not self.is_for("POST", "/events"):
            return None
        payload = canonical.object_of(self.body)["payload"]
        return str(payload["kind"]) if isinstance(payload, dict) else None


@dataclass(frozen=True)
class Answer:
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


Where = Callable[[Asked], bool]
PassOn = Callable[[], Answer]
Fault = Callable[[Asked, PassOn], Answer | None]  # None: the box gets no answer, the connection is cut


def event(kind: str) -> Where:
    return lambda asked: asked.event == kind


def request(method: str, end: str) -> Where:
    return lambda asked: asked.is_for(method, end)


def anything(asked: Asked) -> bool:
    return True


def down(asked: Asked, pass_on: PassOn) -> None:
    """Nothing comes through."""


@dataclass
class LosesFirstAnswers:
    """What was asked has happened, but the first answer to each kind of request never comes back."""

    lost: set[str] = field(default_factory=set)

    def __call__(self, asked: Asked, pass_on: PassOn) -> Answer | None:
        answer = pass_on()
        what = asked.event or f"{asked.method} {asked.path.rpartition('/')[2]}"
        if what in self.lost:
            return answer
        self.lost.add(what)
        return None


@dataclass
class Holds:
    """Keeps the box waiting, before or after its request has come to the other side; then cuts it off."""

    passes_on: bool
    came: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)

    def __call__(self, asked: Asked, pass_on: PassOn) -> None:
        if self.passes_on:
            pass_on()
        self.came.set()
        self.over.wait(PATIENCE_S)

    def wait(self) -> None:
        assert self.came.wait(PATIENCE_S), "the box never asked"


@dataclass
class Alters:
    """Puts another byte after the first of these marks that an answer has."""

    mark: bytes
    count: int = 0

    def __call__(self, asked: Asked, pass_on: PassOn) -> Answer:
        answer = pass_on()
        before, mark, after = answer.body.partition(self.mark)
        if not mark:
            return answer
        self.count += 1
        return replace(answer, body=before + mark + another(after[:1]) + after[1:])


def another(byte: bytes) -> bytes:
    """A digit for a digit, so that what is JSON stays JSON."""
    if byte.isdigit():
        return b"1" if byte != b"1" else b"2"
    return b"A" if byte != b"A" else b"B"


class Between:
    """The server. What came through is in `asked`, in its order."""

    def __init__(self, to: str = "") -> None:
        self.to = to
        self.asked: list[Asked] = []
        self._faults: list[tuple[Where, Fault]] = []
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.between = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def meeting(self, where: Where, fault: Fault) -> Iterator[None]:
        """While this lasts, what is asked there meets the fault."""
        met = (where, fault)
        self._faults.append(met)
        try:
            yield
        finally:
            self._faults.remove(met)

    @contextmanager
    def holding(self, where: Where, *, passes_on: bool) -> Iterator[Holds]:
        holds = Holds(passes_on)
        try:
            with self.meeting(where, holds):
                yield holds
        finally:
            holds.over.set()

    def puts_for(self, name: str) -> int:
        """How often something was put under a name that has this in it."""
        return sum(asked.method == "PUT" and name in asked.path for asked in self.asked)

    def answer_to(self, asked: Asked, headers: list[tuple[str, str]], url: str) -> Answer | None:
        self.asked.append(asked)
        fault = next((fault for where, fault in self._faults if where(asked)), None)

        def pass_on() -> Answer:
            return _passed_on(self.to, asked, headers, url)

        return fault(asked, pass_on) if fault else pass_on()


def _passed_on(to: str, asked: Asked, headers: list[tuple[str, str]], url: str) -> Answer:
    """With the very headers of the box, its Host too: its signatures cover them."""
    link = http.client.HTTPConnection(urlsplit(to).netloc, timeout=PATIENCE_S)
    try:
        link.putrequest(asked.method, url, skip_host=True, skip_accept_encoding=True)
        for name, value in headers:
            link.putheader(name, value)
        link.endheaders(asked.body or None)
        answer = link.getresponse()
        return Answer(answer.status, tuple(answer.getheaders()), answer.read())
    finally:
        link.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    between: Between


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = PATIENCE_S
    server: _Server

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        asked = Asked(self.command, urlsplit(self.path).path, body)
        try:
            answer = self.server.between.answer_to(asked, self.headers.items(), self.path)
        except OSError:
            answer = None  # the other side is not there, or ends just now
        if answer is None:
            self.close_connection = True
        else:
            with suppress(OSError):  # the box may be dead by now
                self._give(answer)

    def _give(self, answer: Answer) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.headers:
            if name.lower() not in OURS:
                self.send_header(name, value)
        self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, *_: object) -> None:
        """Nothing: a test that fails has better things to show."""
