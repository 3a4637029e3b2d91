"""`make demo`: the main job on embedded defaults, from an empty folder to a verdict."""

import argparse
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from hub.web.demo.founder import DemoError, Founder
from hub.web.demo.processes import free_port, hub
from hub.web.demo.story import Say, Story

EMAIL, PASSWORD = "founder@example.org", "stilt-walks-again"


def main() -> int:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument(
        "--once", action="store_true", help="end after the verdict instead of leaving the hub running"
    )
    once = parser.parse_args().once
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: _interrupt(stop))
    with tempfile.TemporaryDirectory(prefix="trial-hub-demo-") as folder:
        try:
            run(Path(folder), once=once, stop=stop)
        except DemoError as error:
            print(f"\nThe demo stopped: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("\nStopped.")
            return 130
    return 0


def run(folder: Path, *, once: bool, stop: threading.Event) -> None:
    say = _clock()
    origin = f"http://127.0.0.1:{free_port()}"
    say(f"Starting a hub with its own object store at {origin}")
    with hub(folder=folder / "hub", origin=origin) as link, Founder(origin) as founder:
        founder.arrive(link, name="Demo founder", email=EMAIL, password=PASSWORD)
        session = Story(founder=founder, origin=origin, folder=folder, say=say).tell()
        say(f"Every step held. The session: {origin}/trial-sessions/{session}")
        if not once:
            say(f"The hub goes on running. Sign in as {EMAIL} with the password {PASSWORD}; Ctrl-C ends it.")
            stop.wait()


def _clock() -> Say:
    began = time.monotonic()

    def say(line: str) -> None:
        stamp = f"{time.monotonic() - began:5.1f} s" if not line.startswith("  ") else " " * 7
        print(f"{stamp}  {line}", flush=True)

    return say


def _interrupt(stop: threading.Event) -> None:
    """The first Ctrl-C ends the wait; while the story is still told it ends that."""
    if stop.is_set():
        return
    stop.set()
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
