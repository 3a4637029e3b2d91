from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from devices import keys
from driver.wire import moments


class Command(BaseCommand):
    help = (
        "Add a signing key that takes over at a moment. Old keys stay published: what they signed stays good."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--at", help="when it takes over, like 2026-12-24T00:00:00Z; now where absent")

    def handle(self, *args: Any, at: str | None = None, **options: Any) -> None:
        try:
            moment = timezone.now() if at is None else moments.read(at)
        except moments.BadMoment as why:
            raise CommandError(f"--at: {why}") from why
        key = keys.rotate(at=moment)
        self.stdout.write(
            f"Key {key.kid} signs from {moments.write(moment)}. "
            "Boxes know only the key they enrolled with: enrol each anew then."
        )
