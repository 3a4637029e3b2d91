"""`trial-driver run`: the daemon. Consent permits, a person at the box says go; it starts nothing itself."""

import argparse
import signal
from contextlib import closing
from types import FrameType
from typing import TYPE_CHECKING

from driver.commands import options
from driver.exits import Exit

if TYPE_CHECKING:
    from driver.box import Box


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("run", help="carry out what is consented to, trial by trial")
    options.add(parser)
    parser.add_argument(
        "--once",
        action="store_true",
        help="one trial, to its record, or nothing where none is offered; then leave",
    )


def run(args: argparse.Namespace) -> int:
    return options.guarded(_run, args)


def _run(args: argparse.Namespace) -> int:
    from driver import assemble, console, stages
    from driver.loop import Loop

    options.log_to_stderr()
    config = options.load(args)
    with assemble.locked(config.device.state_dir):
        stages.become_reaper()
        box = assemble.box(config)
        _leave_on_signals(box)
        with closing(box), console.listening(box.console, config.device.state_dir):
            Loop(box).run(once=args.once)
    return Exit.OK


def _leave_on_signals(box: "Box") -> None:
    """A signal stops what runs, then the daemon. Ctrl-C is a person's; a service manager sends SIGTERM."""

    def leave(number: int, _: FrameType | None) -> None:
        box.leaving.ask("operator" if number == signal.SIGINT else "driver_stopped")

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, leave)
