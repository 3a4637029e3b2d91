"""`trial-driver enroll`: makes the box's key, registers it, and pins whom the box trusts from then on."""

import argparse
import sys

from driver.commands import options
from driver.exits import Exit


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("enroll", help="register this box at the hub with the code that it showed")
    parser.add_argument("code", metavar="CODE", help="the code, or - to read it from stdin")
    parser.add_argument(
        "--again", action="store_true", help="also where this box is enrolled already; its key stays the same"
    )
    options.add(parser)


def run(args: argparse.Namespace) -> int:
    return options.guarded(_run, args)


def _run(args: argparse.Namespace) -> int:
    from driver import assemble, enrolment, pins
    from driver.clock import Clock

    config = options.load(args)
    state_dir = config.device.state_dir
    if pins.path_in(state_dir).exists() and not args.again:
        device_id = pins.load(state_dir).device_id
        raise enrolment.EnrolmentRefused(f"this box is enrolled as {device_id}; --again enrols it anew")
    code = (sys.stdin.readline() if args.code == "-" else args.code).strip()
    enrolment.fingerprint_in(code)  # before the lock makes the state folder
    with assemble.locked(state_dir):
        pinned = enrolment.enrol(config, code, clock=Clock())
    print(f"enrolled as {pinned.device_id} at {pinned.url}")
    print(f"trusted: hub key {', '.join(pinned.keys)}, storage {', '.join(pinned.storage_hosts)}")
    return Exit.OK
