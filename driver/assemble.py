"""From the box config to a daemon: what it needs is there, whole and private, or it does not start."""

import difflib
import fcntl
import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from driver import keys, pins
from driver.box import Box
from driver.clock import Clock
from driver.config import Config
from driver.console import Console
from driver.exits import DriverError
from driver.hub import Hub, Storage
from driver.journal import Journal
from driver.mail import Mail
from driver.outbox import Outbox
from driver.pins import NotEnrolled
from driver.tables import ConfigError
from driver.wire.robot import BadRobot, Robot, robot_from_document


class AlreadyRunning(DriverError):
    """One daemon for each state folder."""


def box(config: Config, *, clock: Clock | None = None) -> Box:
    """
    Put the parts together. The caller holds the state folder's lock.

    :raises DriverError: for a key, a robot file or an enrolment that is not as it must be
    """
    clock = clock or Clock()
    state_dir = config.device.state_dir
    pinned = pins.load(state_dir)
    if pinned.url != config.hub.url:
        raise NotEnrolled(f"this box is enrolled at {pinned.url}, but hub.url is {config.hub.url}")
    key = keys.load(config.device.key_file)
    robot = load_robot(config.device.robot)
    check_joints(config, robot)
    hub = Hub(url=pinned.url, device_id=pinned.device_id, key=key, clock=clock)
    journal = Journal.open(state_dir)
    mail = Mail(hub=hub, journal=journal, outbox=Outbox(state_dir / "outbox"), key=key, clock=clock)
    return Box(
        config=config,
        pins=pinned,
        robot=robot,
        clock=clock,
        hub=hub,
        storage=Storage(hosts=pinned.storage_hosts, allow_http=config.hub.is_loopback),
        journal=journal,
        mail=mail,
        console=Console(reconcile=lambda: reconcile(journal)),
    )


def load_robot(path: Path | None) -> Robot:
    """:raises ConfigError: for a robot file that is absent or wrong"""
    if path is None:
        raise ConfigError("device.robot is missing: it names the robot file")
    try:
        return robot_from_document(tomllib.loads(path.read_text("utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, BadRobot) as error:
        raise ConfigError(f"device.robot: {path}: {error}") from None


def check_joints(config: Config, robot: Robot) -> None:
    """
    A limit on a joint that the robot has not would limit nothing, silently.

    :raises ConfigError: naming the joint
    """
    named = {f"limits.joint_pos.{joint}": joint for joint in config.limits.joint_pos}
    for profile, gains in config.gains.items():
        for key in ("stiffness", "damping"):
            value = getattr(gains, key)
            if isinstance(value, Mapping):
                named |= {f"gains.{profile}.{key}.{joint}": joint for joint in value}
    for path, joint in named.items():
        if joint not in robot.joints:
            near = difflib.get_close_matches(joint, robot.joints, n=1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise ConfigError(f"{path}: {robot.slug} has no such joint{meant}")


@contextmanager
def locked(state_dir: Path) -> Iterator[None]:
    """
    Hold the state folder for as long as this lasts; the lock ends with the process, however that ends.

    :raises AlreadyRunning: when another process holds it
    """
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(state_dir / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise AlreadyRunning(f"a driver is already running on {state_dir}") from None
    try:
        yield
    finally:
        os.close(handle)


def reconcile(journal: Journal) -> str:
    """A person has looked: runs may start again, and stuck logs are tried once more."""
    with journal.lock:
        was = journal.state.attention
        logs = tuple(replace(log, stuck=None) for log in journal.state.logs)
        journal.change(attention=None, may_adopt=True, logs=logs)
    return f"cleared: {was}" if was else "nothing needed attention"
