"""The API's document against the contract, against the paths that the hub serves, and in itself."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from drf_spectacular.validation import validate_schema
from jsonschema import Draft202012Validator

from hub.accounts.api import HubView
from hub.core.problems import Problem
from tests.contract.operations import (
    CONTRACT,
    MANAGED,
    ROOT,
    Operation,
    all_operations,
    document,
    named,
    nameless,
    served,
)

OPERATIONS = pytest.mark.parametrize("operation", all_operations(), ids=str)
DOCUMENT_PATH = f"{ROOT}/openapi.json"


def contract_ids() -> set[str]:
    return {operation_id for operation_id, _, _ in CONTRACT}


def kinds_of_problem(kind: type[Problem] = Problem) -> Iterator[type[Problem]]:
    for sub in kind.__subclasses__():
        if sub.__module__.startswith(("hub.", "devices.", "trials.")):
            yield sub
        yield from kinds_of_problem(sub)


def slugs() -> dict[str, list[type[Problem]]]:
    found = defaultdict(list)
    for kind in kinds_of_problem():
        if not kind.__name__.startswith("_"):
            found[kind.slug].append(kind)
    return dict(found)


@pytest.mark.parametrize(("operation_id", "call", "who"), CONTRACT, ids=[row[0] for row in CONTRACT])
def test_an_operation_of_the_contract_is_in_the_document(operation_id: str, call: str, who: str) -> None:
    found = named(operation_id)

    method, path = call.split(" ")
    assert (found.method, nameless(found.path), found.who) == (method, ROOT + path, who)


def test_the_document_has_no_operation_that_the_contract_does_not_have() -> None:
    assert {each.id for each in all_operations()} == contract_ids()
    assert len(all_operations()) == len(CONTRACT)
    assert contract_ids() >= MANAGED


def test_every_path_that_the_hub_serves_is_in_the_document_and_no_other() -> None:
    paths = [path for path, _ in served() if path != DOCUMENT_PATH]

    assert sorted(paths) == sorted(document()["paths"])


def test_every_view_of_the_api_answers_the_documents_methods_and_no_others() -> None:
    for path, view in served():
        if path == DOCUMENT_PATH:
            continue
        assert issubclass(view, HubView), path
        answered = {method for method in view.http_method_names if hasattr(view, method)}
        assert answered == set(document()["paths"][path]), path


def test_the_document_is_served_as_it_is_and_is_valid_openapi_3_1() -> None:
    said = Client().get(DOCUMENT_PATH).json()

    assert said == document()
    assert said["openapi"].startswith("3.1.")
    validate_schema(said)


def test_every_schema_of_the_document_is_valid_json_schema() -> None:
    schemas = document()["components"]["schemas"]

    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    assert len(schemas) > 50


def test_every_reference_of_the_document_leads_somewhere() -> None:
    for reference in references(document()):
        found: Any = document()
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]
        assert found


@OPERATIONS
def test_an_operation_documents_its_answers_and_its_problems(operation: Operation) -> None:
    responses = operation.said["responses"]

    assert operation.good in (200, 201, 204)
    assert {"400", "401", "413", "415", "422"} <= set(responses)
    assert operation.is_read or "403" in responses
    assert not operation.has_id or "404" in responses
    for status, said in responses.items():
        if not status.startswith("2"):
            assert list(said["content"]) == ["application/problem+json"]
            assert said["x-problems"], status


@OPERATIONS
def test_a_problem_that_an_operation_documents_is_one_of_the_hubs_under_its_status(
    operation: Operation,
) -> None:
    for status, said in operation.said["responses"].items():
        for slug in said.get("x-problems", ()):
            [kind] = slugs()[slug]
            assert kind.status == int(status)


@OPERATIONS
def test_an_operation_names_the_parameters_of_its_path(operation: Operation) -> None:
    assert operation.at(*[f"{{{name}}}" for name in operation.in_path]) == operation.path


@OPERATIONS
def test_an_operation_asks_for_the_credentials_of_those_who_may_call_it(operation: Operation) -> None:
    schemes = {name for each in operation.said.get("security", ()) for name in each}

    of_letter = {"S": "session", "R": "key", "W": "key", "D": "device"}
    assert schemes == {of_letter[letter] for letter in operation.who if letter in of_letter}


@pytest.mark.parametrize("operation", [each for each in all_operations() if each.takes_body], ids=str)
def test_a_body_is_an_object_without_other_keys(operation: Operation) -> None:
    content = operation.said["requestBody"]["content"]
    assert list(content) == ["application/json"]
    name = content["application/json"]["schema"]["$ref"].rpartition("/")[2]
    schema = document()["components"]["schemas"][name]
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)


def test_every_slug_names_one_kind_of_problem() -> None:
    several = {slug: kinds for slug, kinds in slugs().items() if len(kinds) > 1}

    assert several == {}
    assert len(slugs()) > 40


def test_a_problems_type_is_its_slug_below_one_base() -> None:
    for slug, [kind] in slugs().items():
        assert kind().body()["type"] == f"{settings.PROBLEM_BASE}{slug}"


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)
