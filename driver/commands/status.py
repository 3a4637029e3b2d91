"""`trial-driver status`: what goes on at this box, with or without a daemon."""

import argparse
import json

from driver.commands import options
from driver.exits import Exit


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("status", help="say what goes on at this box")
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    options.add(parser)


def run(args: argparse.Namespace) -> int:
    return options.guarded(_run, args)


def _run(args: argparse.Namespace) -> int:
    from driver import console, status

    config = options.load(args)
    try:
        daemon = console.ask(config.device.state_dir, ask="status")
    except console.NoDaemon:
        daemon = None
    said = status.with_daemon(status.on_disk(config), daemon)
    print(json.dumps(said) if args.json else "\n".join(status.in_words(said)))
    return Exit.OK
