"""`trial-driver stop`: ends the run at the box. It is no emergency stop; keep a hardware one within reach."""

import argparse
import sys

from driver.commands import options
from driver.exits import Exit


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "stop", help="stop what runs; no replacement for a hardware emergency stop"
    )
    options.add(parser)


def run(args: argparse.Namespace) -> int:
    return options.guarded(_run, args)


def _run(args: argparse.Namespace) -> int:
    from driver import console

    answer = console.ask(options.state_dir(args), ask="stop")
    print(answer["said"], file=sys.stdout if answer["ok"] else sys.stderr)
    return Exit.OK if answer["ok"] else Exit.FAILED
