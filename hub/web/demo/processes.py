"""The real hub and the real driver, each a process of its own, in one temporary folder."""

import os
import re
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hub.web.demo.founder import DemoError

HUB_UP_WITHIN = 90.0
LINK = re.compile(r"https?://\S+/welcome/\S+")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def hub(*, folder: Path, origin: str, services: Mapping[str, str] | None = None) -> Iterator[str]:
    """
    Run `manage.py serve` on a folder; gives the first owner's one-time link.

    Whatever else the environment configures is left aside: the embedded defaults hold, but for `services`.
    """
    plain = {name: value for name, value in os.environ.items() if not _configures_a_hub(name)}
    env = {**plain, "HUB_DATA": str(folder), "PUBLIC_ORIGIN": origin, **(services or {})}
    command = [sys.executable, "-u", "-m", "django", "serve", "--settings", "hub.settings"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield _first_link(process)
        finally:
            process.terminate()
            process.wait(60)


@contextmanager
def driver(*, config: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the daemon of the robot box."""
    with log.open("wb") as out:
        process = subprocess.Popen(driver_command("run", config=config), stdout=out, stderr=out)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(60)


def call_driver(*arguments: str, config: Path | None = None) -> str:
    """Run one command of the driver to its end, and give what it printed."""
    done = subprocess.run(
        driver_command(*arguments, config=config), capture_output=True, text=True, check=False, timeout=300
    )
    if done.returncode != 0:
        raise DemoError(f"trial-driver {arguments[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def driver_command(*arguments: str, config: Path | None = None) -> list[str]:
    configured = ["--config", str(config)] if config else []
    return [sys.executable, "-m", "driver", *arguments, *configured]


def _configures_a_hub(name: str) -> bool:
    return name.startswith(("S3_", "HUB_")) or name in ("DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE")


def _first_link(process: "subprocess.Popen[str]") -> str:
    """Read what the hub prints until it prints the link."""
    assert process.stdout is not None
    deadline, said = time.monotonic() + HUB_UP_WITHIN, []
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while time.monotonic() < deadline and selector.select(deadline - time.monotonic()):
            line = process.stdout.readline()
            said.append(line)
            if found := LINK.search(line):
                return found[0]
            if not line:
                break
    raise DemoError("The hub did not start.\n" + "".join(said))
