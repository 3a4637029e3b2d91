import json
from collections.abc import Callable
from typing import Any

import pytest

from driver.wire import base64url, shape, statements
from driver.wire.statements import BadStatement
from driver.wire.vocabulary import EVENT_KINDS, STOPPED_BY
from tests import cases, keys
from tests.wire import samples

CODE = "abcdefghijklmnopqrst.0123456789abcdef"


def errors_of(check: Callable[[Any], None], payload: Any) -> shape.Errors:
    try:
        check(payload)
    except BadStatement as refused:
        return refused.errors
    return {}


def test_a_sound_trial_log_is_taken() -> None:
    statements.check_trial_log(samples.trial_log())


@pytest.mark.parametrize("state", ["missing", "malformed"])
def test_a_log_that_is_not_there_says_why(state: str) -> None:
    payload = samples.trial_log(state=state, files=[], summary=None, detail="the command wrote no file")
    statements.check_trial_log(payload)

    assert errors_of(statements.check_trial_log, {**payload, "detail": None}) == {
        "detail": [f"a {state} log says why"]
    }


def test_a_malformed_log_may_name_its_files_and_a_missing_one_has_none() -> None:
    given = {"summary": None, "detail": "line 7: a cell that is no number"}
    statements.check_trial_log(samples.trial_log(state="malformed", **given))

    assert "files" in errors_of(statements.check_trial_log, samples.trial_log(state="missing", **given))


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"extra": 1}, "extra"),
        ({"approval_id": 7}, "approval_id"),
        ({"approval_id": None}, "approval_id"),
        ({"approval_id": "trl_01"}, "approval_id"),
        ({"trial_id": "trl_"}, "trial_id"),
        ({"device_id": "dev_01\n"}, "device_id"),
        ({"kind": "heartbeat"}, "kind"),
        ({"state": "awaiting"}, "state"),
        ({"files": {}}, "files"),
        ({"files": []}, "files"),
        ({"summary": None}, "summary"),
        ({"summary": []}, "summary"),
        ({"detail": 1}, "detail"),
        ({"detail": "x" * 2001}, "detail"),
        ({"ts": "2026-11-30"}, "ts"),
        ({"ts": 1796047200}, "ts"),
    ],
)
def test_a_trial_log_of_another_shape_is_refused_by_its_path(changes: dict[str, Any], path: str) -> None:
    assert list(errors_of(statements.check_trial_log, samples.trial_log(**changes))) == [path]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"name": "../hang.csv"}, "files.0.name"),
        ({"name": 1}, "files.0.name"),
        ({"stage": ""}, "files.0.stage"),
        ({"sha256": samples.DIGEST.upper()}, "files.0.sha256"),
        ({"sha256": samples.DIGEST[:-1]}, "files.0.sha256"),
        ({"bytes": True}, "files.0.bytes"),
        ({"bytes": -1}, "files.0.bytes"),
        ({"bytes": 256 * 2**20 + 1}, "files.0.bytes"),
        ({"bytes": "7"}, "files.0.bytes"),
        ({"rows": 1.5}, "files.0.rows"),
        ({"rows": -1}, "files.0.rows"),
        ({"url": "https://elsewhere.example"}, "files.0.url"),
    ],
)
def test_a_file_of_another_shape_is_refused_by_its_path(changes: dict[str, Any], path: str) -> None:
    payload = samples.trial_log()
    payload["files"] = [{**payload["files"][0], **changes}]

    assert list(errors_of(statements.check_trial_log, payload)) == [path]


def test_two_files_may_not_differ_only_in_their_case() -> None:
    payload = samples.trial_log()
    payload["files"] = [{**payload["files"][0], "name": name} for name in ("HANG.csv", "hang.csv")]

    assert errors_of(statements.check_trial_log, payload) == {
        "files": ["two file names are equal, or differ only in their case"]
    }


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"tilt_mean": 1.0}, "summary.tilt_mean"),
        ({"tilt_mean_deg": "1.0"}, "summary.tilt_mean_deg"),
        ({"tilt_mean_deg": True}, "summary.tilt_mean_deg"),
        ({"tilt_mean_deg": -1.0}, "summary.tilt_mean_deg"),
        ({"version": 2}, "summary.version"),
        ({"version": True}, "summary.version"),
        ({"stopped_by": None}, "summary.stopped_by"),
        ({"stopped_by": "magic"}, "summary.stopped_by"),
        ({"falls": 0.5}, "summary.falls"),
        ({"asym_deg": {"knee": "2"}}, "summary.asym_deg.knee"),
        ({"stages": [{"name": "floor"}]}, "summary.stages.0.status"),
        ({"window": {"t0": 0.0, "t1": 1.0}}, "summary.window.rows"),
        ({"simulated": 0}, "summary.simulated"),
        ({"warnings": [1]}, "summary.warnings.0"),
    ],
)
def test_a_summary_of_another_shape_is_refused_by_its_path(changes: dict[str, Any], path: str) -> None:
    payload = samples.trial_log(summary=samples.summary(**changes))

    assert path in errors_of(statements.check_trial_log, payload)


@pytest.mark.parametrize("word", STOPPED_BY)
def test_every_way_to_stop_can_be_signed(word: str) -> None:
    statements.check_trial_log(samples.trial_log(summary=samples.summary(stopped_by=word)))


