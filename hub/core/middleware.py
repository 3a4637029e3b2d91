import re
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

Answer = Callable[[HttpRequest], HttpResponse]

_SESSION_KEY = re.compile(r"[0-9a-z]{8,40}", re.ASCII)


def content_security_policy(get_response: Answer) -> Answer:
    """Put the hub's content security policy on every answer that brings none of its own."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", settings.CONTENT_SECURITY_POLICY)
        return response

    return middleware


def plain_session_cookie(get_response: Answer) -> Answer:
    """Drop a session cookie that is no key of ours: quoting lets a NUL in, and PostgreSQL takes none."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if not _SESSION_KEY.fullmatch(request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")):
            request.COOKIES.pop(settings.SESSION_COOKIE_NAME, None)
        return get_response(request)

    return middleware
