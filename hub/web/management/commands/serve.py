import signal
import threading
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from hub.accounts import actors, services
from hub.accounts.models import User
from hub.core.children import FolderInUse
from hub.storage.local import StoreError
from hub.web.house import HouseError, default_bind, open_house


class Command(BaseCommand):
    help = (
        "Run the whole hub on this machine: object store, web server, jobs. Ctrl-C stops it; nothing is lost."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--bind", default=default_bind(), help="address:port of the web server (%(default)s)"
        )
        parser.add_argument(
            "--storage-bind", default="127.0.0.1", help="address the object store listens on (%(default)s)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        self.say(f"Starting on {settings.HUB_DATA} …")
        try:
            with open_house(bind=options["bind"], storage_bind=options["storage_bind"]) as house:
                self.welcome()
                house.watch(stop)
                self.say("Stopping …")
        except (FolderInUse, StoreError, HouseError) as error:
            raise CommandError(str(error)) from error

    def welcome(self) -> None:
        self.say(f"The hub is at {settings.PUBLIC_ORIGIN} — Ctrl-C stops it.")
        if not User.objects.filter(last_login__isnull=False).exists():
            self.say(f"Nobody has signed in yet. Open this once, within a day: {first_owner_link()}")

    def say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def first_owner_link() -> str:
    """A fresh one-time link for the first owner, who says on the page who they are."""
    secret = services.make_owner_link(by=actors.SYSTEM, at=timezone.now())
    return f"{settings.PUBLIC_ORIGIN}/welcome/{secret}"
