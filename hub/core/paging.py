"""Lists by cursor, newest first. A cursor is the id of the last item seen, in a form nobody should read."""

from typing import TypeVar

from django.conf import settings
from django.db import models
from rest_framework.request import Request

from driver.wire import base64url
from hub.core.problems import Unprocessable

Row = TypeVar("Row", bound=models.Model)

PARAMETERS = ("cursor", "limit")


def page(queryset: "models.QuerySet[Row]", request: Request) -> tuple[list[Row], str | None]:
    """
    Cut one page out of a queryset: its items, and the cursor of the next page if there is one.

    :raises Unprocessable: for a limit out of range and a cursor that the hub did not give
    """
    limit = _limit(request.query_params.get("limit"))
    if cursor := request.query_params.get("cursor"):
        queryset = queryset.filter(pk__lt=_last_id(cursor))
    items = list(queryset.order_by("-pk")[: limit + 1])
    more = len(items) > limit
    items = items[:limit]
    return items, _cursor(items[-1]) if more else None


def _limit(text: str | None) -> int:
    if text is None:
        return int(settings.PAGE_DEFAULT)
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and 1 <= int(text) <= settings.PAGE_MAX):
        raise Unprocessable(errors={"limit": [f"This must be a number from 1 to {settings.PAGE_MAX}."]})
    return int(text)


def _cursor(row: models.Model) -> str:
    return base64url.encode(str(row.pk).encode())


def _last_id(cursor: str) -> str:
    try:
        last = base64url.decode(cursor).decode("ascii")
    except ValueError:
        last = ""
    if not last.replace("_", "").isalnum() or len(last) > 32:
        raise Unprocessable(errors={"cursor": ["This is not a cursor that the hub gave."]})
    return last
