import pytest
from drf_spectacular.validation import validate_schema

from hub.accounts import openapi
from hub.audit import actions
from tests import factories


@pytest.fixture
def document(client):
    return client.get("/api/v1/openapi.json").json()


def test_the_document_is_valid_openapi_3_1(document):
    validate_schema(document)
    assert document["openapi"] == "3.1.1"


def test_every_operation_says_who_may_call_it_and_how_it_refuses(document):
    for path, methods in document["paths"].items():
        for operation in methods.values():
            assert set(operation["x-who"].split()) <= set("SRWDA"), path
            assert operation["summary"], path
            assert {"400", "422"} <= set(operation["responses"]), path


def test_what_goes_in_has_no_keys_but_those_written_down(document):
    body = document["components"]["schemas"]["CreateApiKeyRequest"]

    assert body["additionalProperties"] is False
    assert "description" not in body


def test_an_answer_promises_no_bounds(document):
    assert "maxLength" not in str(document["components"]["schemas"]["ActivityAnswer"])


def test_a_list_is_items_and_next_with_a_cursor(document):
    operation = document["paths"]["/api/v1/api-keys"]["get"]
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]

    assert set(schema["properties"]) == {"items", "next"}
    assert [parameter["name"] for parameter in operation["parameters"]] == ["cursor", "limit"]


def test_the_page_of_the_api_lists_every_operation(client, document):
    page = client.get("/api/docs").content.decode()

    for methods in document["paths"].values():
        for operation in methods.values():
            assert f'id="{operation["operationId"]}"' in page


def test_every_audited_action_has_a_meaning():
    assert {"key.created", "key.revoked", "account.created"} <= set(actions.known())
    assert all(actions.known().values())


def test_anybody_may_read_the_document(db):
    assert factories.client().get("/api/v1/openapi.json").status_code == 200


def test_the_document_is_made_without_a_warning(capsys):
    openapi.document.cache_clear()

    openapi.document()

    assert "arning" not in "".join(capsys.readouterr())
