"""What the box's subcommands share: where its config is, and how an anticipated failure is said."""

import argparse
import logging
import sys
from collections.abc import Callable
from pathlib import Path

from driver import config, layers
from driver.config import Config
from driver.exits import DriverError
from driver.tables import ConfigError

FLAGS = {"config": "config", "hub": "hub.url", "state_dir": "device.state_dir", "key_file": "device.key_file"}


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", metavar="FILE", help="read this config instead of the user's and the system's"
    )
    parser.add_argument("--state-dir", metavar="FOLDER", help="where the driver keeps its state")
    parser.add_argument("--key-file", metavar="FILE", help="the device's private key")
    parser.add_argument("--hub", metavar="URL", help="the hub's address, https://hub.example")


def load(args: argparse.Namespace) -> Config:
    """:raises ConfigError: where there is no file at all, it also says where one belongs"""
    flags = _flags(args)
    try:
        return config.load(flags=flags)
    except ConfigError as error:
        if remedy := layers.none_found(flags=flags):
            raise ConfigError(f"{error}; {remedy}") from None
        raise


def state_dir(args: argparse.Namespace) -> Path:
    """All that go and stop need: a mistake elsewhere in the config must not keep a stop from the daemon."""
    return config.state_dir_alone(flags=_flags(args))


def _flags(args: argparse.Namespace) -> dict[str, str | None]:
    return {key: getattr(args, name, None) for name, key in FLAGS.items()}


def guarded(act: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    """Run it; what was anticipated is one sentence on stderr and an exit code."""
    try:
        return act(args)
    except DriverError as error:
        print(f"trial-driver: {error}", file=sys.stderr)
        return int(error.exit)


def log_to_stderr() -> None:
    """The daemon's log; only its own, so that no library prints a URL with its signature."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log = logging.getLogger("driver")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
