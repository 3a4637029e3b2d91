"""The whole hub on one machine: object store, web server and job loop, started in order and watched."""

import http.client
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import Popen
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management import call_command

from hub.core.children import child, only_one
from hub.storage import s3
from hub.storage.local import LocalStore

READY_WITHIN = 60.0
LOOK_EVERY = 0.5


class HouseError(Exception):
    """The hub cannot run on; the message is for a person."""


class House:
    """Open while its processes run; `watch` returns when it is told to stop."""

    def __init__(self, *, store: LocalStore | None, children: dict[str, "Popen[bytes]"]) -> None:
        self._store, self._children = store, children

    def watch(self, stop: threading.Event) -> None:
        """
        Keep the store running and look after the rest.

        :raises HouseError: when the web server or the job loop has ended by itself
        """
        while not stop.wait(LOOK_EVERY):
            self._raise_if_ended()
            if self._store is not None:
                self._store.keep()

    def wait_until_ready(self, address: str) -> None:
        """
        Wait for the web server's first answer.

        :raises HouseError: when none comes
        """
        deadline = time.monotonic() + READY_WITHIN
        while time.monotonic() < deadline:
            self._raise_if_ended()
            if _answers(address):
                return
            time.sleep(0.1)
        raise HouseError(f"The web server did not answer at {address} within {READY_WITHIN:g} s.")

    def _raise_if_ended(self) -> None:
        for name, process in self._children.items():
            if process.poll() is not None:
                raise HouseError(f"The {name} ended by itself (exit status {process.returncode}); see above.")


@contextmanager
def open_house(*, bind: str, storage_bind: str) -> Iterator[House]:
    """
    Start everything, and stop it in the other order.

    :raises FolderInUse: when another hub runs on the data folder
    :raises StoreError: when the object store cannot run
    :raises HouseError: when the web server does not come up
    """
    with ExitStack() as stack:
        stack.enter_context(only_one(settings.HUB_DATA))
        store = None if settings.S3_ENDPOINT else stack.enter_context(_own_store(storage_bind))
        prepare()
        children = {
            "job loop": stack.enter_context(child(_manage("jobs"), env=os.environ)),
            "web server": stack.enter_context(child(_web_server(bind), env=os.environ)),
        }
        house = House(store=store, children=children)
        house.wait_until_ready(_local(bind))
        yield house


def prepare() -> None:
    """Bring the database and the bucket to where this version needs them. Safe to repeat."""
    Path(settings.STATIC_ROOT or "").mkdir(exist_ok=True)
    call_command("migrate", verbosity=0, interactive=False)
    if not settings.REDIS_URL:
        call_command("createcachetable", verbosity=0)
    s3.ensure_bucket()


def default_bind() -> str:
    """Where to listen: the public origin itself when that is this machine, else loopback for a proxy."""
    public = urlsplit(settings.PUBLIC_ORIGIN)
    host = public.hostname if public.hostname in ("127.0.0.1", "localhost") else "127.0.0.1"
    return f"{host}:{public.port or 8000}"


def _own_store(bind: str) -> LocalStore:
    return LocalStore(
        settings.HUB_DATA / "storage",
        allowed_origins=settings.PUBLIC_ORIGIN,
        bucket=settings.S3_BUCKET,
        bind=bind,
    )


def _manage(command: str) -> list[str]:
    return [sys.executable, "-m", "django", command, "--settings", "hub.settings"]


def _web_server(bind: str) -> list[str]:
    """One process with threads: SQLite has one writer, and one machine has one team."""
    return [
        sys.executable,
        "-m",
        "gunicorn",
        "hub.wsgi",
        f"--bind={bind}",
        "--worker-class=gthread",
        "--threads=8",
        "--timeout=120",
        "--graceful-timeout=10",
        "--log-level=warning",
    ]


def _local(bind: str) -> str:
    """How this machine reaches an address that listens everywhere."""
    host, _, port = bind.rpartition(":")
    return f"127.0.0.1:{port}" if host in ("", "0.0.0.0", "[::]") else bind  # noqa: S104 - compared, not bound


def _answers(address: str) -> bool:
    connection = http.client.HTTPConnection(address, timeout=2)
    try:
        connection.request("GET", "/healthz", headers={"Host": urlsplit(settings.PUBLIC_ORIGIN).netloc})
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
