"""The API's operations twice: by hand, as the contract names them, and as the hub's own document says."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

from hub.accounts import openapi
from hub.accounts.models import Role

ROOT = "/api/v1"

# operationId, method and path, who: S a person's session, R a key that reads, W a key that writes,
# D a device, A the one operation that a code and a proof open.
CONTRACT = (
    ("getMe", "GET /me", "SR"),
    ("listApiKeys", "GET /api-keys", "S"),
    ("createApiKey", "POST /api-keys", "S"),
    ("revokeApiKey", "DELETE /api-keys/{}", "S"),
    ("listRobots", "GET /robots", "SR"),
    ("createRobot", "POST /robots", "SW"),
    ("getRobot", "GET /robots/{}", "SR"),
    ("listCampaigns", "GET /campaigns", "SR"),
    ("createCampaign", "POST /campaigns", "SW"),
    ("getCampaign", "GET /campaigns/{}", "SR"),
    ("updateCampaign", "PATCH /campaigns/{}", "S"),
    ("listCheckpoints", "GET /campaigns/{}/checkpoints", "SR"),
    ("createCheckpoint", "POST /campaigns/{}/checkpoints", "SW"),
    ("completeCheckpoint", "POST /checkpoints/{}/complete", "SW"),
    ("getCheckpoint", "GET /checkpoints/{}", "SR"),
    ("listRounds", "GET /campaigns/{}/rounds", "SR"),
    ("createRound", "POST /campaigns/{}/rounds", "SW"),
    ("getRound", "GET /rounds/{}", "SR"),
    ("updateRound", "PATCH /rounds/{}", "SW"),
    ("lockRound", "POST /rounds/{}/lock", "S"),
    ("decideRound", "POST /rounds/{}/decide", "S"),
    ("shortlistRound", "POST /rounds/{}/shortlist", "W"),
    ("listDevices", "GET /devices", "SR"),
    ("createDevice", "POST /devices", "S"),
    ("getDevice", "GET /devices/{}", "SR"),
    ("updateDevice", "PATCH /devices/{}", "S"),
    ("revokeDevice", "POST /devices/{}/revoke", "S"),
    ("enrolDevice", "POST /devices/enrol", "A"),
    ("rotateDeviceKey", "POST /devices/{}/keys", "D"),
    ("postDeviceEvent", "POST /devices/{}/events", "D"),
    ("listDeviceApprovals", "GET /devices/{}/approvals", "D"),
    ("confirmApproval", "POST /approvals/{}/confirm", "D"),
    ("listApprovals", "GET /approvals", "SR"),
    ("getApproval", "GET /approvals/{}", "SR"),
    ("issueApproval", "POST /approvals/{}/issue", "S"),
    ("declineApproval", "POST /approvals/{}/decline", "S"),
    ("revokeApproval", "POST /approvals/{}/revoke", "S"),
    ("withdrawApproval", "POST /approvals/{}/withdraw", "SW"),
    ("listTrialSessions", "GET /trial-sessions", "SR"),
    ("createTrialSession", "POST /trial-sessions", "SW"),
    ("getTrialSession", "GET /trial-sessions/{}", "SR"),
    ("cancelTrialSession", "POST /trial-sessions/{}/cancel", "SW"),
    ("fileSessionApprovals", "POST /trial-sessions/{}/device", "SW"),
    ("listTrials", "GET /trials", "SRD"),
    ("getTrial", "GET /trials/{}", "SRD"),
    ("getRunSheet", "GET /trials/{}/run-sheet", "SR"),
    ("updateRunSheet", "PATCH /trials/{}/run-sheet", "SW"),
    ("createTrialLogUpload", "POST /trials/{}/log/uploads", "D"),
    ("uploadTrialLog", "POST /trials/{}/log", "D"),
    ("getTrialLogSeries", "GET /trials/{}/log/series", "SR"),
    ("giveTrialVerdict", "POST /trials/{}/verdict", "S"),
    ("listAgentSessions", "GET /agent-sessions", "SR"),
    ("createAgentSession", "POST /agent-sessions", "SW"),
    ("listWakes", "GET /agent-sessions/{}/wakes", "W"),
    ("ackWake", "POST /wakes/{}/ack", "W"),
    ("listActivity", "GET /activity", "SR"),
    ("getStorageUsage", "GET /storage", "SR"),
)

# What only owners do: keys, devices (and members).
MANAGED = {"createApiKey", "revokeApiKey", "createDevice", "updateDevice", "revokeDevice"}
ACTS_OF = {
    Role.OWNER: {"read", "plan", "decide", "manage"},
    Role.MEMBER: {"read", "plan", "decide"},
    Role.OPERATOR: {"read"},
}


@dataclass(frozen=True)
class Operation:
    """One operation of the document."""

    id: str
    method: str
    path: str
    who: str
    said: dict[str, Any]

    def __str__(self) -> str:
        return self.id

    @property
    def has_id(self) -> bool:
        return "{" in self.path

    @property
    def is_read(self) -> bool:
        return self.method == "GET"

    @property
    def is_for_anyone(self) -> bool:
        return "A" in self.who

    @property
    def takes_body(self) -> bool:
        return "requestBody" in self.said

    @property
    def act(self) -> str:
        """What a person's role has to allow: what a key may do too is planning, the rest is deciding."""
        if self.is_read:
            return "read"
        if self.id in MANAGED:
            return "manage"
        return "plan" if "W" in self.who else "decide"

    @property
    def good(self) -> int:
        """The status of its good answer."""
        [status] = [int(status) for status in self.said["responses"] if status.startswith("2")]
        return status

    @property
    def answer(self) -> dict[str, Any] | None:
        """The schema of its good answer."""
        content = self.said["responses"][str(self.good)].get("content")
        return content and content["application/json"]["schema"]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Every address of it."""
        return re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(self.path)))

    @property
    def fields(self) -> dict[str, set[str]]:
        """The JSON types that each key of its body takes; nothing where the document leaves them open."""
        schema = _resolved(self.said["requestBody"]["content"]["application/json"]["schema"])
        return {name: set(_types(each)) for name, each in schema["properties"].items()}

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        return {name: each for name, each in self._parameters.items() if each["in"] == "query"}

    @property
    def in_path(self) -> list[str]:
        return [name for name, each in self._parameters.items() if each["in"] == "path"]

    @property
    def _parameters(self) -> dict[str, dict[str, Any]]:
        return {each["name"]: each for each in self.said.get("parameters", ())}

    def at(self, *ids: str) -> str:
        """Its path, with these ids where the parameters are."""
        given = iter(ids)
        return re.sub(r"\{\w+\}", lambda _: next(given), self.path)


@cache
def document() -> dict[str, Any]:
    """The document as it goes over the wire."""
    said: dict[str, Any] = json.loads(json.dumps(openapi.document()))
    return said


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = document()["components"]["schemas"][name] if name else schema
    return found


def _types(schema: dict[str, Any]) -> Iterator[str]:
    schema = _resolved(schema)
    said = schema.get("type", [])
    yield from [said] if isinstance(said, str) else said
    for each in schema.get("oneOf", ()):
        yield from _types(each)


@cache
def all_operations() -> tuple[Operation, ...]:
    return tuple(
        Operation(
            id=said["operationId"],
            method=method.upper(),
            path=path,
            who=said["x-who"].replace(" ", ""),
            said=said,
        )
        for path, methods in document()["paths"].items()
        for method, said in methods.items()
    )


def named(operation_id: str) -> Operation:
    [found] = [each for each in all_operations() if each.id == operation_id]
    return found


def operation_at(method: str, path: str) -> Operation | None:
    """The operation that a request is for; a path with a fixed word is more than one with an id there."""
    fitting = [each for each in all_operations() if each.method == method and each.pattern.fullmatch(path)]
    return min(fitting, key=lambda each: len(each.in_path), default=None)


def nameless(path: str) -> str:
    """A path without the names of its parameters."""
    return re.sub(r"\{\w+\}", "{}", path)


def served() -> Iterator[tuple[str, Any]]:
    """Every path of the API that the hub answers, in the document's spelling, and its view class."""
    for path, callback in _walk(get_resolver(), "/"):
        if path.startswith(f"{ROOT}/"):
            yield re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", path), getattr(callback, "cls", None)


def _walk(resolver: URLResolver, prefix: str) -> Iterator[tuple[str, Any]]:
    for entry in resolver.url_patterns:
        path = prefix + str(entry.pattern)
        if isinstance(entry, URLPattern):
            yield path, entry.callback
        else:
            yield from _walk(entry, path)
