"""Errors a caller can act on, and the one place where they become HTTP (RFC 9457)."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from rest_framework import exceptions
from rest_framework.response import Response

CONTENT_TYPE = "application/problem+json"


class Problem(Exception):
    """Base of every anticipated refusal. Subclass a kind below, beside the rule that raises it."""

    status: int
    slug: str
    title: str

    def __init__(
        self, detail: str = "", *, headers: Mapping[str, str] | None = None, **members: object
    ) -> None:
        super().__init__(detail or self.title)
        self.detail, self.members, self.headers = detail, members, dict(headers or {})

    def body(self) -> dict[str, object]:
        said = {"detail": self.detail} if self.detail else {}
        kind = {"type": settings.PROBLEM_BASE + self.slug, "title": self.title}
        return {**self.members, **kind, "status": self.status, **said}


class BadRequest(Problem):
    """The body cannot be read at all."""

    status = 400
    slug = "not-readable"
    title = "The request cannot be read."


class NotSignedIn(Problem):
    """No credential, or a wrong one."""

    status = 401
    slug = "not-signed-in"
    title = "Say who you are."


class Forbidden(Problem):
    """Known, but never allowed."""

    status = 403
    slug = "forbidden"
    title = "This is not yours to do."


class CsrfRefused(Forbidden):
    slug = "csrf"
    title = "The request does not come from a page of this hub."


class NotFound(Problem):
    """Absent, or invisible to the caller: the two are never told apart."""

    status = 404
    slug = "not-found"
    title = "There is no such thing."


class Conflict(Problem):
    """Not in this state."""

    status = 409
    slug = "conflict"
    title = "Its state does not allow this."


class TooLarge(Problem):
    status = 413
    slug = "too-large"
    title = "This is too large."


class Unsupported(Problem):
    status = 415
    slug = "unsupported-media-type"
    title = "Send JSON."


class Unprocessable(Problem):
    """Readable, but a field, a value or an unknown key is wrong."""

    status = 422
    slug = "invalid"
    title = "The request does not fit."

    def __init__(
        self, detail: str = "", *, errors: Mapping[str, Sequence[str]] | None = None, **members: object
    ) -> None:
        if errors is not None:
            members["errors"] = {field: list(said) for field, said in errors.items()}
        super().__init__(detail, **members)  # type: ignore[arg-type]


class PreconditionRequired(Problem):
    status = 428
    slug = "precondition-missing"
    title = "Say what you saw."


class TooMany(Problem):
    status = 429
    slug = "too-many"
    title = "Too many at once."


class Unavailable(Problem):
    """Something that the hub leans on does not answer; the caller may try again."""

    status = 503
    slug = "unavailable"
    title = "The hub cannot do this right now."

    def __init__(self, detail: str = "", *, retry_after: int = 5, **members: object) -> None:
        super().__init__(detail, headers={"Retry-After": str(retry_after)}, **members)


def handle(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Answer with problem+json for everything anticipated; the rest stays a 500 and is reported."""
    problem = anticipated(exc)
    if problem is None:
        return None
    return Response(problem.body(), problem.status, headers=problem.headers, content_type=CONTENT_TYPE)


def anticipated(exc: Exception) -> Problem | None:
    """Read an exception of ours, of Django or of DRF as a problem."""
    if isinstance(exc, Problem):
        return exc
    if isinstance(exc, Http404):
        return NotFound()
    if isinstance(exc, PermissionDenied):
        return Forbidden()
    if isinstance(exc, RequestDataTooBig):
        return TooLarge("The body is larger than the hub reads.")
    if isinstance(exc, exceptions.ValidationError):
        return Unprocessable(errors=errors_by_path(exc.detail))
    if isinstance(exc, exceptions.APIException):
        return _of_status(exc.status_code, _sentence(exc), _headers(exc))
    return None


def errors_by_path(detail: Any, path: str = "") -> dict[str, list[str]]:
    """Flatten DRF's nested errors: {"files": [{"name": ["…"]}]} becomes {"files.0.name": ["…"]}."""
    if isinstance(detail, Mapping):
        pairs: list[tuple[str, Any]] = [(str(key), value) for key, value in detail.items()]
    elif any(isinstance(item, Mapping | list) for item in detail):
        pairs = [(str(at), value) for at, value in enumerate(detail) if value]
    else:
        return {path or "body": [str(item) for item in detail]}
    found: dict[str, list[str]] = {}
    for key, value in pairs:
        inner = path if key in ("non_field_errors", "body") else f"{path}.{key}".lstrip(".")
        found.update(errors_by_path(value, inner))
    return found


def answer(problem: Problem) -> HttpResponse:
    """Say a problem outside DRF: from middleware, and where no view was found."""
    response = JsonResponse(problem.body(), status=problem.status, content_type=CONTENT_TYPE)
    for name, value in problem.headers.items():
        response[name] = value
    return response


def is_api(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")


def _of_status(status: int, detail: str, headers: Mapping[str, str]) -> Problem:
    kinds = {kind.status: kind for kind in _KINDS}
    if status in kinds:
        return _said(kinds[status], detail, headers)
    other = type("Other", (_Other,), {"status": status, "title": HTTPStatus(status).phrase})
    return _said(other, detail, headers)


def _said(kind: type[Problem], detail: str, headers: Mapping[str, str]) -> Problem:
    problem = kind(detail)
    problem.headers.update(headers)
    return problem


class _Other(Problem):
    """A refusal of the framework that has no meaning of ours, such as a method that is not there."""

    slug = "http"

    def body(self) -> dict[str, object]:
        return {**super().body(), "type": "about:blank"}


def _sentence(exc: exceptions.APIException) -> str:
    return str(exc.detail) if isinstance(exc.detail, str) else str(exc)


def _headers(exc: exceptions.APIException) -> dict[str, str]:
    headers = {}
    if challenge := getattr(exc, "auth_header", None):
        headers["WWW-Authenticate"] = str(challenge)
    if wait := getattr(exc, "wait", None):
        headers["Retry-After"] = str(int(wait))
    return headers


_KINDS: tuple[type[Problem], ...] = (
    BadRequest,
    NotSignedIn,
    Forbidden,
    NotFound,
    Conflict,
    TooLarge,
    Unsupported,
    Unprocessable,
    PreconditionRequired,
    TooMany,
    Unavailable,
)
