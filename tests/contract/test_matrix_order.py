"""
The order of checks: parse 400, credential 401, kind and scope 403, 404, role 403, shape 422, signature 403,
binding 422, state 409, quota 413. Of two faults in one request, the earlier answer wins.
"""

import re
from typing import Any

import pytest
from django.conf import settings
from nacl.signing import SigningKey

from driver.wire import rotation, signatures
from hub.core import ids
from tests.contract.callers import TOKEN, Caller, outcome
from tests.contract.operations import ROOT, Operation, all_operations, named
from tests.contract.samples import DIGEST, Sample
from tests.contract.test_matrix import GOOD, OUTSIDE, expected, one_who_may
from tests.contract.world import World
from tests.factories import NOON
from tests.hub.campaigns import factories as campaigns
from tests.trials import factories as made

WITH_ID = [each for each in all_operations() if each.has_id]
WITH_BODY = [each for each in all_operations() if each.takes_body]
EVERY = pytest.mark.parametrize("operation", all_operations(), ids=str)
EVERY_WITH_ID = pytest.mark.parametrize("operation", WITH_ID, ids=str)
ASKING = ("anonymous", "no csrf token", "operator", "owner", "key:read", "key:write", "device")
WRONG_SHAPE = b'{"no such key": 1}'
NAME = re.compile(rb"[a-z]{3}_[0-9a-z]{22}|step [0-9]+")
NAMED_IN_A_BODY = [
    ("createApiKey", "account", "account"),
    ("createRobot", "account", "account"),
    ("createCampaign", "account", "account"),
    ("createCampaign", "robot", "robot"),
    ("createCheckpoint", "parent", "checkpoint"),
    ("createRound", "resumes_from", "checkpoint"),
    ("createRound", "results", "result"),
    ("updateRound", "resumes_from", "checkpoint"),
    ("updateRound", "results", "result"),
    ("decideRound", "device_id", "device"),
    ("decideRound", "shortlist", "checkpoint"),
    ("decideRound", "controls", "run and step"),
    ("shortlistRound", "device_id", "device"),
    ("shortlistRound", "shortlist", "run and step"),
    ("shortlistRound", "controls", "checkpoint"),
    ("createDevice", "account", "account"),
    ("createDevice", "robot", "robot"),
    ("createTrialSession", "campaign", "campaign"),
    ("createTrialSession", "round", "round"),
    ("createTrialSession", "device_id", "device"),
    ("createTrialSession", "candidates", "checkpoint"),
    ("createTrialSession", "controls", "run and step"),
    ("fileSessionApprovals", "device_id", "device"),
    ("createAgentSession", "campaign", "campaign"),
]


def things(world: World, kind: str) -> tuple[Any, Any]:
    """What the stranger owns, and one of the same kind that nobody owns."""
    hers = world.hers
    owned = {
        "account": hers.person.account.pk,
        "robot": hers.campaign.robot_id,
        "campaign": hers.campaign.pk,
        "checkpoint": hers.checkpoint.pk,
        "round": hers.round.pk,
        "device": hers.box.device.pk,
    }
    if kind == "run and step":
        return {"run": "hers", "step": hers.checkpoint.step}, {
            "run": "hers",
            "step": hers.checkpoint.step + 1,
        }
    if kind == "result":
        result = campaigns.result(hers.checkpoint)
        return result, {**result, "checkpoint": ids.new_id("ckp")}
    return owned[kind], ids.new_id(owned[kind].partition("_")[0])


def absent(sample: Sample) -> Sample:
    """The same request about things that are not there."""
    return Sample(tuple(ids.new_id(each.partition("_")[0]) for each in sample.ids), sample.body)


@EVERY
def test_what_cannot_be_read_is_400_before_anybody_is_asked_who_they_are(
    hub: World, callers_of: dict[str, Caller], sample_of: dict[str, Sample], operation: Operation
) -> None:
    path = sample_of[operation.id].path(operation)

    for kind in ("anonymous", "revoked key", "no csrf token"):
        said = callers_of[kind].call(operation.method, path, b'{"name":')
        assert outcome(said) == (400, "not-readable"), kind


