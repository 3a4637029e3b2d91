"""The only file that knows a URL: every call to the hub and to its object storage."""

import hashlib
import os
import secrets
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlencode, urlsplit

import httpx
from nacl.signing import SigningKey

from driver import answers
from driver.answers import HubRefused, HubUnreachable
from driver.clock import Clock
from driver.exits import DriverError
from driver.wire import canonical, requests
from driver.wire.canonical import JSON

API = "/api/v1"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
TIMEOUT = httpx.Timeout(10, connect=5)
CALL_S = 30  # a whole call, however slowly its answer trickles in
MAX_ANSWER = 4 * 2**20
PAGE_LIMIT = 50
CHUNK = 2**20
SLOWEST = 50_000  # bytes a second: a transfer slower than this is given up and tried again


@dataclass(frozen=True)
class Offer:
    """One approval as the hub lists it. Nothing in it is believed before it is verified."""

    approval_id: str
    state: str
    token: dict[str, JSON]
    run_sheet: dict[str, JSON]
    url: str
    bytes: int
    onnx_sha256: str
    contract: dict[str, JSON] | None
    stop_requested_at: str | None


@dataclass(frozen=True)
class Upload:
    """Where one file of a log may be put, with the headers that the URL was signed for."""

    name: str
    url: str
    headers: dict[str, str]


def client() -> httpx.Client:
    # The system's certificates, so that a site's own authority works. No proxy from the environment: it
    # would be one more host that nobody pinned.
    return httpx.Client(
        timeout=TIMEOUT,
        verify=_trusted(),
        follow_redirects=False,
        trust_env=False,
        headers={"accept-encoding": "identity", "user-agent": "trial-driver"},
    )


@cache
def _trusted() -> ssl.SSLContext:
    return ssl.create_default_context()


def enrol(url: str, envelope: bytes) -> dict[str, JSON]:
    """enrolDevice: the one call that no device key signs, for the hub does not know it yet."""
    with client() as http:
        request = http.build_request("POST", f"{url}{API}/devices/enrol", content=envelope, headers=_json())
        return answers.told(*_answer(http, request))


def reach(http: httpx.Client, url: str) -> datetime | None:
    """Knock unsigned, and give the time that the hub's answer carries."""
    response, _ = _answer(http, http.build_request("GET", f"{url}/healthz"))
    return _date(response)


@dataclass
class Hub:
    """The hub as this device sees it. Each method is one operation of the API."""

    url: str
    device_id: str
    key: SigningKey
    clock: Clock
    http: httpx.Client = field(default_factory=client)
    heard: float | None = None  # when it last answered, on the monotonic clock

    def post_device_event(self, message: bytes) -> dict[str, JSON]:
        return self._call("POST", f"/devices/{self.device_id}/events", body=message)

    def list_device_approvals(self, *states: str) -> list[Offer]:
        offers: list[Offer] = []
        query = {"state": ",".join(states), "limit": "100"}
        for _ in range(PAGE_LIMIT):
            page = self._call("GET", f"/devices/{self.device_id}/approvals", query=query)
            offers.extend(_offer(item) for item in answers.items(page))
            if not isinstance(page.get("next"), str):
                return offers
            query["cursor"] = str(page["next"])
        raise HubUnreachable("the hub's list of approvals does not end")

    def confirm_approval(self, approval_id: str) -> dict[str, JSON]:
        return self._call("POST", f"/approvals/{approval_id}/confirm")

    def create_trial_log_upload(self, trial_id: str, files: Sequence[Mapping[str, Any]]) -> list[Upload]:
        body = canonical.dumps({"files": list(files)})
        answer = self._call("POST", f"/trials/{trial_id}/log/uploads", body=body)
        return [_upload(item) for item in answers.items(answer, key="files")]

    def upload_trial_log(self, trial_id: str, statement: bytes) -> dict[str, JSON]:
        return self._call("POST", f"/trials/{trial_id}/log", body=statement)

    def _call(
        self, method: str, path: str, *, body: bytes | None = None, query: Mapping[str, str] | None = None
    ) -> dict[str, JSON]:
        try:
            return self._signed_call(method, path, body, query)
        except HubRefused as refused:
            if not self._learned_time(refused):
                raise
        return self._signed_call(method, path, body, query)

    def _signed_call(
        self, method: str, path: str, body: bytes | None, query: Mapping[str, str] | None
    ) -> dict[str, JSON]:
        url = self.url + API + path + (f"?{urlencode(query)}" if query else "")
        request = self.http.build_request(method, url, content=body, headers=_json() if body else None)
        signed = requests.sign_request(
            method=method,
            url=str(request.url),
            headers={},
            body=body,
            key=self.key,
            device_id=self.device_id,
            created=self.clock.now(),
            nonce=secrets.token_urlsafe(24),
        )
        request.headers.update(signed)
        response, raw = _answer(self.http, request)
        answer = answers.told(response, raw)
        self.heard = self.clock.monotonic()
        self._note_time(response)
        return answer

    def _learned_time(self, refused: HubRefused) -> bool:
        """A 401 that carries the hub's time means that our clock is outside: take it, and try once more."""
        now = refused.hub_time()
        if refused.status != 401 or now is None:
            return False
        self.clock.learn(now)
        return True

    def _note_time(self, response: httpx.Response) -> None:
        """Follow the hub's clock, so that the age of its signed answers can be told."""
        date = _date(response)
        if date and abs((date - self.clock.now()).total_seconds()) > 2:  # a Date has whole seconds
            self.clock.learn(date)


def _json() -> dict[str, str]:
    return {"content-type": "application/json"}


