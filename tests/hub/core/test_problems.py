import pytest
from django.conf import settings
from django.http import Http404
from django.utils.module_loading import import_string
from rest_framework import exceptions

from hub.core import problems
from hub.core.problems import Conflict, Problem
from tests import factories


class OutOfOrder(Conflict):
    slug = "out-of-order-sample"
    title = "An earlier one comes first."


def all_kinds(kind=Problem):
    for sub in kind.__subclasses__():
        if sub.__module__.startswith(("hub.", "devices.", "trials.")):
            yield sub
        yield from all_kinds(sub)


def test_a_slug_names_one_refusal_and_one_title():
    import_string(f"{settings.ROOT_URLCONF}.urlpatterns")  # brings in every view, and so every refusal
    public = {kind for kind in all_kinds() if not kind.__name__.startswith("_")}
    said = {(kind.slug, kind.title, kind.status) for kind in public}

    assert len(public) > 20
    assert len({slug for slug, _, _ in said}) == len(said)
    assert all(title and status >= 400 for _, title, status in said)


def test_a_refusal_carries_its_facts_beside_the_fields_of_the_rfc():
    body = OutOfOrder("Trial 1 has not stopped.", trial="trl_1").body()

    assert body == {
        "type": "/problems/out-of-order-sample",
        "title": "An earlier one comes first.",
        "status": 409,
        "detail": "Trial 1 has not stopped.",
        "trial": "trl_1",
    }


def test_a_fact_never_hides_a_field_of_the_rfc():
    assert OutOfOrder(status=200).body()["status"] == 409


@pytest.mark.parametrize(
    ("raised", "status", "kind"),
    [
        (Http404(), 404, "/problems/not-found"),
        (exceptions.ParseError(), 400, "/problems/not-readable"),
        (exceptions.NotAuthenticated(), 401, "/problems/not-signed-in"),
        (exceptions.PermissionDenied(), 403, "/problems/forbidden"),
        (exceptions.MethodNotAllowed("PUT"), 405, "about:blank"),
        (exceptions.UnsupportedMediaType("text/plain"), 415, "/problems/unsupported-media-type"),
        (exceptions.ValidationError({"a": ["no"]}), 422, "/problems/invalid"),
        (exceptions.Throttled(9), 429, "/problems/too-many"),
    ],
)
def test_what_the_framework_raises_is_a_problem_too(raised, status, kind):
    response = problems.handle(raised, {})

    assert (response.status_code, response.data["type"]) == (status, kind)
    assert response.content_type == "application/problem+json"


def test_what_nobody_foresaw_stays_a_fault():
    assert problems.handle(ZeroDivisionError(), {}) is None


def test_errors_deep_in_a_body_are_named_by_their_path():
    detail = {"files": [{}, {"name": ["too long"]}], "why": ["missing"], "tags": {1: ["not text"]}}

    assert problems.errors_by_path(exceptions.ValidationError(detail).detail) == {
        "files.1.name": ["too long"],
        "why": ["missing"],
        "tags.1": ["not text"],
    }


def test_a_path_without_an_operation_is_a_problem(client):
    response = client.get("/api/v1/nothing-here")

    assert response.status_code == 404
    assert response["Content-Type"] == "application/problem+json"


def test_outside_the_api_a_missing_page_is_a_page(client):
    assert client.get("/nothing-here")["Content-Type"].startswith("text/html")


def test_a_method_that_is_not_there_is_405(ana):
    response = factories.client(ana).put("/api/v1/me", {})

    assert response.status_code == 405
    assert response["Content-Type"] == "application/problem+json"
    assert "GET" in response["Allow"]


def test_a_try_later_says_when():
    assert problems.Unavailable(retry_after=7).headers == {"Retry-After": "7"}
