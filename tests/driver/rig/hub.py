"""A hub for the driver's tests: a real HTTP server that checks every signature as the hub does."""

import base64
import hashlib
import json
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from nacl.signing import SigningKey

from driver.wire import base64url, canonical, moments, requests, signatures, statements
from tests.driver.rig import papers

DEVICE = f"dev_{1:022d}"
CODE = "abcdefghjkmnpqrstvwx"


class Answer(Exception):
    """What a handler answers instead of the usual."""

    def __init__(
        self, status: int, body: Any = None, *, kind: str = "application/problem+json", **headers: str
    ) -> None:
        self.status, self.body, self.kind, self.headers = status, body, kind, headers


class NoAnswer(Exception):
    """The connection ends without an answer."""


def problem(status: int, slug: str, detail: str = "", **members: Any) -> Answer:
    said = {"type": f"https://hub.example/problems/{slug}", "title": slug, "status": status, "detail": detail}
    return Answer(status, {**members, **said})


@dataclass
class Approval:
    approval_id: str
    sheet: dict[str, Any]
    token: dict[str, Any]
    onnx: bytes
    contract: dict[str, Any] | None
    state: str = "issued"
    stop_requested_at: str | None = None


@dataclass
class FakeHub:
    """What it knows, what it was told, and what it does instead of the usual (`instead`, by operation)."""

    folder: Path
    key: SigningKey = field(default_factory=SigningKey.generate)
    device_key: bytes | None = None
    approvals: dict[str, Approval] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    heartbeats: list[dict[str, Any]] = field(default_factory=list)
    logs: dict[str, dict[str, Any]] = field(default_factory=dict)
    stored: dict[str, bytes] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    instead: dict[str, Callable[[], None]] = field(default_factory=dict)
    after: dict[str, Callable[[], None]] = field(default_factory=dict)
    ahead: timedelta = timedelta(0)
    last_seq: int = 0
    url: str = ""

    def __post_init__(self) -> None:
        self.salt = secrets.token_hex(8)
        self.lock = threading.RLock()
        self._answers: dict[int, tuple[bytes, dict[str, Any]]] = {}
        self._announced: dict[str, dict[str, Any]] = {}
        self._attempts = 0

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    @property
    def code(self) -> str:
        return f"{CODE}.{signatures.kid(self.key.verify_key.encode())}"

    def plan(self, n: int = 1, *, token: dict[str, Any] | None = None, **sheet: Any) -> Approval:
        """Consent to a trial: a sheet, an ONNX file and a token that fit each other."""
        path = self.folder / f"policy-{n}.onnx"
        data = papers.checkpoint(path)
        contract = papers.contract(path)
        made = papers.sheet(n, papers.sha256(data), papers.name_of(contract), **sheet)
        # As unique as the hub's own: a daemon ends every process on the machine that is marked with it.
        approval_id = f"apr_{self.salt}{n:06d}"
        signed = papers.token(
            made, approval_id=approval_id, device_id=DEVICE, size=len(data), key=self.key, **(token or {})
        )
        approval = Approval(approval_id, made, signed, data, contract)
        self.approvals[approval_id] = approval
        return approval

    def kinds(self) -> list[str]:
        return [event["kind"] for event in self.events]

    def told(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["kind"] == kind]

    def forget(self) -> None:
        """As if no device and no trial had ever been here."""
        for kept in (self.approvals, self.events, self.heartbeats, self.logs, self.stored, self._answers):
            kept.clear()
        self.last_seq = 0

    def revoke(self, approval: Approval) -> None:
        approval.stop_requested_at = moments.write(self.now())

    # Operations, by the name that the API gives them.

    def enrol_device(self, body: bytes, **_: Any) -> dict[str, Any]:
        envelope = canonical.object_of(body)
        payload: Any = envelope["payload"]
        public_key = base64url.decode(payload["public_key"])
        signatures.verify(envelope, public_key)
        statements.check_enrol(payload)
        if payload["code"] != self.code:
            raise problem(401, "enrolment-refused", "Ask for a new code.")
        self.device_key = public_key
        return {
            "device_id": DEVICE,
            "hub": {"keys": [self._published()], "storage_hosts": [urlsplit(self.url).netloc]},
        }

    def _published(self) -> dict[str, Any]:
        public_key = self.key.verify_key.encode()
        return {
            "kid": signatures.kid(public_key),
            "public_key": base64url.encode(public_key),
            "valid_from": "x",
        }

    def list_device_approvals(self, query: dict[str, list[str]], **_: Any) -> dict[str, Any]:
        states = query["state"][0].split(",")
        items = [self._listed(each) for each in self.approvals.values() if each.state in states]
        return {"items": list(reversed(items)), "next": None}

    def _listed(self, approval: Approval) -> dict[str, Any]:
        return {
            "approval_id": approval.approval_id,
            "state": approval.state,
            "token": approval.token,
            "run_sheet": approval.sheet,
            "checkpoint": {
                "url": f"{self.url}/storage/onnx/{approval.approval_id}",
                "bytes": len(approval.onnx),
                "onnx_sha256": approval.sheet["checkpoint"]["onnx_sha256"],
                "contract": approval.contract,
            },
            "stop_requested_at": approval.stop_requested_at,
        }

    def post_device_event(self, body: bytes, **_: Any) -> dict[str, Any]:
        envelope = canonical.object_of(body)
        payload: Any = envelope["payload"]
        assert self.device_key is not None
        signatures.verify(envelope, self.device_key)
        statements.check_device_event(payload)
        seq = payload["seq"]
        if seq in self._answers and self._answers[seq][0] == body:
            return self._answers[seq][1]
        if seq <= self.last_seq:
            raise problem(409, "seq-used", f"The last one was {self.last_seq}.", last_seq=self.last_seq)
        answer = self._take(payload)
        self.last_seq = seq
        if payload["kind"] == "heartbeat":
            self.heartbeats.append(payload)
        else:
            self._answers[seq] = (body, answer)
            self.events.append(payload)
        return answer

    def _take(self, payload: dict[str, Any]) -> dict[str, Any]:
        approval = self.approvals.get(payload["approval_id"])
        if payload["kind"] == "run_started":
            assert approval is not None
            if approval.state != "issued":
                raise problem(409, "wrong-state", f"It is {approval.state}.")
            approval.state = "running"
            return self.word(approval)
        if payload["kind"] == "run_stopped":
            assert approval is not None
            if approval.state != "running":
                raise problem(409, "wrong-state", f"It is {approval.state}.")
            approval.state = "stopped"
        return {"seq": payload["seq"]}

    def confirm_approval(self, approval_id: str, **_: Any) -> dict[str, Any]:
        return self.word(self.approvals[approval_id])

    def word(self, approval: Approval, **changes: Any) -> dict[str, Any]:
        is_wanted = approval.state == "running" and approval.stop_requested_at is None
        usual = {
            "approval_id": approval.approval_id,
            "go_on": is_wanted,
            "reason": None if is_wanted else "revoked",
            "at": self.now(),
        }
        return signatures.sign(statements.go_on_payload(**{**usual, **changes}), self.key)

    def create_trial_log_upload(self, trial_id: str, body: bytes, **_: Any) -> dict[str, Any]:
        if trial_id in self.logs:
            raise problem(409, "log-recorded")
        self._attempts += 1
        files: Any = canonical.object_of(body)["files"]
        for file in files:
            self._announced[f"{trial_id}/{self._attempts}/{file['name']}"] = file
        return {"files": [self._upload(trial_id, file) for file in files]}

    def _upload(self, trial_id: str, file: dict[str, Any]) -> dict[str, Any]:
        sha256 = base64.b64encode(bytes.fromhex(file["sha256"])).decode()
        return {
            "name": file["name"],
            "url": f"{self.url}/storage/log/{trial_id}/{self._attempts}/{file['name']}?X-Amz-Signature=x",
            "headers": {"x-amz-checksum-sha256": sha256, "content-length": str(file["bytes"])},
            "expires_at": moments.write(self.now() + timedelta(hours=1)),
        }

    def upload_trial_log(self, trial_id: str, body: bytes, **_: Any) -> dict[str, Any]:
        envelope = canonical.object_of(body)
        payload: Any = envelope["payload"]
        assert self.device_key is not None
        signatures.verify(envelope, self.device_key)
        statements.check_trial_log(payload)
        if trial_id in self.logs:
            same = self.logs[trial_id]["raw"] == body
            raise problem(409, "log-recorded", "It has one.", same=same)
        for file in payload["files"]:
            mine = [
                data
                for key, data in self.stored.items()
                if key.startswith(trial_id) and key.endswith(file["name"])
            ]
            if not mine or hashlib.sha256(mine[-1]).hexdigest() != file["sha256"]:
                raise problem(422, "log-mismatch", f"{file['name']} is not what was signed.")
        self.logs[trial_id] = {"raw": body, "payload": payload}
        return {"state": payload["state"]}

    # Storage.

    def put(self, key: str, data: bytes, headers: dict[str, str]) -> None:
        announced = self._announced[key]
        if len(data) != announced["bytes"] or headers.get("x-amz-checksum-sha256") is None:
            raise Answer(400, "<Error>length</Error>", kind="application/xml")
        if hashlib.sha256(data).hexdigest() != announced["sha256"]:
            raise Answer(400, "<Error>BadDigest</Error>", kind="application/xml")
        self.stored[key] = data


