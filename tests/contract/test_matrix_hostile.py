"""Hostile input at every operation: refused as a problem, and never the hub's fault."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import transaction
from nacl.signing import SigningKey

from driver.wire import rotation, signatures
from driver.wire.statements import enrol_payload
from tests.contract import hostile
from tests.contract.callers import Caller, outcome
from tests.contract.operations import ROOT, Operation, all_operations, named
from tests.contract.samples import Sample
from tests.contract.test_matrix import one_who_may
from tests.contract.world import World
from tests.devices.factories import BEAT_DATA, RUN_DATA
from tests.factories import NOON
from tests.trials import factories as made

WITH_BODY = [each for each in all_operations() if each.takes_body]
WITHOUT_BODY = [each for each in all_operations() if not each.takes_body]
STAGE_DATA = {"stage": "hang", "at_s": 0.0, "status": "done", "reason": None}
EVENTS: dict[str, dict[str, Any]] = {
    "run_started": RUN_DATA,
    "stage_started": STAGE_DATA,
    "stage_finished": STAGE_DATA,
    "run_stopped": RUN_DATA,
    "refused": {"reason": "the limits"},
    "journal_lost": {"reason": None},
    "heartbeat": {**BEAT_DATA, "stage": None},
}
SIGNATURE_INPUTS = (
    "",
    "hub",
    "hub=",
    "hub=()",
    'hub=("@method" "@target-uri")',
    'hub=("@method" "@target-uri");keyid="dev_1"',
    'hub=("@method" "@target-uri");created="now";keyid="dev_1"',
    'hub=("@method" "@target-uri");created=99999999999999;keyid="dev_1"',
    'hub=("@method" "@target-uri");created=-1;keyid="dev_1"',
    'hub=("@method" "@target-uri");created=1.5;keyid="dev_1"',
    'hub=("@method" "@target-uri");created=1;keyid=1',
    'hub=("@method" "@target-uri");created=1;keyid="dev_1";alg="none"',
    'hub=("@method" "@target-uri");created=1;keyid="dev_1";nonce=:AAAA:',
    'hub=("@method" "@method");created=1;keyid="dev_1"',
    'hub=("@status");created=1;keyid="dev_1"',
    'hub=("@query-param";name="a");created=1;keyid="dev_1"',
    'hub=("no-such-header");created=1;keyid="dev_1"',
    'hub=("@method";req "@target-uri";key="x");created=1;keyid="dev_1"',
    'hub=(1 2);created=1;keyid="dev_1"',
    'hub="text"',
    "hub=?1",
    "hub=:!!:",
)
SIGNATURES = ("", "hub=:AAAA:", "hub=:" + "A" * 86 + "==:", "hub=1", "hub", "other=:AAAA:", "hub=:\x7f:")


# How many wrong values are tried in an ordinary run, and all of them in a long one.
THOROUGH = pytest.mark.parametrize("most", [50, pytest.param(100_000, marks=pytest.mark.slow, id="all")])


@contextmanager
def undone() -> Iterator[None]:
    """Take back what a request did that was sound after all."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def check_refused_or_fine(said: Any, what: str) -> None:
    assert said.status_code < 500, what
    if said.status_code >= 400:
        assert said["Content-Type"] == "application/problem+json", what
        assert said.json()["status"] == said.status_code


@pytest.mark.parametrize("operation", WITH_BODY, ids=str)
def test_a_body_that_is_not_strict_json_is_400(
    hub: World, callers_of: dict[str, Caller], sample_of: dict[str, Sample], operation: Operation
) -> None:
    sample = sample_of[operation.id]

    for what, body in hostile.unreadable(sample.body):
        said = callers_of["anonymous"].call(operation.method, sample.path(operation), body)
        assert outcome(said) == (400, "not-readable"), what


@THOROUGH
@pytest.mark.parametrize("operation", WITH_BODY, ids=str)
def test_a_body_of_wrong_types_is_a_problem_and_no_fault_of_the_hub(
    hub: World, callers_of: dict[str, Caller], sample_of: dict[str, Sample], operation: Operation, most: int
) -> None:
    sample, caller = sample_of[operation.id], callers_of[one_who_may(operation)]

    for what, body in hostile.wrongly_typed(sample.body, most=most):
        with undone():
            said = caller.call(operation.method, sample.path(operation), json.dumps(body).encode())
            check_refused_or_fine(said, what)


