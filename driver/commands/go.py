"""`trial-driver go`: the word of a person beside the robot. It shows what starts, and starts nothing else."""

import argparse
import sys

from driver.commands import options
from driver.exits import Exit


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("go", help="start the stage that waits; stand beside the robot")
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask again after showing it")
    options.add(parser)


def run(args: argparse.Namespace) -> int:
    return options.guarded(_run, args)


def _run(args: argparse.Namespace) -> int:
    from driver import console

    folder = options.state_dir(args)
    shown = console.ask(folder, ask="waiting")["waiting"]
    if shown is None:
        print("nothing waits for a go", file=sys.stderr)
        return Exit.FAILED
    waiting = console.Waiting(**shown)
    for line in waiting.in_words():
        print(line)
    if not (args.yes or _confirmed(waiting.stage)):
        return Exit.FAILED
    answer = console.ask(folder, ask="go", ticket=waiting.ticket)
    print(answer["said"], file=sys.stdout if answer["ok"] else sys.stderr)
    return Exit.OK if answer["ok"] else Exit.FAILED


def _confirmed(stage: str) -> bool:
    if not sys.stdin.isatty():
        print(
            "not started: there is no terminal to ask at; --yes starts it without the question",
            file=sys.stderr,
        )
        return False
    try:
        answer = input(f"start {stage}? [y/N] ")
    except EOFError:
        answer = ""
    if answer.strip().lower() in ("y", "yes"):
        return True
    print("not started", file=sys.stderr)
    return False
