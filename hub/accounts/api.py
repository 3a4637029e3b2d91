"""What every view of the API stands on: who asks, in which order it is checked, how it is described."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from django.db import models
from django.http import HttpRequest
from django.utils import timezone
from rest_framework import exceptions, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from hub.accounts import auth, permissions
from hub.accounts.actors import ANYBODY, Actor
from hub.core import paging, parsers
from hub.core.fields import Body
from hub.core.problems import BadRequest, NotFound, NotSignedIn, Problem, Unprocessable, Unsupported

Handler = TypeVar("Handler", bound=Callable[..., Response])
Row = TypeVar("Row", bound=models.Model)


class NoParameters(Body):
    """The query string of an operation that takes none."""


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation of the API: its id, who may call it, what goes in and what comes out."""

    id: str
    who: str
    body: type[Body] | None = None
    query: type[Body] = NoParameters
    answer: type[serializers.Serializer[Any]] | None = None
    listed: bool = False
    status: int = 200
    problems: Sequence[type[Problem]] = ()
    summary: str = ""


def operation(operation_id: str, *, who: str, **said: Any) -> Callable[[Handler], Handler]:
    """
    Say what a handler method is: `@operation("giveTrialVerdict", who="S", body=…, answer=…)`.

    The letters of `who`: S a person's session, R a key that reads, W a key that writes, D a device, A anyone.
    """

    def declare(handler: Handler) -> Handler:
        summary = (handler.__doc__ or "").strip().split("\n")[0]
        handler.operation = Operation(id=operation_id, who=who, summary=summary, **said)  # type: ignore[attr-defined]
        return handler

    return declare


class HubView(APIView):
    """
    A path of the API.

    Before a handler runs, the body is read (400) and the caller is known (401) and of a kind that may call
    (403). The handler finds the row (404), asks for the role (403) and the body (422), and makes one
    service call.
    """

    http_method_names = ["get", "head", "post", "put", "patch", "delete"]
    plain_request: HttpRequest
    by: Actor
    at: datetime
    raw: bytes
    parsed: Any

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        self.plain_request = request
        return super().initialize_request(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        if not self._has_operation():
            raise exceptions.MethodNotAllowed(request.method or "")
        self.at = timezone.now()
        self.raw, self.parsed = _read(self.plain_request)
        self.by = self._caller()
        permissions.check_kind(self.by, who=self.operation.who)
        if self.operation.body is None and self.parsed not in (None, {}):
            raise Unprocessable("This operation takes no body.")

    @property
    def operation(self) -> Operation:
        """What the method that runs was declared to be."""
        declared: Operation = self._handler().operation
        return declared

    def find(self, visible: "models.QuerySet[Row]", pk: str) -> Row:
        """
        One row out of what the caller may see.

        :raises NotFound: for what is absent or invisible
        """
        row = visible.filter(pk=pk).first() if "\0" not in pk else None
        if row is None:
            raise NotFound
        return row

    def body(self) -> dict[str, Any]:
        """
        The body, checked against the declared shape.

        :raises Unprocessable: naming each field that does not fit
        """
        if self.operation.body is None:
            raise LookupError(f"{self.operation.id} declares no body")
        if not self.raw:
            raise BadRequest("This operation takes a JSON body.")
        return checked(self.operation.body, self.parsed)

    def query(self) -> dict[str, Any]:
        """
        The query string, checked. A parameter that nobody knows is refused, for it would filter nothing.

        :raises Unprocessable: naming each parameter that does not fit
        """
        given = self.request.query_params
        if twice := [name for name in given if len(given.getlist(name)) > 1]:
            raise Unprocessable(errors={name: ["Give it once."] for name in twice})
        paged = paging.PARAMETERS if self.operation.listed else ()
        return checked(self.operation.query, {name: given[name] for name in given if name not in paged})

    def answer(self, thing: Any = None) -> Response:
        """Answer with one thing, in the operation's status."""
        if self.operation.answer is None:
            return Response(status=self.operation.status)
        return Response(self.operation.answer(thing, context={"view": self}).data, self.operation.status)

    def page(self, queryset: "models.QuerySet[Any]") -> Response:
        """Answer with one page of a list: `{items, next}`."""
        if self.operation.answer is None:
            raise LookupError(f"{self.operation.id} declares no answer")
        rows, cursor = paging.page(queryset, self.request)
        items = self.operation.answer(rows, many=True, context={"view": self}).data
        return Response({"items": items, "next": cursor}, self.operation.status)

    def _handler(self) -> Any:
        return getattr(self, (self.request.method or "").lower(), None)

    def _has_operation(self) -> bool:
        return hasattr(self._handler(), "operation")

    def _caller(self) -> Actor:
        actor = auth.who(self.plain_request, at=self.at)
        if actor is None and permissions.ANYONE not in self.operation.who:
            raise NotSignedIn(
                "Sign in, or send an API key as `Authorization: Bearer thk_…`.",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return actor or ANYBODY


def checked(shape: type[Body], value: Any) -> dict[str, Any]:
    """
    Check a value against a shape.

    :raises Unprocessable: naming each field that does not fit
    """
    body = shape(data=value)
    body.is_valid(raise_exception=True)
    return dict(body.validated_data)


def _read(request: HttpRequest) -> tuple[bytes, Any]:
    """The body, as bytes and as strict JSON, before anybody is asked who they are."""
    raw = request.body
    if not raw:
        return raw, None
    media_type = (request.content_type or "").lower()
    if media_type != "application/json":
        raise Unsupported(f"This is {media_type or 'of no type'}; the API reads application/json.")
    return raw, parsers.read(raw)
