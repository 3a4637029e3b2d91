"""The signed log (C4-22 … C4-26): whose word counts, which bytes are kept, and what the hub finds in them."""

from typing import Any

import pytest
from nacl.signing import SigningKey

from devices.services.enrolment import rotate_device_key
from devices.statements import NotBound, StatementInvalid, WrongSignature
from driver.wire import canonical, signatures
from driver.wire.rotation import rotation_payload
from hub.audit import services as audit
from hub.audit.models import Event
from hub.jobs.models import Job
from hub.storage import s3
from hub.storage.models import StorageUsage, StoredObject
from hub.storage.services import NotReserved, sweep_expired
from tests.factories import NOON
from tests.trials import factories as made
from tests.trials.factories import MINUTE, Bench, StageFile
from trials import tasks
from trials.models import Trial, TrialLog
from trials.services import log_uploads
from trials.services.log_uploads import NoLogNow
from trials.services.logs import AlreadyRecorded, BytesDiffer

pytestmark = pytest.mark.usefixtures("object_store")


@pytest.fixture
def trial(bench: Bench) -> Trial:
    """A first control that has run."""
    return bench.run(made.trials_of(bench.decide())[0])


def changed(bench: Bench, envelope: dict[str, Any], **payload: Any) -> dict[str, Any]:
    """The same statement with other words in it, signed by the box."""
    return signatures.sign({**envelope["payload"], **payload}, bench.box.key)


def test_c4_22_an_uploaded_log_is_kept_as_the_bytes_that_were_signed(bench: Bench, trial: Trial) -> None:
    content = made.stage_files(trial)
    bench.upload(trial, content)
    envelope = bench.uploaded(trial, content)

    log = bench.record(trial, envelope)

    assert log.state == "uploaded"
    assert bytes(log.statement) == canonical.dumps(envelope["payload"])
    assert (log.signature, log.kid) == (envelope["signature"], envelope["kid"])
    assert [(file.name, file.stage, file.rows) for file in log.files.order_by("number")] == [
        ("01-hang.csv", "hang", 101),
        ("02-floor.csv", "floor", 101),
    ]


@pytest.mark.parametrize("state", ["missing", "malformed"])
def test_c4_22_a_log_that_is_not_there_is_recorded_with_its_reason(
    bench: Bench, trial: Trial, state: str
) -> None:
    log = bench.record(trial, bench.statement(trial, state=state, detail="line 3: t goes back"))

    assert (log.state, log.detail) == (state, "line 3: t goes back")
    assert log.hub_check["state"] == "unchecked"


@pytest.mark.parametrize("state", ["missing", "malformed"])
def test_c4_22_without_a_reason_it_is_refused(bench: Bench, trial: Trial, state: str) -> None:
    with pytest.raises(StatementInvalid):
        bench.record(trial, bench.statement(trial, state=state, detail=None))


def test_what_is_kept_is_a_copy_that_no_presigned_url_can_write(bench: Bench, trial: Trial) -> None:
    content = made.stage_files(trial)[:1]
    (opened,) = log_uploads.open_log_upload(trial=trial, files=[content[0].declared], at=NOON)
    assert made.put(opened.put.url, opened.put.headers, content[0].content) == 200

    log = bench.record(trial, bench.uploaded(trial, content))

    kept = log.files.get().object
    assert kept.key.startswith(f"trials/{trial.pk}/log/{log.pk}/")
    assert s3.read(kept.key, cap=10**6) == content[0].content
    assert made.put(opened.put.url, opened.put.headers, content[0].content) in (200, 412)
    assert s3.read(kept.key, cap=10**6) == content[0].content


def test_room_that_was_kept_and_not_used_is_given_back(bench: Bench, trial: Trial) -> None:
    before = StorageUsage.objects.filter(account=bench.owner).values_list("bytes", flat=True).first() or 0
    content = made.stage_files(trial)
    bench.upload(trial, content)

    bench.record(trial, bench.uploaded(trial, content[:1]))

    assert StorageUsage.objects.get(account=bench.owner).bytes == before + len(content[0].content)
    assert not StoredObject.objects.filter(state="reserved").exists()


def test_c4_23_another_devices_key_does_not_sign_for_this_trial(bench: Bench, trial: Trial) -> None:
    envelope = signatures.sign(bench.statement(trial)["payload"], SigningKey.generate())

    with pytest.raises(WrongSignature):
        bench.record(trial, envelope)


def test_c4_23_a_changed_word_breaks_the_signature(bench: Bench, trial: Trial) -> None:
    envelope = bench.statement(trial)
    envelope["payload"]["detail"] = "nothing to see here"

    with pytest.raises(WrongSignature):
        bench.record(trial, envelope)


def test_c4_23_the_key_of_the_runs_start_counts_also_after_a_rotation(bench: Bench, trial: Trial) -> None:
    new = SigningKey.generate()
    envelope = bench.statement(trial)
    payload = rotation_payload(device_id=bench.device.pk, new_key=new, at=NOON)
    rotated = signatures.sign(payload, bench.box.key)
    rotate_device_key(device=bench.device, envelope=rotated, at=NOON + MINUTE)

    with pytest.raises(WrongSignature):
        bench.record(trial, signatures.sign(envelope["payload"], new))

    assert bench.record(trial, envelope).state == "missing"


