"""The command line, `trial-driver`."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Protocol, cast

# One module a subcommand. A module imports what is heavy inside `run`, so that no subcommand needs what only
# another one uses.
COMMANDS = ("enroll", "doctor", "run", "go", "stop", "status", "stage", "summarize", "evaluate", "pack")


class Command(Protocol):
    def add_parser(self, subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...


def _command(name: str) -> Command:
    return cast("Command", importlib.import_module(f"driver.commands.{name}"))


def parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(prog="trial-driver", description=__doc__, allow_abbrev=False)
    subparsers = root.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in COMMANDS:
        _command(name).add_parser(subparsers)
    return root


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; its exit code is the answer. A usage error leaves with 2, as argparse does."""
    args = parser().parse_args(argv)
    return _command(args.command).run(args)


if __name__ == "__main__":
    sys.exit(main())
