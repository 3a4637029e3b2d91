"""Jobs through a real Celery worker and a real broker, in processes of their own."""

import signal
import socket
import subprocess
import sys
import time
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from hub.jobs import services
from hub.jobs.models import Job
from hub.storage import s3
from tests.services import ROOT

HOUR_AGO = timezone.now() - timedelta(hours=1)

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.xdist_group("celery"),  # two workers on one broker would take each other's messages
]


@pytest.fixture(scope="module")
def worker(environment):
    quick = ["--pool=solo", "--without-gossip", "--without-mingle", "--without-heartbeat"]
    command = [sys.executable, "-m", "celery", "-A", "hub.celery", "worker", "--loglevel=warning", *quick]
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


@pytest.fixture(scope="module")
def environment(hub_environment, redis_url):
    """The same hub, with a broker; this process itself has none and tells nobody."""
    return {**hub_environment, "REDIS_URL": redis_url}


def in_a_web_process(environment, code):
    """Run some lines as the hub's web process would, and give what they print."""
    script = f"import django; django.setup()\n{WITH}\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


WITH = """
import time
from django.db import transaction
from django.utils import timezone
from hub.jobs import services
at = timezone.now()
"""
ENQUEUE = """
started = time.monotonic()
with transaction.atomic():
    pk = services.enqueue("storage.delete", args={"key": "a/celery"}, at=at).pk
print(pk, time.monotonic() - started)
"""
SWEEP = "from hub.celery import sweep; sweep.apply_async()"


def wait_for(pk, process, *, within=30):
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        job = Job.objects.get(pk=pk)
        if job.finished_at is not None:
            return job
        if process.poll() is not None:
            pytest.fail(f"the worker ended: {process.communicate()[0].decode()[-2000:]}")
        time.sleep(0.05)
    pytest.fail("the job was not run in time")


def test_a_job_is_told_on_commit_and_run_by_a_worker(environment, worker):
    s3.put("a/celery", b"bytes")

    pk = in_a_web_process(environment, ENQUEUE).split()[0]
    job = wait_for(pk, worker)

    assert (job.state, job.attempts) == (Job.State.DONE, 1)
    assert s3.size_of("a/celery") is None


@pytest.mark.slow  # needs a machine to itself: beside other tests its worker may be late
def test_a_job_of_which_no_worker_was_told_is_found_by_the_sweeper(environment, worker):
    with transaction.atomic():
        job = services.enqueue("storage.delete", args={"key": "a/b"}, at=HOUR_AGO)

    in_a_web_process(environment, SWEEP)

    assert wait_for(job.pk, worker).state == Job.State.DONE


@pytest.mark.slow  # needs a machine to itself: beside other tests its worker may be late
def test_a_worker_killed_over_a_job_leaves_it_to_the_next(environment, worker):
    with transaction.atomic():
        job = services.enqueue("storage.delete", args={"key": "a/b"}, at=HOUR_AGO)
    assert services.claim(job.pk, owner="killed", at=HOUR_AGO)

    in_a_web_process(environment, SWEEP)
    done = wait_for(job.pk, worker)

    assert (done.state, done.attempts) == (Job.State.DONE, 2)


def test_a_broker_that_is_down_holds_up_no_request_and_loses_no_job(environment):
    pk, took = in_a_web_process({**environment, "REDIS_URL": "redis://127.0.0.1:9/0"}, ENQUEUE).split()

    assert float(took) < 5
    assert services.run(pk)


def test_a_broker_that_accepts_and_says_nothing_holds_up_no_request_for_long(environment):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        pk, took = in_a_web_process({**environment, "REDIS_URL": url}, ENQUEUE).split()

    assert float(took) < 5
    assert services.run(pk)
