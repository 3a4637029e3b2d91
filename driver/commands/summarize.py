"""`trial-driver summarize`: the numbers of a trial's logs, without a hub."""

import argparse
from pathlib import Path


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "summarize",
        help="print the summary of log files given in stage order",
        description="Print the summary of log files given in stage order. A file's stage is the part of its "
        "name after the number (01-hang.csv), or what is written before it (hang=FILE). "
        "Exits with 0, or 1 for a malformed log (the problem as JSON on stdout), or 2 for wrong usage.",
    )
    parser.add_argument("files", nargs="+", metavar="[STAGE=]FILE")
    parser.add_argument("--json", action="store_true", help="print the whole summary as JSON")
    parser.add_argument(
        "--robot", required=True, type=Path, help="the robot file: joints, pairs, mirror signs"
    )
    parser.add_argument("--judged", default="floor", metavar="STAGE", help="the judged stage (%(default)s)")


def run(args: argparse.Namespace) -> int:
    from driver import summarize

    return summarize.main(args)