@pytest.mark.parametrize("wrong", [[], "x", 1, True, [{}], {"": {}}, {"a": 1}], ids=repr)
@pytest.mark.parametrize("operation", WITHOUT_BODY, ids=str)
def test_an_operation_without_a_body_refuses_one(
    hub: World,
    callers_of: dict[str, Caller],
    sample_of: dict[str, Sample],
    operation: Operation,
    wrong: Any,
) -> None:
    sample, caller = sample_of[operation.id], callers_of[one_who_may(operation)]

    said = caller.call(operation.method, sample.path(operation), json.dumps(wrong).encode())

    assert outcome(said) == (422, "invalid")


@pytest.mark.parametrize("operation", WITH_BODY, ids=str)
def test_a_body_that_is_no_object_is_422_and_so_is_an_unknown_key(
    hub: World, callers_of: dict[str, Caller], sample_of: dict[str, Sample], operation: Operation
) -> None:
    sample, caller = sample_of[operation.id], callers_of[one_who_may(operation)]
    wrong_bodies: list[Any] = [[], "x", 1, True, None, [{}], {**sample.body, "no such key": 1}]

    for wrong in wrong_bodies:
        said = caller.call(operation.method, sample.path(operation), json.dumps(wrong).encode())
        assert said.status_code == 422, wrong
    assert list(said.json()["errors"]) == ["no such key"]


@pytest.mark.parametrize(
    ("operation", "field"), [(each, field) for each in WITH_BODY for field in each.fields], ids=str
)
def test_a_value_of_another_json_type_than_the_documents_is_422_and_named(
    hub: World, callers_of: dict[str, Caller], sample_of: dict[str, Sample], operation: Operation, field: str
) -> None:
    sample, caller = sample_of[operation.id], callers_of[one_who_may(operation)]
    takes = operation.fields[field] or set(hostile.OF_TYPE)

    for wrong in (hostile.OF_TYPE[name] for name in hostile.OF_TYPE if name not in takes):
        if isinstance(wrong, int) and not isinstance(wrong, bool) and "number" in takes:
            continue
        body = Sample(body={**sample.body, field: wrong}).raw
        said = caller.call(operation.method, sample.path(operation), body)
        assert said.status_code == 422, wrong
        assert {name.partition(".")[0] for name in said.json()["errors"]} == {field}


@THOROUGH
@pytest.mark.parametrize("kind", EVENTS)
def test_a_wrong_event_that_the_box_signed_is_a_problem(
    hub: World, callers_of: dict[str, Caller], kind: str, most: int
) -> None:
    payload = hub.box.event(kind, EVENTS[kind], approval=made.approval_of(hub.ready))["payload"]

    check_signed(callers_of["device"], f"{hub.box.path}/events", payload, hub.box.key, most=most)


@THOROUGH
@pytest.mark.parametrize("state", ["uploaded", "missing"])
def test_a_wrong_log_that_the_box_signed_is_a_problem(
    hub: World, callers_of: dict[str, Caller], state: str, most: int
) -> None:
    trial, bench = hub.stopped, hub.bench
    uploaded = bench.uploaded(trial, made.stage_files(trial))
    envelope = uploaded if state == "uploaded" else bench.statement(trial)

    path = f"{ROOT}/trials/{trial.pk}/log"
    check_signed(callers_of["device"], path, envelope["payload"], hub.box.key, most=most)


@THOROUGH
def test_a_wrong_change_of_key_that_the_box_signed_is_a_problem(
    hub: World, callers_of: dict[str, Caller], most: int
) -> None:
    new_key = SigningKey.generate()
    payload = rotation.rotation_payload(device_id=hub.box.device.pk, new_key=new_key, at=NOON)

    check_signed(callers_of["device"], f"{hub.box.path}/keys", payload, hub.box.key, most=most)


@THOROUGH
def test_a_wrong_enrolment_that_its_key_signed_is_a_problem(
    hub: World, callers_of: dict[str, Caller], most: int
) -> None:
    key = SigningKey.generate()
    payload = enrol_payload(code=hub.pending.code, public_key=key.verify_key.encode(), at=NOON)

    check_signed(callers_of["anonymous"], f"{ROOT}/devices/enrol", payload, key, most=most)


@pytest.mark.parametrize("operation", [each for each in all_operations() if each.has_id], ids=str)
def test_an_id_that_is_none_is_404(
    hub: World, callers_of: dict[str, Caller], sample_of: dict[str, Sample], operation: Operation
) -> None:
    sample, caller = sample_of[operation.id], callers_of[one_who_may(operation)]

    for wrong in hostile.IDS:
        said = caller.call(operation.method, operation.at(wrong), sample.raw)
        assert outcome(said) == (404, "not-found"), wrong


