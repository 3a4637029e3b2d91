"""The run sheet (C4-16 … C4-19): changed while it is a draft, frozen by consent, under one digest."""

import pytest

from devices.services.consent import SheetChanged
from driver.wire import canonical
from driver.wire.sheet import sheet_bytes, sheet_digest
from hub.audit import services as audit
from hub.audit.models import Event
from hub.core.problems import Unprocessable
from tests.factories import NOON, actor
from tests.trials import factories as made
from tests.trials.factories import MINUTE, Bench
from trials.models import RunSheet, Trial
from trials.services import run_sheets
from trials.services.run_sheets import RunSheetLocked


@pytest.fixture
def trial(bench: Bench) -> Trial:
    return made.trials_of(bench.decide())[0]


def change(bench: Bench, trial: Trial, **changes: object) -> RunSheet:
    return run_sheets.update_run_sheet(trial=trial, changes=changes, by=actor(bench.by), at=NOON + MINUTE)


def test_c4_17_a_change_gives_the_sheet_another_digest(bench: Bench, trial: Trial) -> None:
    sheet = change(bench, trial, kd_scale=1.2)

    assert sheet.document["kd_scale"] == 1.2
    assert sheet.digest == sheet_digest(sheet.document)
    assert sheet.digest != trial.run_sheet.digest
    assert RunSheet.objects.get(trial=trial).digest == sheet.digest


def test_c4_17_saving_without_a_change_changes_no_digest(bench: Bench, trial: Trial) -> None:
    sheet = change(bench, trial, kd_scale=1.0, stages=trial.run_sheet.document["stages"])

    assert sheet.digest == trial.run_sheet.digest
    assert sheet.updated_at == NOON
    assert not Event.objects.filter(action="run_sheet.changed").exists()


def test_c4_17_null_clears_an_optional_key_and_an_absent_one_is_unchanged(bench: Bench, trial: Trial) -> None:
    change(bench, trial, environment={"floor": "rubber", "notes": "cold"})

    sheet = change(bench, trial, environment={"notes": None})

    assert sheet.document["environment"]["floor"] == "rubber"
    assert sheet.document["environment"]["notes"] == ""


@pytest.mark.parametrize("key", ["predictions", "checkpoint", "position", "role", "judging"])
def test_c4_17_what_never_changes_is_refused(bench: Bench, trial: Trial, key: str) -> None:
    with pytest.raises(Unprocessable) as refused:
        change(bench, trial, **{key: []})

    assert key in refused.value.members["errors"]


def test_a_change_that_contradicts_the_sheet_is_refused_with_its_path(bench: Bench, trial: Trial) -> None:
    with pytest.raises(Unprocessable) as refused:
        change(bench, trial, power_scale=-1)

    assert list(refused.value.members["errors"]) == ["power_scale"]


@pytest.mark.parametrize("value", ["/bin/sh", "a; reboot", "$(id)", ["--gains", "soft"], {"run": "x"}, None])
def test_c4_19_a_stage_carries_values_and_never_a_command(bench: Bench, trial: Trial, value: object) -> None:
    stages = trial.run_sheet.document["stages"]
    stages[0]["values"]["script"] = value

    with pytest.raises(Unprocessable) as refused:
        change(bench, trial, stages=stages)

    assert all(path.startswith("stages.0.values.script") for path in refused.value.members["errors"])


def test_c4_18_issuing_locks_the_sheet_at_its_moment_and_under_its_digest(bench: Bench, trial: Trial) -> None:
    approval = bench.consent(trial, at=NOON + MINUTE)

    sheet = RunSheet.objects.get(trial=trial)
    assert sheet.locked_at == approval.issued_at == NOON + MINUTE
    assert approval.document_sha256 == sheet.digest
    assert bytes(approval.document) == sheet_bytes(sheet.document)
    token = canonical.object_of(approval.token.encode())["payload"]
    assert token["run_sheet_sha256"] == sheet.digest  # type: ignore[index,call-overload]
    assert token["position"] == 1  # type: ignore[index,call-overload]


def test_c4_17_after_that_there_is_no_tuning_on_site(bench: Bench, trial: Trial) -> None:
    bench.consent(trial)

    with pytest.raises(RunSheetLocked) as refused:
        change(bench, trial, kd_scale=1.2)

    assert "tuning on site" in refused.value.title
    assert refused.value.members["digest"] == trial.run_sheet.digest
    assert RunSheet.objects.get(trial=trial).digest == trial.run_sheet.digest


def test_c4_17_also_saying_what_it_says_is_refused_then(bench: Bench, trial: Trial) -> None:
    bench.consent(trial)

    with pytest.raises(RunSheetLocked):
        change(bench, trial, kd_scale=1.0)


def test_consent_to_another_digest_than_the_sheets_leaves_it_a_draft(bench: Bench, trial: Trial) -> None:
    stale = made.fresh(trial)
    change(bench, trial, kd_scale=1.2)

    with pytest.raises(SheetChanged):
        made.consent_to(trial, digest=stale.run_sheet.digest, by=bench.by)

    assert RunSheet.objects.get(trial=trial).locked_at is None


def test_a_change_is_audited_with_a_sentence(bench: Bench, trial: Trial) -> None:
    change(bench, trial, kd_scale=1.2, gain_profile="soft")

    event = Event.objects.get(action="run_sheet.changed")
    assert event.target == trial.pk
    assert "changed gain profile, kd scale in the run sheet of trial 1" in event.sentence


def test_without_its_audit_event_a_change_does_not_land(
    bench: Bench, trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "record", lambda *a, **k: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        change(bench, trial, kd_scale=1.2)

    assert RunSheet.objects.get(trial=trial).digest == trial.run_sheet.digest


def test_a_refused_consent_undoes_the_lock(
    bench: Bench, trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "record", lambda *a, **k: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        bench.consent(trial)

    assert RunSheet.objects.get(trial=trial).locked_at is None


def test_a_request_says_in_words_what_would_run(trial: Trial) -> None:
    assert trial.approval.about == "trial 1 of 4 (control), walk-7 step 700"
