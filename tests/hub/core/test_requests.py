"""The order in which a request is checked, and what each step answers."""

import pytest

from hub.accounts.models import ApiKey
from tests import factories

KEYS = "/api/v1/api-keys"
GOOD = {"name": "agent", "scopes": ["key:read"]}


def send(client, raw, content_type="application/json"):
    return client.generic("POST", KEYS, raw, content_type=content_type)


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b'{"name": "a", "name": "b"}',
        b'{"name": NaN}',
        b'{"name": 1e999}',
        b'{"name": 9007199254740993}',
        b'{"name": "\\ud800"}',
        b'\xef\xbb\xbf{"name": "a"}',
        b"\xff",
        b"[" * 40 + b"]" * 40,
        b'{"name": "\\u0000"}',
    ],
)
def test_what_could_mean_two_things_is_400_even_from_nobody(db, raw):
    response = send(factories.client(), raw)

    assert response.status_code == 400
    assert response.json()["type"] == "/problems/not-readable"


def test_another_media_type_is_415(ana):
    assert send(factories.client(ana), b"name=a", "application/x-www-form-urlencoded").status_code == 415


def test_a_body_of_the_cap_is_read_and_one_byte_more_is_413(ana, settings):
    settings.BODY_BYTES = settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 60
    fits = b'{"name": "' + b"a" * 21 + b'", "scopes": ["key:read"]}'
    padded = fits + b" " * (60 - len(fits))

    assert send(factories.client(ana), padded).status_code == 201
    assert send(factories.client(ana), padded + b" ").status_code == 413


def test_a_body_on_an_operation_that_takes_none_is_not_passed_over(ana):
    response = factories.client(ana).generic(
        "GET", "/api/v1/me", b'{"a": 1}', content_type="application/json"
    )

    assert response.status_code == 422


def test_nobody_is_asked_who_they_are(db):
    response = factories.client().get("/api/v1/me")

    assert response.status_code == 401
    assert response["WWW-Authenticate"] == "Bearer"
    assert response["Content-Type"] == "application/problem+json"


def test_the_kind_of_caller_counts_before_the_row(ana):
    program = factories.key_client(factories.api_key(ana))

    assert program.delete(f"{KEYS}/key_nobody").status_code == 403


def test_the_row_counts_before_the_body(eve, ana, lab):
    missing = factories.client(eve).post(KEYS, {**GOOD, "account": "acc_nobody"})
    invisible = factories.client(eve).post(KEYS, {**GOOD, "account": lab.pk})

    assert missing.status_code == invisible.status_code == 404
    assert missing.json() == invisible.json()


@pytest.mark.parametrize("pk", ["x" * 300, "%00", "key_é", "..", "key_1%2F2"])
def test_an_odd_id_is_just_not_there(ana, pk):
    assert factories.client(ana).delete(f"{KEYS}/{pk}").status_code == 404


def test_a_missing_body_is_400_not_a_list_of_missing_fields(ana):
    assert factories.client(ana).generic("POST", KEYS).status_code == 400


def test_errors_name_each_field(ana):
    response = factories.client(ana).post(KEYS, {"scopes": ["key:all"], "extra": 1})

    assert response.status_code == 422
    assert set(response.json()["errors"]) == {"extra"}
    response = factories.client(ana).post(KEYS, {"scopes": ["key:all"]})
    assert set(response.json()["errors"]) == {"name", "scopes.0"}
    assert not ApiKey.objects.exists()


@pytest.mark.parametrize(
    "query", ["?colour=red", "?action=a&action=b", "?limit=0", "?limit=101", "?cursor=%00"]
)
def test_a_query_that_nobody_knows_is_refused(ana, query):
    assert factories.client(ana).get(f"/api/v1/activity{query}").status_code == 422


def test_every_answer_carries_a_content_security_policy(client):
    assert "default-src 'none'" in client.get("/healthz")["Content-Security-Policy"]