@pytest.mark.parametrize("operation", [each for each in all_operations() if each.parameters], ids=str)
def test_a_hostile_query_is_a_problem_and_no_fault_of_the_hub(
    hub: World, callers_of: dict[str, Caller], sample_of: dict[str, Sample], operation: Operation
) -> None:
    path, caller = sample_of[operation.id].path(operation), callers_of[one_who_may(operation)]

    for name in operation.parameters:
        for text in hostile.TEXTS:
            said = caller.call(operation.method, f"{path}?{name}={text}")
            check_refused_or_fine(said, f"{name}={text:.40}")


@pytest.mark.parametrize("operation", [each for each in all_operations() if each.parameters], ids=str)
def test_a_parameter_that_nobody_knows_is_422_and_so_is_one_given_twice(
    hub: World, callers_of: dict[str, Caller], sample_of: dict[str, Sample], operation: Operation
) -> None:
    path, caller = sample_of[operation.id].path(operation), callers_of[one_who_may(operation)]
    known = next(iter(operation.parameters))

    for query, name in (("no_such=1", "no_such"), (f"{known}=1&{known}=1", known), ("%00=1", "\0")):
        said = caller.call(operation.method, f"{path}?{query}")
        assert outcome(said) == (422, "invalid")
        assert list(said.json()["errors"]) == [name]


@pytest.mark.parametrize("limit", ["0", "101", "-1", "00000000101", "000000001" + "0" * 5000, "1.0", "١"])
def test_a_page_has_one_to_a_hundred_items(hub: World, callers_of: dict[str, Caller], limit: str) -> None:
    said = callers_of["owner"].call("GET", f"{ROOT}/activity?limit={limit}")

    assert (outcome(said), list(said.json()["errors"])) == ((422, "invalid"), ["limit"])


@pytest.mark.parametrize("given", SIGNATURE_INPUTS)
def test_a_hostile_request_signature_is_401(hub: World, callers_of: dict[str, Caller], given: str) -> None:
    operation = named("listDeviceApprovals")

    for signature in SIGNATURES:
        for tag in ("", ';tag="trial-hub"'):
            said = callers_of["anonymous"].call(
                "GET",
                operation.at(hub.box.device.pk),
                headers={"Signature-Input": given + tag, "Signature": signature},
            )
            assert said.status_code == 401, signature


@pytest.mark.parametrize(
    "cookie",
    [
        "hub_session=",
        "hub_session=x",
        'hub_session="\\000aaaaaaaa"',
        "hub_session=" + "a" * 4000,
        "=;;=,",
        "\xff",
    ],
)
def test_a_hostile_cookie_signs_nobody_in(hub: World, callers_of: dict[str, Caller], cookie: str) -> None:
    said = callers_of["anonymous"].call("GET", f"{ROOT}/me", headers={"Cookie": cookie})

    assert outcome(said) == (401, "not-signed-in")


@pytest.mark.parametrize(
    "media_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "multipart/form-data; boundary=x",
        "application/json-patch+json",
        "application/jsonx",
        "application",
        "",
        "\xff/\xff",
    ],
)
@pytest.mark.parametrize("kind", ["anonymous", "owner", "no csrf token"])
def test_another_media_type_is_415_and_without_a_body_no_fault(
    hub: World, callers_of: dict[str, Caller], kind: str, media_type: str
) -> None:
    path, caller = f"{ROOT}/campaigns", callers_of[kind]

    with_body = caller.call("POST", path, b"name=ana", media_type=media_type)
    without = caller.call("POST", path, media_type=media_type)

    assert outcome(with_body) == (415, "unsupported-media-type")
    assert without.status_code in (400, 401, 403)
    assert without["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "post"])
def test_a_method_that_no_operation_has_is_405(
    hub: World, callers_of: dict[str, Caller], method: str
) -> None:
    for kind in ("anonymous", "owner", "key:write"):
        said = callers_of[kind].call(method, f"{ROOT}/activity")
        assert said.status_code == 405
        assert said["Content-Type"] == "application/problem+json"
        assert said["Allow"]


def check_signed(caller: Caller, path: str, payload: dict[str, Any], key: SigningKey, *, most: int) -> None:
    """Send a payload wrong in each place, every time under a signature that holds."""
    for what, wrong in hostile.wrongly_typed(payload, most=most):
        if isinstance(wrong, dict):
            with undone():
                said = caller.call("POST", path, Sample(body=signatures.sign(wrong, key)).raw)
                check_refused_or_fine(said, what)
