"""On PostgreSQL, with threads and a barrier: of everything that can be done once, exactly one wins."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings

from devices.models import Approval
from devices.services.consent import SheetChanged
from hub.accounts.models import Account, User
from hub.audit.models import Event
from hub.campaigns.models import Wake
from hub.campaigns.services import agents
from hub.campaigns.services.rounds import AlreadyDecided
from hub.core.problems import Problem
from hub.storage.models import StorageUsage, StoredObject
from hub.storage.services import OverQuota
from tests.factories import NOON, actor
from tests.trials import factories as made
from tests.trials.factories import Bench
from trials.models import LogUpload, RunSheet, TrialLog, TrialSession, Verdict
from trials.services import run_sheets
from trials.services.log_uploads import open_log_upload
from trials.services.logs import AlreadyRecorded
from trials.services.run_sheets import RunSheetLocked
from trials.services.verdicts import NoVerdict

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("object_store")]


@pytest.fixture
def bench(transactional_db: None, lab: Account, ana: User) -> Bench:
    return made.bench(lab, ana)


def race(*acts: Callable[[], Any]) -> list[Any]:
    """Do all of these at once, each on a connection of its own; what each gave, or was refused with."""
    assert connection.vendor == "postgresql", "a race on SQLite proves nothing: it drops row locks"
    barrier = threading.Barrier(len(acts))

    def run(act: Callable[[], Any]) -> Any:
        try:
            barrier.wait(timeout=30)
            return act()
        except Problem as refusal:
            return refusal
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as threads:
        return list(threads.map(run, acts))


def kinds(results: Sequence[Any]) -> Counter[type]:
    return Counter(type(result) for result in results)


@pytest.mark.parametrize("attempt", range(8))
def test_patch_versus_issue_has_one_winner(bench: Bench, attempt: int) -> None:
    trial = made.trials_of(bench.decide())[0]
    seen = trial.run_sheet.digest

    results = race(
        lambda: run_sheets.update_run_sheet(
            trial=trial, changes={"kd_scale": 1.2}, by=actor(bench.by), at=NOON
        ),
        lambda: made.consent_to(trial, digest=seen, by=bench.by),
    )

    sheet = RunSheet.objects.get(trial=trial)
    approval = made.approval_of(trial)
    patched = {RunSheet: 1, SheetChanged: 1}
    issued = {RunSheetLocked: 1, Approval: 1}
    assert kinds(results) in (patched, issued)
    if kinds(results) == issued:
        assert (sheet.digest, approval.document_sha256) == (seen, seen)
        assert sheet.locked_at == approval.issued_at
    else:
        assert sheet.digest != seen
        assert (sheet.locked_at, approval.state) == (None, "requested")


@pytest.mark.parametrize("attempt", range(4))
def test_of_two_verdicts_one_is_given(bench: Bench, mo: User, attempt: int) -> None:
    control, candidate, _ = made.trials_of(bench.session(candidates=[bench.good]))
    bench.decline(control)
    bench.run(candidate)
    agents.create_agent_session(campaign=bench.campaign, name="tuner", by=actor(bench.by), at=NOON)

    results = race(*[lambda: bench.judge(candidate, "iterate")] * 4)

    assert kinds(results) == {Verdict: 1, NoVerdict: 3}
    assert {result.members["because"] for result in results if isinstance(result, NoVerdict)} == {
        "second-verdict"
    }
    assert Verdict.objects.count() == 1
    assert Wake.objects.count() == 1
    assert Event.objects.filter(action="trial.verdict").count() == 1


@pytest.mark.parametrize("attempt", range(4))
def test_of_two_records_of_a_log_one_is_kept_whole(bench: Bench, attempt: int) -> None:
    trial = bench.run(made.trials_of(bench.decide())[0])
    content = made.stage_files(trial)
    bench.upload(trial, content)
    envelope = bench.uploaded(trial, content)
    lost = bench.statement(trial)

    results = race(
        lambda: bench.record(trial, envelope),
        lambda: bench.record(trial, envelope),
        lambda: bench.record(trial, lost),
    )

    log = TrialLog.objects.get()
    refusals = [result for result in results if not isinstance(result, TrialLog)]
    assert kinds(results) == {TrialLog: 1, AlreadyRecorded: 2}
    assert Event.objects.filter(action="trial.log").count() == 1
    assert log.files.count() == (2 if log.state == "uploaded" else 0)
    if log.state == "uploaded":
        assert sorted(refusal.members["same"] for refusal in refusals) == [False, True]
    assert not StoredObject.objects.filter(state="reserved").exists()


def test_of_twenty_presigns_with_room_for_one_one_gets_a_url(bench: Bench, settings: Settings) -> None:
    trial = bench.run(made.trials_of(bench.decide())[0])
    held = StorageUsage.objects.filter(account=bench.owner).values_list("bytes", flat=True).first() or 0
    settings.STORAGE_QUOTA_BYTES = held + 1500

    results = race(*[_presign(trial, number) for number in range(20)])

    assert kinds(results) == {list: 1, OverQuota: 19}
    assert LogUpload.objects.count() == 1
    assert StorageUsage.objects.get(account=bench.owner).bytes == held + 1000


def test_of_two_shortlists_of_a_round_one_is_planned(bench: Bench) -> None:
    results = race(*[bench.decide] * 3)

    assert kinds(results) == {TrialSession: 1, AlreadyDecided: 2}
    assert TrialSession.objects.count() == 1
    assert Approval.objects.count() == 4


def test_filing_twice_at_once_files_once(bench: Bench) -> None:
    session = bench.decide()
    bench.decline(made.trials_of(session)[0])

    race(*[lambda: bench.file(session)] * 3)

    assert Approval.objects.filter(state="requested").count() == 4
    assert made.fresh(made.trials_of(session)[0]).approval.state == "requested"


@pytest.mark.parametrize("attempt", range(4))
def test_a_start_and_a_new_request_for_an_earlier_trial_never_both_count(bench: Bench, attempt: int) -> None:
    session = bench.decide()
    first, second, *_ = made.trials_of(session)
    bench.decline(first)
    bench.consent(second)

    race(lambda: bench.start(second), lambda: bench.file(session))

    states = [made.fresh(trial).approval.state for trial in (first, second)]
    assert states in (["declined", "running"], ["requested", "issued"])


@pytest.mark.parametrize("attempt", range(4))
def test_a_consent_and_a_cancellation_have_one_winner(bench: Bench, attempt: int) -> None:
    session = bench.decide()
    first = made.trials_of(session)[0]

    race(lambda: bench.consent(first), lambda: made.cancel(session, by=bench.by))

    session.refresh_from_db()
    state = made.fresh(first).approval.state
    assert (state, session.cancelled_at) in (("issued", None), ("withdrawn", NOON))


def _presign(trial: Any, number: int) -> Callable[[], Any]:
    file: Any = {"name": f"{number:02d}-floor.csv", "stage": "floor", "bytes": 1000, "sha256": "a" * 64}
    return lambda: open_log_upload(trial=trial, files=[file], at=NOON)
