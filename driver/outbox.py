"""What the box still owes the hub. A message is a file, and a message told is a file gone."""

from collections.abc import Callable
from pathlib import Path

from driver import durable
from driver.answers import HubRefused


class Outbox:
    """Messages in the order of their names, each kept as the exact bytes that were signed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.refused = folder / "refused"
        self.refused.mkdir(mode=0o700, parents=True, exist_ok=True)

    def put(self, name: str, message: bytes) -> None:
        """Keep a message until the hub has it. A name is used once, so a repeat changes nothing."""
        path = self.folder / f"{name}.json"
        if not path.exists() and not (self.refused / path.name).exists():
            durable.write(path, message)

    def waiting(self) -> list[Path]:
        return sorted(self.folder.glob("*.json"))

    def deliver(self, send: Callable[[bytes], None], refused: Callable[[bytes, HubRefused], None]) -> int:
        """
        Send what waits, oldest name first. What the hub will never take is set aside, and `refused` is told.

        :raises HubUnreachable: the rest keeps its order and waits
        """
        told = 0
        for path in self.waiting():
            message = path.read_bytes()
            try:
                send(message)
            except HubRefused as problem:
                refused(message, problem)
                path.rename(self.refused / path.name)  # a person looks; the queue moves on
                durable.sync_folder(self.refused)
            else:
                told += 1
                path.unlink()
            durable.sync_folder(self.folder)
        return told