@EVERY
def test_a_body_that_is_not_json_is_415_before_anybody_is_asked_who_they_are(
    hub: World, callers_of: dict[str, Caller], sample_of: dict[str, Sample], operation: Operation
) -> None:
    path = sample_of[operation.id].path(operation)

    said = callers_of["anonymous"].call(operation.method, path, b"name=ana", media_type="text/plain")

    assert outcome(said) == (415, "unsupported-media-type")


@pytest.mark.parametrize(("size", "status"), [(settings.BODY_BYTES, 401), (settings.BODY_BYTES + 1, 413)])
def test_a_body_that_is_too_large_is_413_before_anybody_is_asked_who_they_are(
    hub: World, callers_of: dict[str, Caller], size: int, status: int
) -> None:
    body = b'"' + b"x" * (size - 2) + b'"'

    assert callers_of["anonymous"].call("POST", f"{ROOT}/campaigns", body).status_code == status


@pytest.mark.parametrize("kind", ASKING)
@EVERY_WITH_ID
def test_what_is_absent_is_404_after_the_callers_kind_and_before_role_and_state(
    hub: World,
    callers_of: dict[str, Caller],
    sample_of: dict[str, Sample],
    operation: Operation,
    kind: str,
) -> None:
    sample = absent(sample_of[operation.id])

    said = callers_of[kind].call(operation.method, sample.path(operation), sample.raw)

    of_the_thing = expected(kind, operation) in (GOOD, (404, "not-found"), (403, "role-forbidden"))
    assert outcome(said) == ((404, "not-found") if of_the_thing else expected(kind, operation))


@pytest.mark.parametrize("kind", [*sorted(OUTSIDE), "other device"])
@EVERY_WITH_ID
def test_what_is_invisible_is_answered_like_what_is_absent(
    hub: World,
    callers_of: dict[str, Caller],
    sample_of: dict[str, Sample],
    operation: Operation,
    kind: str,
) -> None:
    sample, caller = sample_of[operation.id], callers_of[kind]

    for body in (sample.raw, b"", WRONG_SHAPE):
        invisible = caller.call(operation.method, sample.path(operation), body)
        nothing = caller.call(operation.method, absent(sample).path(operation), body)
        assert invisible.status_code in (403, 404, 422)
        assert (invisible.status_code, invisible.content) == (nothing.status_code, nothing.content)
        assert dict(invisible.headers) == dict(nothing.headers)


@pytest.mark.parametrize(("operation_id", "key", "kind"), NAMED_IN_A_BODY)
def test_an_invisible_thing_in_a_body_is_answered_like_an_absent_one(
    hub: World,
    callers_of: dict[str, Caller],
    sample_of: dict[str, Sample],
    operation_id: str,
    key: str,
    kind: str,
) -> None:
    operation, sample = named(operation_id), sample_of[operation_id]
    caller = callers_of[one_who_may(operation)]
    invisible, nothing = things(hub, kind)

    def told(name: Any) -> tuple[int, bytes]:
        body = {**sample.body, key: [name] if isinstance(sample.body.get(key), list) else name}
        said = caller.call(operation.method, sample.path(operation), Sample(body=body).raw)
        return said.status_code, NAME.sub(b"", said.content)

    assert told(invisible) == told(nothing)
    assert told(invisible)[0] in (404, 422)


def test_a_session_of_an_invisible_device_is_answered_like_one_of_an_absent_device(
    hub: World, callers_of: dict[str, Caller], sample_of: dict[str, Sample]
) -> None:
    body = {**sample_of["createTrialSession"].body, "campaign": None}

    told = [
        callers_of[kind].call("POST", f"{ROOT}/trial-sessions", Sample(body={**body, "device_id": pk}).raw)
        for kind in ("owner", "operator", "key:write")
        for pk in things(hub, "device")
    ]

    assert {(said.status_code, said.content) for said in told} == {(404, told[0].content)}


@pytest.mark.parametrize("operation", [each for each in WITH_ID if each.takes_body], ids=str)
def test_a_wrong_shape_is_422_only_about_what_is_there(
    hub: World, callers_of: dict[str, Caller], sample_of: dict[str, Sample], operation: Operation
) -> None:
    sample, caller = sample_of[operation.id], callers_of[one_who_may(operation)]

    there = caller.call(operation.method, sample.path(operation), WRONG_SHAPE)
    not_there = caller.call(operation.method, absent(sample).path(operation), WRONG_SHAPE)

    assert (there.status_code, list(there.json()["errors"])) == (422, ["no such key"])
    assert outcome(not_there) == (404, "not-found")


