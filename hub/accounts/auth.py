"""From a request to an Actor: by API key or session; `devices` adds its signatures."""

import hashlib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.signals import user_logged_in
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware
from django.utils import timezone

from hub.accounts import actors
from hub.accounts.actors import Actor
from hub.accounts.models import ApiKey
from hub.core.problems import CsrfRefused, NotSignedIn, Problem

KEY_PREFIX = "thk_"
SIGNED_IN_AT = "signed_in_at"

Authenticator = Callable[..., Actor | None]


class WrongKey(NotSignedIn):
    slug = "wrong-key"
    title = "The hub does not know this key."


def who(request: HttpRequest, *, at: datetime) -> Actor | None:
    """
    Find the actor behind a request, if it says who it is.

    A request that brings a key is the key's alone: it never falls back to the session beside it.

    :raises NotSignedIn: for a credential that is wrong
    """
    for authenticate in AUTHENTICATORS:
        if actor := authenticate(request, at=at):
            return actor
    return None


def register(authenticator: Authenticator, *, refusals: Iterable[type[Problem]] = ()) -> None:
    """
    Add a way to say who one is, and how it refuses; called by apps further up when they start.

    The session stays last.
    """
    if authenticator not in AUTHENTICATORS:
        AUTHENTICATORS.insert(-1, authenticator)
        REFUSALS.extend(refusals)


def bearer_key(request: HttpRequest, *, at: datetime) -> Actor | None:
    """An API key, from `Authorization: Bearer thk_…`."""
    header = request.headers.get("Authorization")
    if header is None:
        return None
    scheme, _, secret = header.partition(" ")
    if scheme.lower() != "bearer" or not secret.startswith(KEY_PREFIX):
        raise WrongKey(f"Send `Authorization: Bearer {KEY_PREFIX}…`.", headers={"WWW-Authenticate": "Bearer"})
    api_key = (
        ApiKey.objects.usable(at=at)
        .select_related("account")
        .filter(secret_sha256=hash_secret(secret))
        .first()
    )
    if api_key is None:
        raise WrongKey(
            "It is unknown, expired or revoked.",
            headers={"WWW-Authenticate": 'Bearer error="invalid_token"'},
        )
    _note_use(api_key, at=at)
    return actors.key(api_key)


def session_person(request: HttpRequest, *, at: datetime) -> Actor | None:
    """The person signed in to the web session. What changes something needs the CSRF token too."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated or not user.is_active:
        return None
    check_csrf(request)
    return actors.person(user, signed_in_at=signed_in_at(request))


def page_actor(request: HttpRequest) -> Actor:
    """The person who looks at a page; the page's view has made sure that somebody is signed in."""
    return actors.person(request.user, signed_in_at=signed_in_at(request))  # type: ignore[arg-type]


def signed_in_at(request: HttpRequest) -> datetime | None:
    """When this session began with a password."""
    stamp = request.session.get(SIGNED_IN_AT)
    return datetime.fromtimestamp(stamp, UTC) if isinstance(stamp, int | float) else None


def check_csrf(request: HttpRequest) -> None:
    check = _CsrfCheck(lambda _: HttpResponse())
    check.process_request(request)
    if reason := check.process_view(request, _no_view, (), {}):
        raise CsrfRefused(f"Send the value of the cookie csrftoken as the header X-CSRFToken. {reason}")


def hash_secret(secret: str) -> str:
    """A key is 256 random bits, so a plain digest gives nothing away."""
    return hashlib.sha256(secret.encode()).hexdigest()


def remember_sign_in(request: HttpRequest, **_: Any) -> None:
    """Keep in the session when it began, for what asks for a recent sign-in."""
    request.session[SIGNED_IN_AT] = timezone.now().timestamp()


def connect() -> None:
    user_logged_in.connect(remember_sign_in, dispatch_uid="hub.accounts.remember_sign_in")


def _no_view(request: HttpRequest) -> HttpResponse:
    return HttpResponse()


class _CsrfCheck(CsrfViewMiddleware):
    def _reject(self, request: HttpRequest, reason: str) -> str:
        return reason


def _note_use(api_key: ApiKey, *, at: datetime) -> None:
    """Write down that a key is used, but not on each of its requests."""
    if api_key.last_used_at is None or at - api_key.last_used_at >= settings.KEY_USE_NOTED_EVERY:
        ApiKey.objects.filter(pk=api_key.pk).update(last_used_at=at)


AUTHENTICATORS: list[Authenticator] = [bearer_key, session_person]
REFUSALS: list[type[Problem]] = [WrongKey]
