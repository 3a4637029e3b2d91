"""Every kind of caller at every operation: who gets an answer, and which refusal everybody else gets."""

import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from hub.accounts.models import Role
from hub.audit.models import Event
from tests.contract.callers import KINDS, Caller, outcome
from tests.contract.operations import ACTS_OF, Operation, all_operations, document
from tests.contract.samples import Sample
from tests.contract.world import World, approvals_running

OPERATIONS = pytest.mark.parametrize("operation", all_operations(), ids=str)
CALLERS = pytest.mark.parametrize("kind", KINDS)
Refusal = tuple[int, str]
ID = re.compile(r"[a-z]{3}_[0-9a-z]{22}")

GOOD = None
PERSONS = {"owner": Role.OWNER, "member": Role.MEMBER, "operator": Role.OPERATOR, "no csrf token": Role.OWNER}
KEYS = {"key:read", "key:write", "foreign key"}
DEVICES = {"device", "other device", "foreign device"}
ENDED = {"revoked key": "wrong-key", "expired key": "wrong-key", "revoked device": "device-revoked"}
OUTSIDE = {"stranger", "foreign key", "foreign device"}


def expected(kind: str, operation: Operation) -> Refusal | None:
    """What the contract answers, from who may call, and what the caller's role allows."""
    if kind in ENDED:
        return 401, ENDED[kind]
    if kind == "no csrf token" and not operation.is_read:
        return 403, "csrf"
    if operation.is_for_anyone:
        return GOOD
    if kind == "anonymous":
        return 401, "not-signed-in"
    return refusal_of_kind(kind, operation) or refusal_of_thing(kind, operation)


def refusal_of_kind(kind: str, operation: Operation) -> Refusal | None:
    """For callers of a kind that the operation is not for, whatever they name."""
    if kind in KEYS:
        return refusal_of_key(kind, operation)
    if kind in DEVICES:
        slug = "persons-only" if operation.who == "S" else "not-for-devices"
        return GOOD if "D" in operation.who else (403, slug)
    return GOOD if "S" in operation.who else (403, "not-for-persons")


def refusal_of_key(kind: str, operation: Operation) -> Refusal | None:
    if not {"R", "W"} & set(operation.who):
        return 403, "persons-only" if "S" in operation.who else "not-for-keys"
    if kind == "key:read" and "R" not in operation.who:
        return 403, "scope-missing"
    return GOOD


def refusal_of_thing(kind: str, operation: Operation) -> Refusal | None:
    """Of what is not theirs, callers know nothing; of what is, their role says what they may do."""
    names_something = operation.has_id or not operation.is_read
    if kind in {*OUTSIDE, "other device"} and names_something:
        return 404, "not-found"
    if kind in PERSONS and operation.act not in ACTS_OF[PERSONS[kind]]:
        return 403, "role-forbidden"
    return GOOD


@CALLERS
@OPERATIONS
def test_each_caller_gets_what_its_kind_and_its_role_allow(
    hub: World,
    callers_of: dict[str, Caller],
    sample_of: dict[str, Sample],
    operation: Operation,
    kind: str,
) -> None:
    sample, running, audited = sample_of[operation.id], approvals_running(), Event.objects.count()

    said = callers_of[kind].call(operation.method, sample.path(operation), sample.raw)

    refusal = expected(kind, operation)
    assert outcome(said) == (refusal or (operation.good, "")), said.content
    assert approvals_running() == running, "nothing here starts a run"
    if refusal or operation.is_read:
        assert Event.objects.count() == audited, "nothing was done"
    if not operation.is_for_anyone:
        assert not told(said, sample) & unseen_by(kind, hub)


@OPERATIONS
def test_a_good_answer_is_what_the_document_says(
    hub: World, callers_of: dict[str, Caller], sample_of: dict[str, Sample], operation: Operation
) -> None:
    sample, caller = sample_of[operation.id], callers_of[one_who_may(operation)]

    said = caller.call(operation.method, sample.path(operation), sample.raw)

    assert said.status_code == operation.good, said.content
    if operation.answer is None:
        assert said.content == b""
    else:
        schema = exact({**operation.answer, "components": document()["components"]})
        assert [error.message for error in Draft202012Validator(schema).iter_errors(said.json())] == []


def test_the_samples_are_those_of_the_documents_operations(sample_of: dict[str, Sample]) -> None:
    assert set(sample_of) == {each.id for each in all_operations()}


def test_what_a_role_may_do_grows_from_the_operator_to_the_owner() -> None:
    assert ACTS_OF[Role.OPERATOR] < ACTS_OF[Role.MEMBER] < ACTS_OF[Role.OWNER]
    assert {each.act for each in all_operations()} == ACTS_OF[Role.OWNER]


def one_who_may(operation: Operation) -> str:
    return next(kind for kind in KINDS if expected(kind, operation) is GOOD)


def told(said: Any, sample: Sample) -> set[str]:
    """The ids in an answer that were not in the question."""
    asked = sample.raw.decode() + " ".join(sample.ids)
    return set(ID.findall(said.content.decode())) - set(ID.findall(asked))


def unseen_by(kind: str, world: World) -> frozenset[str]:
    """The ids that a caller must not learn."""
    if kind in OUTSIDE or kind in {"anonymous", *ENDED}:
        return world.lab_ids
    if kind == "other device":
        return world.lab_ids - {world.other_box.device.pk}
    return world.her_ids


def exact(schema: Any) -> Any:
    """The schema without room for keys that it does not name."""
    if isinstance(schema, list):
        return [exact(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: exact(value) for name, value in schema.items()}
    return {"additionalProperties": False, **inner} if isinstance(schema.get("properties"), dict) else inner