@pytest.mark.parametrize("operation", [each for each in WITH_ID if each.takes_body], ids=str)
def test_a_role_is_asked_for_before_the_shape(
    hub: World, callers_of: dict[str, Caller], sample_of: dict[str, Sample], operation: Operation
) -> None:
    sample = sample_of[operation.id]

    said = callers_of["operator"].call(operation.method, sample.path(operation), WRONG_SHAPE)

    assert outcome(said) == expected("operator", operation)


@pytest.mark.parametrize("act", ["issue", "decline", "revoke", "withdraw"])
def test_a_role_is_asked_for_before_the_state(hub: World, callers_of: dict[str, Caller], act: str) -> None:
    path = f"{ROOT}/approvals/{hub.judged.approval_id}/{act}"
    body = Sample(body={"run_sheet_sha256": DIGEST} if act == "issue" else {}).raw

    by_operator = callers_of["operator"].call("POST", path, body)
    by_owner = callers_of["owner"].call("POST", path, body)

    assert outcome(by_operator) == (403, "role-forbidden")
    assert outcome(by_owner) == (409, "wrong-state")
    assert by_owner.json()["state"] == "stopped"


def test_a_digest_is_asked_for_after_the_role_and_before_the_state(
    hub: World, callers_of: dict[str, Caller]
) -> None:
    path = f"{ROOT}/approvals/{hub.judged.approval_id}/issue"

    assert outcome(callers_of["operator"].call("POST", path)) == (403, "role-forbidden")
    assert outcome(callers_of["owner"].call("POST", path)) == (428, "precondition-required")


def test_a_key_is_a_key_also_in_the_browser_of_a_founder(hub: World, callers_of: dict[str, Caller]) -> None:
    path = f"{ROOT}/trials/{hub.stopped.pk}/verdict"
    body = Sample(body={"option": "stop", "reason": "it fell"}).raw
    credentials = callers_of["key:write"].headers

    with_session = callers_of["owner"].call("POST", path, body, headers=credentials)
    without_token = callers_of["no csrf token"].call("POST", path, body, headers=credentials)

    assert outcome(with_session) == outcome(without_token) == (403, "persons-only")


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer thk_wrong", "Basic YW5hOmFuYQ==", "Bearer \xff", "thk_"]
)
def test_a_wrong_credential_is_401_also_in_the_browser_of_a_founder(
    hub: World, callers_of: dict[str, Caller], header: str
) -> None:
    said = callers_of["owner"].call("GET", f"{ROOT}/me", headers={"Authorization": header})

    assert outcome(said) == (401, "wrong-key")


def test_a_key_in_the_query_string_or_a_cookie_says_nothing(
    hub: World, callers_of: dict[str, Caller]
) -> None:
    secret = hub.keys.writer.secret

    asked = callers_of["anonymous"].call("GET", f"{ROOT}/me?key={secret}&access_token={secret}")
    in_cookie = callers_of["anonymous"].call(
        "GET", f"{ROOT}/me", headers={"Cookie": f"Authorization={secret}"}
    )

    assert (asked.status_code, in_cookie.status_code) == (401, 401)


@pytest.mark.parametrize(
    "token", [{"X-CSRFToken": "u" * 32}, {"X-CSRFToken": ""}, {"Origin": "https://elsewhere"}]
)
def test_a_wrong_csrf_token_and_another_sites_origin_are_refused_before_404(
    hub: World, callers_of: dict[str, Caller], token: dict[str, str]
) -> None:
    given = {"X-CSRFToken": TOKEN, **token}

    said = callers_of["owner"].call("POST", f"{ROOT}/rounds/{ids.new_id('rnd')}/lock", headers=given)

    assert outcome(said) == (403, "csrf")


