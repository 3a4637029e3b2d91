from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone

from hub.jobs import registry, services
from hub.jobs.models import Job
from hub.jobs.registry import job
from tests.factories import NOON
from tests.races import at_once

State = Job.State
did: list[object] = []


@job("test.note")
def note(*, what: str, at: object) -> None:
    did.append(what)


@job("test.fail")
def fail(*, at: object) -> None:
    raise ZeroDivisionError("never works")


@pytest.fixture(autouse=True)
def _nothing_done():
    did.clear()


def enqueue(kind="test.note", *, what="a", **more):
    args = {"what": what} if kind == "test.note" else {}
    with transaction.atomic():
        return services.enqueue(kind, args=args, at=NOON, **more)


def test_a_job_runs_once(db):
    enqueue()

    assert services.run_due(at=timezone.now()) == 1
    assert services.run_due(at=timezone.now()) == 0
    assert did == ["a"]
    assert Job.objects.get().state == State.DONE


def test_jobs_run_oldest_first(db):
    enqueue(what="later", run_after=NOON + timedelta(hours=1))
    enqueue(what="sooner")

    services.run_due(at=timezone.now())

    assert did == ["sooner", "later"]


def test_a_job_waits_for_its_time(db):
    enqueue(run_after=NOON + timedelta(hours=1))

    assert services.run_due(at=NOON + timedelta(minutes=59)) == 0
    assert services.run_due(at=NOON + timedelta(hours=1)) == 1


@pytest.mark.django_db(transaction=True)
def test_a_job_is_only_wanted_together_with_its_change():
    with pytest.raises(RuntimeError, match="outside a transaction"):
        services.enqueue("test.note", args={"what": "a"}, at=NOON)
    with transaction.atomic():
        services.enqueue("test.note", args={"what": "a"}, at=NOON)
        transaction.set_rollback(True)

    assert not Job.objects.exists()


def test_a_kind_that_no_app_registers_is_refused(db):
    with pytest.raises(LookupError):
        enqueue("test.mislaid")


def test_an_open_job_of_the_same_key_stands_for_both(db):
    first = enqueue(unique_key="k")

    assert enqueue(unique_key="k") == first
    services.run_due(at=timezone.now())
    assert enqueue(unique_key="k") != first


@pytest.mark.django_db(transaction=True)
def test_of_ten_who_claim_a_job_at_once_one_gets_it():
    pk = enqueue().pk

    def claim():
        return services.claim(pk, owner="worker", at=timezone.now())

    claimed = [job for job in at_once(*[claim] * 10) if job]

    assert [job.attempts for job in claimed] == [1]


@pytest.mark.django_db(transaction=True)
def test_of_ten_who_enqueue_one_key_at_once_all_get_one_row():
    rows = at_once(*[lambda: enqueue(unique_key="k").pk] * 10)

    assert rows == [Job.objects.get().pk] * 10


def test_a_job_that_fails_waits_longer_each_time_and_then_stays_failed(db, settings):
    pk = enqueue("test.fail").pk
    waits = []
    for _ in range(settings.JOB_ATTEMPTS):
        before = timezone.now()
        Job.objects.update(run_after=before)
        services.run(pk)
        waits.append(round((Job.objects.get().run_after - before).total_seconds()))

    last = Job.objects.get()
    assert waits[:4] == [5, 10, 20, 40]
    assert (last.state, last.attempts) == (State.FAILED, 5)
    assert last.last_error == "ZeroDivisionError: never works"
    assert services.run_due(at=timezone.now() + timedelta(days=9)) == 0


def test_a_job_whose_worker_died_is_taken_over_when_its_lease_ends(db, settings):
    pk = enqueue().pk
    services.claim(pk, owner="dead", at=NOON)
    ends = NOON + settings.JOB_LEASE

    assert services.claim(pk, owner="b", at=ends) is None
    assert services.claim(pk, owner="b", at=ends + timedelta(seconds=1)).attempts == 2


def test_a_job_over_which_each_worker_dies_is_given_up(db, settings):
    pk = enqueue().pk
    Job.objects.update(state=State.RUNNING, attempts=settings.JOB_ATTEMPTS, lease_until=NOON, owner="dead")

    assert services.run(pk) is False

    assert Job.objects.get().state == State.FAILED
    assert did == []


def test_a_worker_that_lost_its_lease_does_not_overwrite_the_one_that_has_it(db, settings):
    job = services.claim(enqueue().pk, owner="slow", at=NOON)
    services.claim(job.pk, owner="quick", at=NOON + settings.JOB_LEASE * 2)

    services._end(job, state=State.FAILED, error="too late", at=NOON)

    assert (Job.objects.get().state, Job.objects.get().owner) == (State.RUNNING, "quick")


@pytest.mark.django_db(transaction=True)
def test_a_lease_is_renewed_for_as_long_as_the_work_lasts(settings):
    settings.JOB_LEASE = timedelta(seconds=0.15)
    seen = []

    @job("test.slow")
    def slow(*, at):
        first = Job.objects.get().lease_until
        deadline = timezone.now() + timedelta(seconds=10)
        while Job.objects.get().lease_until == first and timezone.now() < deadline:
            pass
        seen.append(Job.objects.get().lease_until > first)

    services.run(enqueue("test.slow").pk)

    assert seen == [True]
    assert Job.objects.get().state == State.DONE


def test_what_comes_by_itself_is_written_when_it_is_due_again(db):
    job("test.often", every=timedelta(minutes=1))(lambda at: did.append("often"))
    try:
        for minutes in (0, 0.5, 1):
            services.enqueue_periodic(at=NOON + timedelta(minutes=minutes))
            services.run_due(at=timezone.now())
    finally:
        del registry._KINDS["test.often"]

    assert did.count("often") == 2


def test_the_hub_sweeps_reservations_and_old_jobs_by_itself():
    assert {"storage.sweep", "jobs.purge", "sessions.clear"} <= {name for name, _ in registry.periodic()}


def test_old_jobs_are_forgotten_and_failed_ones_are_not(db, settings):
    done, failed = enqueue(what="done"), enqueue("test.fail")
    services.run(done.pk)
    services._end(services.claim(failed.pk, owner="a", at=NOON), state=State.FAILED, error="", at=NOON)
    over = timezone.now() + settings.JOBS_KEPT_FOR

    services.purge(at=over - timedelta(hours=1))
    assert Job.objects.count() == 2
    services.purge(at=over)

    assert Job.objects.get() == failed


def test_sessions_that_are_over_are_forgotten_and_open_ones_are_not(db):
    for key, ends in (("over", NOON), ("open", timezone.now() + timedelta(days=1))):
        Session.objects.create(session_key=key, session_data="", expire_date=ends)

    registry.kind("sessions.clear").work(at=timezone.now())

    assert Session.objects.get().session_key == "open"


def test_one_pass_of_the_loop_does_all_that_is_due(db, object_store):
    enqueue(what="a")
    enqueue(what="b")

    call_command("jobs", "--once")

    assert did == ["a", "b"]
