"""`trial-driver summarize`: the numbers of a trial's logs, without a hub."""

import argparse
import sys


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("summarize", help="print the summary of log files given in stage order")
    parser.add_argument("files", nargs="+", metavar="[STAGE=]FILE")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    parser.add_argument(
        "--robot", required=True, help="the robot file (TOML): joints, pairs and mirror signs"
    )
    parser.add_argument("--judged", default="floor", metavar="STAGE", help="the stage that is judged")


def run(args: argparse.Namespace) -> int:
    print("not written yet", file=sys.stderr)
    return 2
