"""`trial-driver doctor`: what is wrong with this box, and what to do. It changes nothing."""

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from driver.commands import options
from driver.exits import Exit

if TYPE_CHECKING:
    from driver.checks import Finding
    from driver.config import Config


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("doctor", help="check this box, in order, and say what to do")
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    parser.add_argument(
        "--reconciled",
        action="store_true",
        help="you have looked at robot and hub after a loss: runs may start again",
    )
    options.add(parser)


def run(args: argparse.Namespace) -> int:
    return options.guarded(_run, args)


def _run(args: argparse.Namespace) -> int:
    from driver.checks import Finding
    from driver.tables import ConfigError

    try:
        found = options.load(args)
    except ConfigError as error:
        return _say([Finding("config", "FAIL", str(error), "correct the config file")], as_json=args.json)
    if args.reconciled:
        print(_reconcile(found))
        return Exit.OK
    files = ", ".join(str(path) for path in found.files) or "no file, only defaults"
    return _say([Finding("config", "ok", files), *_examine(found)], as_json=args.json)


def _examine(config: "Config") -> "list[Finding]":
    from driver import checks, hub

    with hub.client() as http:
        return list(checks.examine(checks.Patient(config, {"http": http})))


def _say(findings: "list[Finding]", *, as_json: bool) -> int:
    failed = any(finding.result == "FAIL" for finding in findings)
    if as_json:
        print(json.dumps({"ok": not failed, "checks": [asdict(finding) for finding in findings]}))
    else:
        for finding in findings:
            print(f"{finding.result:<8}{finding.name:<16}{finding.said}")
            if finding.fix:
                print(f"{'':<24}→ {finding.fix}")
    return Exit.FAILED if failed else Exit.OK


def _reconcile(config: "Config") -> str:
    """A running daemon holds the journal, so it does it; where none runs, it is done here."""
    from driver import assemble, console
    from driver.journal import Journal

    try:
        return str(console.ask(config.device.state_dir, ask="reconciled")["said"])
    except console.NoDaemon:
        with assemble.locked(config.device.state_dir):
            return assemble.reconcile(Journal.open(config.device.state_dir))
