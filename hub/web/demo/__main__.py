"""`make demo`: the main job on embedded defaults, from an empty folder to a verdict."""

import argparse
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from hub.web.demo.cast import ONE_TICK_LATE, STILT, Cast, someone_elses
from hub.web.demo.founder import DemoError, Founder
from hub.web.demo.processes import free_port, hub
from hub.web.demo.story import Say, Story

EMAIL, PASSWORD = "founder@example.org", "stilt-walks-again"


def main() -> int:
    arguments = _parser().parse_args()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: _interrupt(stop))
    with tempfile.TemporaryDirectory(prefix="trial-hub-demo-") as folder:
        try:
            run(Path(folder), cast=_cast(arguments), once=arguments.once, stop=stop)
        except DemoError as error:
            print(f"\nThe demo stopped: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("\nStopped.")
            return 130
    return 0


def run(folder: Path, *, cast: Cast, once: bool, stop: threading.Event) -> None:
    say = _clock()
    origin = f"http://127.0.0.1:{free_port()}"
    say(f"Starting a hub with its own object store at {origin}")
    with hub(folder=folder / "hub", origin=origin) as link, Founder(origin) as founder:
        founder.arrive(link, name="Demo founder", email=EMAIL, password=PASSWORD)
        session = Story(founder=founder, origin=origin, folder=folder, say=say, cast=cast).tell()
        say("Every step held." if once else f"Every step held: {origin}/trial-sessions/{session}")
        if not once:
            say(f"The hub goes on running. Sign in as {EMAIL} with the password {PASSWORD}; Ctrl-C ends it.")
            stop.wait()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument(
        "--once", action="store_true", help="end after the verdict instead of leaving the hub running"
    )
    other = parser.add_argument_group("another robot (docs/another-robot.md)")
    policy = "POLICY.onnx[,SIDECAR.toml]"
    other.add_argument("--robot", metavar="ROBOT.toml")
    other.add_argument("--model", metavar="MODEL.xml[?OPTIONS]", help="MuJoCo model with position actuators")
    other.add_argument("--control", metavar=policy, help="what the robot runs today")
    other.add_argument("--candidate", metavar=policy, action="append", help="repeatable")
    other.add_argument("--body", metavar="OPTIONS", default=ONE_TICK_LATE, help="default: %(default)s")
    other.add_argument("--speed", type=float, default=0.3, help="m/s forward in teleop (default %(default)s)")
    return parser


def _cast(arguments: argparse.Namespace) -> Cast:
    named = [arguments.robot, arguments.model, arguments.control, arguments.candidate]
    if not any(named):
        return STILT
    if not all(named):
        raise DemoError("Another robot needs all of --robot, --model, --control and --candidate.")
    return someone_elses(
        robot=arguments.robot,
        model=arguments.model,
        control=arguments.control,
        candidates=arguments.candidate,
        body=arguments.body,
        speed=arguments.speed,
    )


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
