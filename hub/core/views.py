"""Answers where no view of ours is: under /api they are problem+json, elsewhere Django's plain pages."""

from django.http import HttpRequest, HttpResponse
from django.views import csrf, defaults

from hub.core.problems import BadRequest, CsrfRefused, Forbidden, NotFound, Problem, answer, is_api


class ServerFault(Problem):
    """A bug of ours. It is in the hub's log; the caller learns only that."""

    status = 500
    slug = "server-fault"
    title = "The hub made a mistake."


def healthz(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok\n", content_type="text/plain")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return answer(BadRequest()) if is_api(request) else defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return answer(Forbidden()) if is_api(request) else defaults.permission_denied(request, exception)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_api(request):
        return answer(NotFound("There is no operation at this path."))
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    return answer(ServerFault()) if is_api(request) else defaults.server_error(request)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return answer(CsrfRefused(reason)) if is_api(request) else csrf.csrf_failure(request, reason)
