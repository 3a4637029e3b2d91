import signal
import threading
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.db import close_old_connections
from django.utils import timezone

from hub.jobs import services


class Command(BaseCommand):
    help = "Run background jobs on this machine, without a broker, until told to stop."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="run what is due now, and end")
        parser.add_argument("--pause", type=float, default=0.5, help="seconds between looks (default 0.5)")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["once"]:
            while one_pass():
                pass
            return
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        loop(stop, pause=options["pause"])


def loop(stop: threading.Event, *, pause: float) -> None:
    """Do one pass after another; the pause is only for a pass that found nothing."""
    while not stop.is_set():
        close_old_connections()
        if not one_pass():
            stop.wait(pause)


def one_pass() -> int:
    services.enqueue_periodic(at=timezone.now())
    return services.run_due(at=timezone.now(), most=20)
