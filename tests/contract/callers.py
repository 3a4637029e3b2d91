"""Everyone who may call the hub, each with the credential that it has."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from secrets import token_urlsafe
from typing import Any

from django.conf import settings
from django.test import Client, RequestFactory
from django.utils import timezone
from http_message_signatures import HTTPMessageSignaturesException

from driver.wire import requests
from hub.accounts.models import User
from hub.accounts.services import NewKey
from tests.contract.operations import operation_at
from tests.contract.world import World
from tests.devices.factories import Box

TOKEN = "t" * 32  # a browser's CSRF token is whatever its cookie and its header agree on


@dataclass
class Caller:
    """One who calls; what the hub fails at is an answer like any other."""

    headers: dict[str, str] = field(default_factory=dict)
    box: Box | None = None
    client: Client = field(
        default_factory=lambda: Client(enforce_csrf_checks=True, raise_request_exception=False)
    )

    def call(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        media_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        sent = {**self.headers, **self._signature(method, path, body), **(headers or {})}
        said = self.client.generic(method, path, body, content_type=media_type, headers=sent)
        check_documented(method, path, said)
        return said

    def _signature(self, method: str, path: str, body: bytes) -> dict[str, str]:
        if self.box is None:
            return {}
        return signature(self.box, method=method, path=path, body=body, created=timezone.now())


def outcome(said: Any) -> tuple[int, str]:
    """The status, and of a refusal the slug."""
    if said.status_code < 400:
        return said.status_code, ""
    assert said["Content-Type"] == "application/problem+json"
    return said.status_code, said.json()["type"].rpartition("/")[2]


def check_documented(method: str, path: str, said: Any) -> None:
    """Whatever an operation answers, to whatever it is asked, the document has said that it may."""
    operation = operation_at(method, path.partition("?")[0])
    if operation is not None:
        status, slug = outcome(said)
        documented = operation.said["responses"].get(str(status), {"x-problems": []})
        assert slug in documented.get("x-problems", [""]), f"{operation} answers {status} {slug}"


def signature(box: Box, *, method: str, path: str, body: bytes, created: datetime) -> dict[str, str]:
    """What the box signs is the address as the hub reads it; one that is none goes unsigned."""
    address = settings.DEVICE_ORIGINS[0] + RequestFactory().generic(method, path).get_full_path()
    try:
        return requests.sign_request(
            method=method,
            url=address,
            headers={},
            body=body,
            key=box.key,
            device_id=box.device.pk,
            created=created,
            nonce=token_urlsafe(24),
        )
    except HTTPMessageSignaturesException:
        return {}


def browser(user: User, *, with_token: bool = True) -> Caller:
    """Somebody signed in. Without the token it is another site that sends the browser here."""
    caller = Caller()
    caller.client.force_login(user)
    if with_token:
        caller.client.cookies["csrftoken"] = TOKEN
        caller.headers["X-CSRFToken"] = TOKEN
    return caller


def program(key: NewKey) -> Caller:
    return Caller(headers={"Authorization": f"Bearer {key.secret}"})


KINDS: dict[str, Callable[[World], Caller]] = {
    "anonymous": lambda world: Caller(),
    "owner": lambda world: browser(world.people.owner),
    "member": lambda world: browser(world.people.member),
    "operator": lambda world: browser(world.people.operator),
    "stranger": lambda world: browser(world.hers.person),
    "no csrf token": lambda world: browser(world.people.owner, with_token=False),
    "key:read": lambda world: program(world.keys.reader),
    "key:write": lambda world: program(world.keys.writer),
    "foreign key": lambda world: program(world.hers.key),
    "revoked key": lambda world: program(world.keys.revoked),
    "expired key": lambda world: program(world.keys.expired),
    "device": lambda world: Caller(box=world.box),
    "other device": lambda world: Caller(box=world.other_box),
    "foreign device": lambda world: Caller(box=world.hers.box),
    "revoked device": lambda world: Caller(box=world.revoked_box),
}


def all_of(world: World) -> dict[str, Caller]:
    return {kind: make(world) for kind, make in KINDS.items()}