@pytest.mark.parametrize("field", ["approval_id", "trial_id"])
def test_c4_23_a_statement_about_something_else_is_refused(bench: Bench, trial: Trial, field: str) -> None:
    other = made.trials_of(trial.session)[1]
    said = {"approval_id": other.approval_id, "trial_id": other.pk}

    with pytest.raises(NotBound) as refused:
        bench.record(trial, changed(bench, bench.statement(trial), **{field: said[field]}))

    assert list(refused.value.members["errors"]) == [f"payload.{field}"]


def test_an_event_is_no_log(bench: Bench, trial: Trial) -> None:
    with pytest.raises(StatementInvalid):
        bench.record(trial, bench.box.heartbeat())


@pytest.mark.parametrize(
    ("key", "said"),
    [("judged_stage", "hang"), ("stages", "reversed"), ("stages", "unknown")],
)
def test_a_summary_that_does_not_fit_the_approved_sheet_is_refused(
    bench: Bench, trial: Trial, key: str, said: str
) -> None:
    content = made.stage_files(trial)
    envelope = bench.uploaded(trial, content)
    stages = envelope["payload"]["summary"]["stages"]
    values: dict[str, Any] = {
        "hang": "hang",
        "reversed": stages[::-1],
        "unknown": [*stages, {**stages[0], "name": "jump"}],
    }
    summary = {**envelope["payload"]["summary"], key: values[said]}

    with pytest.raises(NotBound) as refused:
        bench.record(trial, changed(bench, envelope, summary=summary))

    assert list(refused.value.members["errors"]) == [f"payload.summary.{key}"]


def test_c4_24_bytes_that_are_not_what_was_signed_are_refused_by_name(bench: Bench, trial: Trial) -> None:
    content = made.stage_files(trial)
    bench.upload(trial, content)
    stored = StoredObject.objects.get(key__endswith="02-floor.csv")
    s3.delete(stored.key)
    s3.put(stored.key, b"x" * stored.bytes)

    with pytest.raises(BytesDiffer) as refused:
        bench.record(trial, bench.uploaded(trial, content))

    assert refused.value.slug == "log-bytes-differ"
    assert refused.value.members["name"] == "02-floor.csv"
    assert not TrialLog.objects.exists()


def test_more_bytes_than_were_signed_are_refused_too(bench: Bench, trial: Trial) -> None:
    content = made.stage_files(trial)
    bench.upload(trial, content)
    stored = StoredObject.objects.get(key__endswith="02-floor.csv")
    s3.delete(stored.key)
    s3.put(stored.key, content[1].content + b"x")

    with pytest.raises(BytesDiffer):
        bench.record(trial, bench.uploaded(trial, content))


def test_a_file_that_was_never_put_is_named(bench: Bench, trial: Trial) -> None:
    content = made.stage_files(trial)
    log_uploads.open_log_upload(trial=trial, files=[file.declared for file in content], at=NOON)

    with pytest.raises(s3.ObjectMissing) as refused:
        bench.record(trial, bench.uploaded(trial, content))

    assert refused.value.members["name"] == "01-hang.csv"


def test_a_file_that_no_url_was_given_for_is_refused(bench: Bench, trial: Trial) -> None:
    content = made.stage_files(trial)
    bench.upload(trial, content[:1])

    with pytest.raises(NotBound) as refused:
        bench.record(trial, bench.uploaded(trial, content))

    assert list(refused.value.members["errors"]) == ["payload.files.1"]


def test_an_upload_whose_time_is_over_has_to_be_asked_for_again(bench: Bench, trial: Trial) -> None:
    content = made.stage_files(trial)
    bench.upload(trial, content)
    sweep_expired(at=NOON + 90 * MINUTE)

    with pytest.raises(NotReserved):
        bench.record(trial, bench.uploaded(trial, content), at=NOON + 90 * MINUTE)

    bench.upload(trial, content, at=NOON + 90 * MINUTE)
    assert bench.record(trial, bench.uploaded(trial, content), at=NOON + 91 * MINUTE).state == "uploaded"


def test_c4_25_the_same_statement_again_is_said_to_be_the_same(bench: Bench, trial: Trial) -> None:
    content = made.stage_files(trial)
    bench.upload(trial, content)
    envelope = bench.uploaded(trial, content)
    log = bench.record(trial, envelope)

    with pytest.raises(AlreadyRecorded) as refused:
        bench.record(trial, envelope)

    assert refused.value.members["same"] is True
    record: Any = refused.value.members["record"]
    assert record["id"] == log.pk
    assert record["files"][0]["sha256"] == content[0].sha256


def test_c4_25_another_statement_is_said_to_be_another(bench: Bench, trial: Trial) -> None:
    bench.lose_log(trial)

    with pytest.raises(AlreadyRecorded) as refused:
        bench.record(trial, bench.statement(trial, detail="no, it was malformed", state="malformed"))

    assert refused.value.members["same"] is False
    assert TrialLog.objects.get().state == "missing"