@pytest.mark.parametrize("payload", [None, [], "text", 7, True, {}])
@pytest.mark.parametrize(
    "check",
    [
        statements.check_trial_log,
        statements.check_device_event,
        statements.check_enrol,
        statements.check_go_on,
    ],
)
def test_what_is_no_statement_at_all_is_refused(check: Callable[[Any], None], payload: Any) -> None:
    with pytest.raises(BadStatement):
        check(payload)


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_a_sound_event_of_each_kind_is_taken(kind: str) -> None:
    statements.check_device_event(samples.event(kind))


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_an_event_with_a_key_its_kind_does_not_have_is_refused(kind: str) -> None:
    payload = samples.event(kind, data={**samples.EVENT_DATA[kind], "command": "rm"})

    assert list(errors_of(statements.check_device_event, payload)) == ["data.command"]


@pytest.mark.parametrize("kind", ["run_started", "stage_started", "stage_finished", "run_stopped"])
def test_an_event_of_a_run_names_its_approval_and_trial(kind: str) -> None:
    payload = samples.event(kind, approval_id=None, trial_id=None)

    assert set(errors_of(statements.check_device_event, payload)) == {"approval_id", "trial_id"}


@pytest.mark.parametrize("kind", ["refused", "journal_lost", "heartbeat"])
def test_an_event_of_the_box_may_be_about_no_run(kind: str) -> None:
    statements.check_device_event(samples.event(kind, approval_id=None, trial_id=None))


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"seq": 0}, "seq"),
        ({"seq": True}, "seq"),
        ({"seq": 1.5}, "seq"),
        ({"seq": "7"}, "seq"),
        ({"kind": "trial_log"}, "kind"),
        ({"kind": ["heartbeat"]}, "kind"),
        ({"data": None}, "data"),
        ({"data": {"stage": "floor", "at_s": -1}}, "data.at_s"),
        ({"data": {"stage": "../floor", "at_s": 1}}, "data.stage"),
        ({"data": {"stage": "floor", "at_s": 1, "status": "fine"}}, "data.status"),
        ({"data": {"at_s": 1}}, "data.stage"),
        ({"state": "uploaded"}, "state"),
    ],
)
def test_an_event_of_another_shape_is_refused_by_its_path(changes: dict[str, Any], path: str) -> None:
    payload = samples.event("stage_finished", **changes)

    assert list(errors_of(statements.check_device_event, payload)) == [path]


def test_a_trial_log_is_no_event_and_an_event_is_no_trial_log() -> None:
    assert errors_of(statements.check_device_event, samples.trial_log())
    assert errors_of(statements.check_trial_log, samples.event("heartbeat"))


def test_an_enrolment_carries_the_key_that_signs_it() -> None:
    public = keys.key("device").verify_key.encode()
    payload = statements.enrol_payload(code=CODE, public_key=public, at=samples.NOON)

    statements.check_enrol(payload)

    assert base64url.decode(payload["public_key"]) == public


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("kind", "trial_log"),
        ("code", CODE[:-1]),
        ("code", CODE.replace(".", "-")),
        ("public_key", "AAAA"),
        ("public_key", None),
        ("public_key", "not base64url"),
        ("ts", ""),
    ],
)
def test_an_enrolment_of_another_shape_is_refused_by_its_path(key: str, value: Any) -> None:
    payload = statements.enrol_payload(code=CODE, public_key=bytes(32), at=samples.NOON)

    assert list(errors_of(statements.check_enrol, {**payload, key: value})) == [key]


def test_the_hubs_go_on_says_when_it_was_said() -> None:
    payload = statements.go_on_payload(approval_id="apr_01", go_on=True, reason=None, at=samples.NOON)

    statements.check_go_on(payload)

    assert payload["at"] == "2026-11-30T12:00:00.000Z"


@pytest.mark.parametrize(
    ("key", "value"), [("go_on", 1), ("go_on", "yes"), ("at", None), ("reason", 4), ("kid", "x")]
)
def test_a_go_on_of_another_shape_is_refused_by_its_path(key: str, value: Any) -> None:
    payload = statements.go_on_payload(approval_id="apr_01", go_on=False, reason="revoked", at=samples.NOON)

    assert list(errors_of(statements.check_go_on, {**payload, key: value})) == [key]


def test_own_file_name_vectors_are_answered_as_the_wire_says() -> None:
    found = json.loads(cases.path("vectors/own/file_name_cases.json").read_text())["cases"]
    pairs = {"case-twin": ["HANG.csv", "hang.csv"], "dup": ["hang.csv", "hang.csv"]}

    for case in found:
        if case["name"] in pairs:
            assert statements.file_names_problem(pairs[case["name"]]), case["name"]
        else:
            problem = statements.file_name_problem(case["value"])
            assert (problem is None) == (case["expect"] == "accept"), case["name"]


def test_no_naughty_string_is_a_file_name() -> None:
    found = json.loads(cases.path("vectors/naughty-strings/blns.json").read_text())

    assert len(found) > 400
    assert all(statements.file_name_problem(text) for text in found)


def test_a_file_name_of_80_characters_is_taken_and_one_of_81_is_not() -> None:
    assert statements.file_name_problem("a" * 76 + ".csv") is None
    assert statements.file_name_problem("a" * 77 + ".csv") is not None


def test_a_hostile_document_gets_a_short_answer() -> None:
    errors = errors_of(statements.check_trial_log, {f"key{n}": n for n in range(10_000)})

    assert len(errors) <= shape.MAX_ERRORS
