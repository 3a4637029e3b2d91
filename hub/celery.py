"""Celery, where there is a broker: `celery -A hub.celery worker` and, once, `celery -A hub.celery beat`."""

import os

from celery import Celery
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hub.settings")

app = Celery("hub")
app.conf.update(
    broker_url=settings.REDIS_URL or None,
    broker_connection_retry_on_startup=True,
    broker_transport_options={
        "visibility_timeout": 3600,  # longer than any task
        # A broker that is down, or silent, holds up no request: the sweeper tells again.
        "socket_connect_timeout": 1,
        "socket_timeout": 2,
        "max_retries": 1,
        "interval_start": 0,
        "interval_step": 0,
        "connect_retries_timeout": 1,
    },
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_ignore_result=True,
    task_serializer="json",
    accept_content=["json"],
    worker_prefetch_multiplier=1,
    beat_schedule={"sweep": {"task": "hub.jobs.sweep", "schedule": 30.0}},
)


@app.task(name="hub.jobs.run")
def run(pk: str) -> None:
    from hub.jobs import services

    services.run(pk)


@app.task(name="hub.jobs.sweep")
def sweep() -> None:
    """Write what comes by itself, and tell the workers of everything that is due."""
    from django.utils import timezone

    from hub.jobs import services

    at = timezone.now()
    services.enqueue_periodic(at=at)
    services.republish_due(at=at)


def tell_worker(pk: str) -> None:
    run.apply_async((pk,), retry=False)