def test_a_log_of_a_run_that_never_started_is_refused(bench: Bench) -> None:
    trial = made.trials_of(bench.decide())[0]
    bench.consent(trial)

    with pytest.raises(NoLogNow):
        bench.lose_log(trial)


def test_c4_27_the_hub_finds_the_drivers_numbers_in_the_bytes(bench: Bench, trial: Trial) -> None:
    log = bench.log(trial, tilt=1.5, asym=3.0, tracking=0.04)

    assert log.hub_check == {
        "state": "agrees",
        "checked_at": "2026-01-05T12:00:00.000Z",
        "differences": [],
    }
    assert log.summary is not None
    assert log.summary["tilt_mean_deg"] == pytest.approx(1.5, abs=1e-3)  # gravity has six decimals


def test_c4_27_a_number_that_the_bytes_do_not_bear_out_is_recorded_and_disputed(
    bench: Bench, trial: Trial
) -> None:
    content = made.stage_files(trial, tilt=9.0)
    bench.upload(trial, content)

    log = bench.record(trial, bench.uploaded(trial, content, tilt_mean_deg=1.0))

    assert log.hub_check["state"] == "differs"
    (difference,) = log.hub_check["differences"]
    assert (difference["key"], difference["driver"]) == ("tilt_mean_deg", 1.0)
    assert difference["hub"] == pytest.approx(9.0, abs=1e-3)


def test_c4_27_rows_that_are_not_there_are_a_difference(bench: Bench, trial: Trial) -> None:
    content = made.stage_files(trial)
    bench.upload(trial, content)
    envelope = bench.uploaded(trial, content)
    files = [{**file, "rows": file["rows"] + 1} for file in envelope["payload"]["files"]]

    log = bench.record(trial, changed(bench, envelope, files=files))

    assert log.hub_check["differences"] == [
        {"key": "rows.01-hang.csv", "driver": 102, "hub": 101},
        {"key": "rows.02-floor.csv", "driver": 102, "hub": 101},
    ]


def test_c4_27_a_file_that_the_hub_cannot_read_is_unchecked_and_says_why(bench: Bench, trial: Trial) -> None:
    content = made.stage_files(trial)
    broken = StageFile("02-floor.csv", "floor", b"t,g_z\n0.0,-1\nsoon,-1\n")
    bench.upload(trial, [broken])
    envelope = bench.uploaded(trial, content)
    files = [{**broken.declared, "rows": 2}]

    log = bench.record(trial, changed(bench, envelope, files=files))

    assert log.hub_check["state"] == "unchecked"
    assert log.hub_check["reason"] == "02-floor.csv: line 3, column 't': a cell that is no number"


def test_a_file_beside_the_log_is_kept_and_not_read(bench: Bench, trial: Trial) -> None:
    content = made.stage_files(trial)
    raw = StageFile("raw.bin", "floor", b"\x00\x01")
    bench.upload(trial, [*content, raw])
    envelope = bench.uploaded(trial, content)
    files = [*envelope["payload"]["files"], {**raw.declared, "rows": None}]

    log = bench.record(trial, changed(bench, envelope, files=files))

    assert log.hub_check["state"] == "agrees"
    assert log.files.get(name="raw.bin").rows is None


def test_a_log_is_audited_with_a_sentence(bench: Bench, trial: Trial) -> None:
    log = bench.log(trial)

    event = Event.objects.get(action="trial.log")
    assert (event.target, event.actor, event.account_id) == (trial.pk, bench.device.pk, bench.owner.pk)
    assert event.data["log"] == log.pk
    assert event.sentence == (
        "The device box reported the log of trial 1 of 4 (control), walk-7 step 700: "
        "2 files, and the hub finds the same numbers."
    )


def test_without_its_audit_event_a_log_does_not_land(
    bench: Bench, trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = made.stage_files(trial)
    bench.upload(trial, content)
    envelope = bench.uploaded(trial, content)
    monkeypatch.setattr(audit, "record", lambda *a, **k: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        bench.record(trial, envelope)

    assert not TrialLog.objects.exists()
    assert StoredObject.objects.filter(state="reserved").count() == 2


def test_copies_that_were_taken_for_nothing_are_deleted(
    bench: Bench, trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = made.stage_files(trial)
    bench.upload(trial, content)
    envelope = bench.uploaded(trial, content)
    with monkeypatch.context() as patched:
        patched.setattr(audit, "record", lambda *a, **k: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            bench.record(trial, envelope)
    job = Job.objects.get(kind="trials.drop_copies")
    assert s3.size_of(job.args["keys"][0]) == len(content[0].content)

    tasks.drop_copies(**job.args, at=NOON)

    assert [s3.size_of(key) for key in job.args["keys"]] == [None, None]


def test_copies_that_a_log_holds_stay(bench: Bench, trial: Trial) -> None:
    log = bench.log(trial)
    job = Job.objects.get(kind="trials.drop_copies")

    tasks.drop_copies(**job.args, at=NOON)

    assert s3.size_of(log.files.first().object.key) is not None  # type: ignore[union-attr]
