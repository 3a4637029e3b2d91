"""On PostgreSQL, with threads and a barrier: of everything that can be done once, exactly one wins."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction
from pytest_django import Settings

from devices.models import Approval
from devices.services.consent import SheetChanged
from devices.subjects import OutOfOrder
from hub.accounts.models import Account, User
from hub.audit.models import Event
from hub.campaigns.models import Wake
from hub.campaigns.services import agents, lineage
from hub.campaigns.services.lineage import LineageEnded
from hub.campaigns.services.rounds import AlreadyDecided
from hub.core.lifecycle import WrongState
from hub.core.problems import Problem
from hub.storage.models import StorageUsage, StoredObject
from hub.storage.services import OverQuota
from tests.devices import factories as devices
from tests.factories import NOON, actor
from tests.trials import factories as made
from tests.trials.factories import Bench
from trials.models import LogUpload, RunSheet, Trial, TrialLog, TrialSession, Verdict
from trials.services import run_sheets
from trials.services.filing import SessionCancelled
from trials.services.log_uploads import NoLogNow, open_log_upload
from trials.services.logs import AlreadyRecorded
from trials.services.run_sheets import RunSheetLocked
from trials.services.sessions import SessionUnderWay
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
        barrier.wait(timeout=30)
        return _refused_or_done(act)

    with ThreadPoolExecutor(len(acts)) as threads:
        return list(threads.map(run, acts))


def held(first: Callable[[], Any], second: Callable[[], Any]) -> list[Any]:
    """
    Let the second come when the first has acted and has not committed yet: the moment that a lock is for.

    The first commits once the second waits for it, or is through without having had to.
    """
    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            one = first()
            other = threads.submit(_refused_or_done, second)
            while not other.done() and not _somebody_waits():
                pass
        return [one, other.result(timeout=30)]


def kinds(results: Sequence[Any]) -> Counter[type]:
    return Counter(type(result) for result in results)


@pytest.mark.parametrize("attempt", range(8))
def test_patch_versus_issue_has_one_winner(bench: Bench, attempt: int) -> None:
    trial = made.trials_of(bench.decide())[0]
    seen = trial.run_sheet.digest

    results = race(
        lambda: _patch(bench, trial),
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
    candidate = _ran(bench)
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


def test_a_patch_before_the_commit_of_a_consent_finds_the_sheet_locked(bench: Bench) -> None:
    trial = made.trials_of(bench.decide())[0]

    results = held(lambda: bench.consent(trial), lambda: _patch(bench, trial))

    assert kinds(results) == {Approval: 1, RunSheetLocked: 1}
    assert RunSheet.objects.get(trial=trial).digest == results[0].document_sha256


def test_a_consent_before_the_commit_of_a_patch_finds_another_digest(bench: Bench) -> None:
    trial = made.trials_of(bench.decide())[0]
    seen = trial.run_sheet.digest

    results = held(lambda: _patch(bench, trial), lambda: made.consent_to(trial, digest=seen, by=bench.by))

    assert kinds(results) == {RunSheet: 1, SheetChanged: 1}
    assert RunSheet.objects.get(trial=trial).locked_at is None


def test_a_verdict_before_the_commit_of_another_is_the_second(bench: Bench) -> None:
    candidate = _ran(bench)

    results = held(lambda: bench.judge(candidate, "stop"), lambda: bench.judge(candidate, "iterate"))

    assert kinds(results) == {Verdict: 1, NoVerdict: 1}
    assert Verdict.objects.get().option == "stop"


def test_a_record_before_the_commit_of_another_is_the_second(bench: Bench) -> None:
    trial = bench.run(made.trials_of(bench.decide())[0])
    envelope = bench.statement(trial)

    results = held(lambda: bench.record(trial, envelope), lambda: bench.record(trial, envelope))

    assert kinds(results) == {TrialLog: 1, AlreadyRecorded: 1}
    assert results[1].members["same"] is True


def test_a_presign_before_the_commit_of_a_record_comes_too_late(bench: Bench) -> None:
    trial = bench.run(made.trials_of(bench.decide())[0])

    results = held(lambda: bench.lose_log(trial), _presign(trial, 2))

    assert kinds(results) == {TrialLog: 1, NoLogNow: 1}
    assert not LogUpload.objects.exists()


def test_a_start_before_the_commit_of_a_new_request_is_out_of_order(bench: Bench) -> None:
    session = bench.decide()
    first, second, *_ = made.trials_of(session)
    bench.decline(first)
    bench.consent(second)

    results = held(lambda: bench.file(session), lambda: bench.start(second))

    assert kinds(results) == {TrialSession: 1, OutOfOrder: 1}


def test_filing_before_the_commit_of_a_later_start_leaves_the_closed_trial_closed(bench: Bench) -> None:
    session = bench.decide()
    first, second, *_ = made.trials_of(session)
    bench.decline(first)
    bench.consent(second)

    held(lambda: bench.start(second), lambda: bench.file(session))

    assert made.fresh(first).approval.state == "declined"


def test_filing_before_the_commit_of_the_first_filing_files_nothing_more(bench: Bench) -> None:
    devices.box(bench.owner, bench.by, robot=bench.campaign.robot, name="second")
    session = bench.decide()

    results = held(lambda: bench.file(session), lambda: bench.file(session))

    assert kinds(results) == {TrialSession: 2}
    assert Approval.objects.count() == 4


def test_filing_before_the_commit_of_a_cancellation_finds_it_called_off(bench: Bench) -> None:
    devices.box(bench.owner, bench.by, robot=bench.campaign.robot, name="second")
    session = bench.decide()

    results = held(lambda: made.cancel(session, by=bench.by), lambda: bench.file(session))

    assert kinds(results) == {TrialSession: 1, SessionCancelled: 1}
    assert not Approval.objects.exists()


def test_cancelling_before_the_commit_of_a_consent_finds_it_given(bench: Bench) -> None:
    session = bench.decide()
    first = made.trials_of(session)[0]

    results = held(lambda: bench.consent(first), lambda: made.cancel(session, by=bench.by))

    assert kinds(results) == {Approval: 1, SessionUnderWay: 1}


def test_consent_before_the_commit_of_a_cancellation_finds_it_withdrawn(bench: Bench) -> None:
    session = bench.decide()

    results = held(
        lambda: made.cancel(session, by=bench.by), lambda: bench.consent(made.trials_of(session)[0])
    )

    assert kinds(results) == {TrialSession: 1, WrongState: 1}


def test_iterating_before_the_commit_of_a_stop_finds_the_lineage_ended(bench: Bench) -> None:
    candidate = _ran(bench)

    results = held(
        lambda: lineage.end_lineage(checkpoint=bench.good, reason="fell", by=actor(bench.by), at=NOON),
        lambda: bench.judge(candidate, "iterate"),
    )

    assert kinds(results) == {list: 1, NoVerdict: 1}
    assert results[1].members["because"] == "lineage-ended"


def test_planning_before_the_commit_of_a_stop_finds_the_lineage_ended(bench: Bench) -> None:
    results = held(
        lambda: lineage.end_lineage(checkpoint=bench.good, reason="fell", by=actor(bench.by), at=NOON),
        lambda: bench.session(candidates=[bench.good]),
    )

    assert kinds(results) == {list: 1, LineageEnded: 1}


def test_promoting_before_the_commit_of_another_promotion_has_to_name_it(bench: Bench) -> None:
    first, second = _ran(bench), _ran(bench)

    results = held(lambda: bench.judge(first, "promote"), lambda: bench.judge(second, "promote"))

    assert kinds(results) == {Verdict: 1, NoVerdict: 1}
    assert results[1].members["because"] == "policy-changed"


def _refused_or_done(act: Callable[[], Any]) -> Any:
    try:
        return act()
    except Problem as refusal:
        return refusal
    finally:
        connection.close()


def _somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks JOIN pg_stat_activity USING (pid) "
            "WHERE NOT granted AND datname = current_database())"
        )
        return bool(cursor.fetchone()[0])


def _ran(bench: Bench) -> Trial:
    """A candidate that has run, in a session whose controls were declined."""
    control, candidate, _ = made.trials_of(bench.session(candidates=[bench.good]))
    bench.decline(control)
    return bench.run(candidate)


def _patch(bench: Bench, trial: Trial) -> RunSheet:
    return run_sheets.update_run_sheet(trial=trial, changes={"kd_scale": 1.2}, by=actor(bench.by), at=NOON)


def _presign(trial: Any, number: int) -> Callable[[], Any]:
    file: Any = {"name": f"{number:02d}-floor.csv", "stage": "floor", "bytes": 1000, "sha256": "a" * 64}
    return lambda: open_log_upload(trial=trial, files=[file], at=NOON)