def test_a_statement_is_checked_for_shape_signature_binding_and_state_in_this_order(
    hub: World, callers_of: dict[str, Caller]
) -> None:
    path, box = f"{hub.box.path}/events", hub.box
    approval = made.approval_of(hub.asked)
    sound = box.started(approval)["payload"]
    elsewhere = {**sound, "device_id": hub.other_box.device.pk}
    shapeless = {**elsewhere, "data": {}}

    def told(payload: dict[str, Any], key: SigningKey) -> tuple[int, str]:
        body = Sample(body=signatures.sign(payload, key)).raw
        return outcome(callers_of["device"].call("POST", path, body))

    assert told(shapeless, hub.other_box.key) == (422, "statement-invalid")
    assert told(elsewhere, hub.other_box.key) == (403, "statement-signature")
    assert told(elsewhere, box.key) == (422, "statement-binding")
    assert told(sound, box.key) == (409, "wrong-state")


def test_a_log_is_checked_for_shape_signature_binding_and_state_in_this_order(
    hub: World, callers_of: dict[str, Caller]
) -> None:
    path, bench = f"{ROOT}/trials/{hub.judged.pk}/log", hub.bench
    sound = bench.statement(hub.judged)["payload"]
    elsewhere = {**sound, "trial_id": hub.stopped.pk}
    shapeless = {**elsewhere, "state": "lost"}

    def told(payload: dict[str, Any], key: SigningKey) -> tuple[int, str]:
        body = Sample(body=signatures.sign(payload, key)).raw
        return outcome(callers_of["device"].call("POST", path, body))

    assert told(shapeless, hub.other_box.key) == (422, "statement-invalid")
    assert told(elsewhere, hub.other_box.key) == (403, "statement-signature")
    assert told(elsewhere, hub.box.key) == (422, "statement-binding")
    assert told(sound, hub.box.key) == (409, "log-already-recorded")


def test_a_new_key_is_checked_for_shape_signature_and_binding_in_this_order(
    hub: World, callers_of: dict[str, Caller]
) -> None:
    device, path = hub.box.device, f"{hub.box.path}/keys"

    def told(device_id: str, key: SigningKey, **changed: Any) -> tuple[int, str]:
        payload = rotation.rotation_payload(device_id=device_id, new_key=SigningKey.generate(), at=NOON)
        body = Sample(body=signatures.sign({**payload, **changed}, key)).raw
        return outcome(callers_of["device"].call("POST", path, body))

    elsewhere = hub.other_box.device.pk
    assert told(elsewhere, hub.other_box.key, kind="change") == (422, "statement-invalid")
    assert told(elsewhere, hub.other_box.key) == (403, "statement-signature")
    assert told(elsewhere, hub.box.key) == (422, "statement-binding")
    assert told(device.pk, hub.box.key) == (200, "")


@pytest.mark.parametrize(
    ("trial", "stage", "size", "answer"),
    [
        ("ready", "dance", settings.LOG_BYTES + 1, (422, "invalid")),
        ("ready", "hang", settings.LOG_BYTES + 1, (409, "log-not-now")),
        ("stopped", "hang", settings.LOG_BYTES + 1, (413, "log-too-large")),
        ("stopped", "hang", settings.LOG_BYTES, (201, "")),
    ],
)
def test_a_logs_files_are_checked_for_shape_state_and_size_in_this_order(
    hub: World, callers_of: dict[str, Caller], trial: str, stage: str, size: int, answer: tuple[int, str]
) -> None:
    path = f"{ROOT}/trials/{getattr(hub, trial).pk}/log/uploads"
    file = {"name": "01-hang.csv", "stage": stage, "bytes": size, "sha256": DIGEST}

    said = callers_of["device"].call("POST", path, Sample(body={"files": [file]}).raw)

    assert outcome(said) == answer


@pytest.mark.parametrize(
    ("step", "size", "answer"),
    [
        (400, settings.CHECKPOINT_BYTES + 1, (409, "checkpoint-step-taken")),
        (500, settings.CHECKPOINT_BYTES + 1, (413, "checkpoint-too-large")),
        (500, settings.CHECKPOINT_BYTES, (201, "")),
    ],
)
def test_a_checkpoint_is_checked_for_state_and_size_in_this_order(
    hub: World, callers_of: dict[str, Caller], step: int, size: int, answer: tuple[int, str]
) -> None:
    operation = named("createCheckpoint")
    body = {"run": "walk-8", "step": step, "bytes": size, "onnx_sha256": DIGEST}

    said = callers_of["key:write"].call(
        operation.method, operation.at(hub.bench.campaign.pk), Sample(body=body).raw
    )

    assert outcome(said) == answer