def _date(response: httpx.Response) -> datetime | None:
    try:
        date = parsedate_to_datetime(response.headers.get("date", ""))
    except ValueError:
        return None
    return date if date.tzinfo else None


def _offer(item: dict[str, JSON]) -> Offer:
    checkpoint = item.get("checkpoint")
    if not isinstance(checkpoint, dict):
        raise HubUnreachable("the hub lists an approval without its checkpoint")
    url, contract, stop = checkpoint.get("url"), checkpoint.get("contract"), item.get("stop_requested_at")
    return Offer(
        approval_id=answers.text(item, "approval_id"),
        state=answers.text(item, "state"),
        token=answers.table(item, "token"),
        run_sheet=answers.table(item, "run_sheet"),
        url=url if isinstance(url, str) else "",
        bytes=answers.integer(checkpoint, "bytes"),
        onnx_sha256=answers.text(checkpoint, "onnx_sha256"),
        contract=contract if isinstance(contract, dict) else None,
        stop_requested_at=stop if isinstance(stop, str) else None,
    )


def _upload(item: dict[str, JSON]) -> Upload:
    headers = {name: str(value) for name, value in answers.table(item, "headers").items()}
    return Upload(name=answers.text(item, "name"), url=answers.text(item, "url"), headers=headers)


@contextmanager
def streamed(http: httpx.Client, request: httpx.Request) -> Iterator[httpx.Response]:
    """Send, and turn every fault of the network into one answer: try again."""
    try:
        response = http.send(request, stream=True)
        try:
            yield response
        finally:
            response.close()
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError) as error:
        said = str(error) or type(error).__name__
        raise HubUnreachable(f"{request.url.host}: {said}") from error


def _answer(http: httpx.Client, request: httpx.Request) -> tuple[httpx.Response, bytes]:
    raw = b""
    until = time.monotonic() + CALL_S
    with streamed(http, request) as response:
        for chunk in response.iter_bytes():
            raw += chunk
            if len(raw) > MAX_ANSWER or time.monotonic() > until:
                raise HubUnreachable("the hub's answer is too long or too slow")
    return response, raw


class UrlRefused(DriverError):
    """A URL that this box does not open: not of a host that was pinned at enrolment."""


class UrlExpired(DriverError):
    """The storage no longer takes this URL: ask the hub for a fresh one."""


class BytesRefused(DriverError):
    """What came, or what was sent, is not what was announced."""


@dataclass
class Storage:
    """Presigned URLs of pinned hosts, streamed from disk and to disk."""

    hosts: Sequence[str]
    allow_http: bool
    http: httpx.Client = field(default_factory=client)

    def check(self, url: str) -> None:
        """:raises UrlRefused: unless it is https of a pinned host, or http where the hub is local too"""
        parts = urlsplit(url)
        place = parts.netloc
        is_local = parts.scheme == "http" and parts.hostname in LOOPBACK and self.allow_http
        if parts.scheme != "https" and not is_local:
            raise UrlRefused(f"the hub gave a URL that is not https: {parts.scheme}://{place}")
        if place not in self.hosts and f"{parts.scheme}://{place}" not in self.hosts:
            raise UrlRefused(f"the hub gave a URL of {place}, which is not a pinned storage host")

    def download(self, url: str, path: Path, *, size: int) -> str:
        """
        Fetch to a file beside `path`, then rename; give the sha256.

        :raises BytesRefused: when it is longer or shorter than announced
        """
        self.check(url)
        request = self.http.build_request("GET", url)
        draft = path.with_name(path.name + ".part")
        with streamed(self.http, request) as response:
            if response.status_code == 403:
                raise UrlExpired("the storage no longer gives the checkpoint under this URL")
            if response.status_code != 200:
                raise HubUnreachable(f"the storage answered {response.status_code}")
            digest = _save(response, draft, size=size)
        draft.rename(path)
        return digest

    def put(self, url: str, headers: Mapping[str, str], path: Path) -> None:
        """
        Send a file. Storage keeps all of it or nothing.

        :raises UrlExpired: for a 403, which is what an expired URL answers
        :raises BytesRefused: when the storage says that these are not the bytes that were announced
        """
        self.check(url)
        length = path.stat().st_size
        with path.open("rb") as file:
            request = self.http.build_request(
                "PUT", url, headers={**headers, "content-length": str(length)}, content=_chunks(file, length)
            )
            with streamed(self.http, request) as response:
                _check_stored(response)


def _save(response: httpx.Response, draft: Path, *, size: int) -> str:
    until = time.monotonic() + _patience(size)
    digest, got = hashlib.sha256(), 0
    with draft.open("wb") as file:
        for chunk in response.iter_raw(CHUNK):
            got += len(chunk)
            if got > size:
                raise BytesRefused(f"the checkpoint is longer than the {size} bytes announced")
            if time.monotonic() > until:
                raise HubUnreachable("the storage is too slow")
            digest.update(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    if got != size:
        raise HubUnreachable(f"the storage sent {got} of {size} bytes")
    return digest.hexdigest()


def _chunks(file: BinaryIO, length: int) -> Iterator[bytes]:
    until = time.monotonic() + _patience(length)
    while chunk := file.read(CHUNK):
        if time.monotonic() > until:
            raise httpx.WriteTimeout("too slow")
        yield chunk


def _patience(size: int) -> float:
    return 30 + size / SLOWEST


def _check_stored(response: httpx.Response) -> None:
    status = response.status_code
    if 200 <= status < 300 or status == 412:  # 412: under this once-only URL the bytes are there already
        return
    if status == 403:
        raise UrlExpired("the storage no longer takes this URL")
    if status == 400:
        raise BytesRefused("the storage says that the file is not what was announced")
    raise HubUnreachable(f"the storage answered {status}")