class _Handler(BaseHTTPRequestHandler):
    hub: FakeHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Not on the tests' output."""

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            answer = self._act(body)
        except Answer as other:
            answer = other
        except NoAnswer:
            self.close_connection = True
            return
        self._send(answer)

    def _act(self, body: bytes) -> Answer:
        path, query = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
        if path == "/healthz":
            return Answer(200, {"ok": True}, kind="application/json")
        if path.startswith("/storage/"):
            return self._storage(path, body)
        operation, arguments = _operation(self.command, path)
        self._before(operation)
        if operation != "enrol_device":
            self._check_signature(body)
        with self.hub.lock:
            said = getattr(self.hub, operation)(body=body, query=query, **arguments)
        if kept := self.hub.after.get(operation):
            kept()
        return Answer(200, said, kind="application/json")

    def _before(self, operation: str) -> None:
        self.hub.calls.append(operation)
        if instead := self.hub.instead.get(operation) or self.hub.instead.get("*"):
            instead()

    def _check_signature(self, body: bytes) -> None:
        assert self.hub.device_key is not None
        key = self.hub.device_key
        try:
            requests.verify_request(
                method=self.command,
                url=self.hub.url + self.path,
                headers=dict(self.headers.items()),
                body=body,
                public_key_of=lambda device: [key] if device == DEVICE else [],
                now=self.hub.now(),
            )
        except requests.ClockOutside as error:
            raise problem(401, "clock-outside", str(error), now=moments.write(self.hub.now())) from None
        except requests.BadRequestSignature as error:
            raise problem(401, "request-signature", str(error)) from None

    def _storage(self, path: str, body: bytes) -> Answer:
        _, _, kind, key = path.split("/", 3)
        self._before(f"storage_{self.command.lower()}")
        if kind == "onnx":
            return Answer(200, self.hub.approvals[key].onnx, kind="application/octet-stream")
        self.hub.put(key, body, {name.lower(): value for name, value in self.headers.items()})
        if kept := self.hub.after.get("storage_put"):
            kept()
        return Answer(200, b"", kind="application/xml")

    def _send(self, answer: Answer) -> None:
        raw = (
            answer.body
            if isinstance(answer.body, bytes)
            else (answer.body.encode() if isinstance(answer.body, str) else json.dumps(answer.body).encode())
        )
        self.send_response(answer.status)
        self.send_header("content-type", answer.kind)
        self.send_header("content-length", str(len(raw)))
        for name, value in answer.headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(raw)

    def date_time_string(self, timestamp: float | None = None) -> str:
        from email.utils import format_datetime

        return format_datetime(self.hub.now(), usegmt=True)


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """A client that goes away is what some tests are about."""


def _operation(method: str, path: str) -> tuple[str, dict[str, str]]:
    parts = path.removeprefix("/api/v1/").split("/")
    match (method, *parts):
        case ("POST", "devices", "enrol"):
            return "enrol_device", {}
        case ("POST", "devices", _, "events"):
            return "post_device_event", {}
        case ("GET", "devices", _, "approvals"):
            return "list_device_approvals", {}
        case ("POST", "approvals", approval_id, "confirm"):
            return "confirm_approval", {"approval_id": approval_id}
        case ("POST", "trials", trial_id, "log", "uploads"):
            return "create_trial_log_upload", {"trial_id": trial_id}
        case ("POST", "trials", trial_id, "log"):
            return "upload_trial_log", {"trial_id": trial_id}
    raise problem(404, "not-found", f"{method} {path}")


@contextmanager
def serving(folder: Path) -> Iterator[FakeHub]:
    hub = FakeHub(folder)
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = _Server(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
