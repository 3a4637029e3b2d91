"""The box config: one frozen dataclass, read once from TOML. A key that nobody knows is refused."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from driver import layers, tables
from driver.tables import ConfigError, Table

LOG = "{state_dir}/runs/{approval_id}/{n}-{stage}.csv"
PLACEHOLDERS = ("state_dir", "approval_id", "n", "stage")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
SOURCE = re.compile(r"zero|udp:[0-9A-Za-z.:\[\]-]+|script:[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Hub:
    url: str
    poll_s: float
    heartbeat_s: float

    @property
    def is_loopback(self) -> bool:
        return urlsplit(self.url).hostname in LOOPBACK


@dataclass(frozen=True)
class Device:
    key_file: Path
    state_dir: Path
    robot: Path | None
    simulated: bool
    go: str
    go_input: tuple[str, ...]
    stop_input: tuple[str, ...]
    contracts: tuple[str, ...]


@dataclass(frozen=True)
class Limits:
    """The box's own limits, whatever a sheet says."""

    kd_scale: tuple[float, float]
    power_scale: tuple[float, float]
    max_stage_s: float
    max_offline_s: float
    command: tuple[float, ...]
    tilt_deg: float
    temp_c: float
    ramp_s: float
    max_ramp_rad: float
    joint_pos: Mapping[str, tuple[float, float]]
    joint_vel_rad_s: float


Gain = float | Mapping[str, float]


@dataclass(frozen=True)
class Gains:
    stiffness: Gain
    damping: Gain


@dataclass(frozen=True)
class StageCommand:
    """What the box does for a stage: a command of its owner's, never of the hub's."""

    command: tuple[str, ...]
    stop_command: tuple[str, ...]
    log: str
    temps: re.Pattern[str] | None
    battery: re.Pattern[str] | None


@dataclass(frozen=True)
class Logs:
    settle_s: float
    keep_days: float


@dataclass(frozen=True)
class Teleop:
    source: str
    scripts: Mapping[str, tuple[tuple[float, ...], ...]]


@dataclass(frozen=True)
class Config:
    hub: Hub
    device: Device
    limits: Limits
    gains: Mapping[str, Gains]
    stages: Mapping[str, StageCommand]
    log: Logs
    teleop: Teleop
    metered: str
    folder: Path
    files: tuple[Path, ...]

    def stage(self, name: str) -> StageCommand | None:
        """The command for a stage, by its name or the box's default."""
        return self.stages.get(name) or self.stages.get("default")


def load(*, flags: Mapping[str, str | None], environ: Mapping[str, str] | None = None) -> Config:
    """
    Read the config of this box.

    :raises ConfigError: naming the key, for anything missing, misspelt or outside its kind
    """
    found = layers.collect(flags=flags, environ=environ)
    root = Table("", found.values)
    config = Config(
        hub=_hub(root.table("hub")),
        device=_device(root.table("device")),
        limits=_limits(root.table("limits")),
        gains={name: _gains(table) for name, table in root.tables("gains").items()},
        stages={name: _stage(table) for name, table in root.tables("stages").items()},
        log=_logs(root.table("log")),
        teleop=_teleop(root.table("teleop")),
        metered=_upload(root.table("upload")),
        folder=found.folder,
        files=found.files,
    )
    root.done()
    _check_together(config)
    return config


def state_dir_alone(*, flags: Mapping[str, str | None], environ: Mapping[str, str] | None = None) -> Path:
    """The state folder, however broken the rest is: a stop must get through."""
    try:
        found = layers.collect(flags=flags, environ=environ).values.get("device")
    except ConfigError:
        found = None
    named = found.get("state_dir") if isinstance(found, dict) else None
    return Path(named if isinstance(named, str) else flags.get("device.state_dir") or _default_state_dir())


def _hub(table: Table) -> Hub:
    hub = Hub(
        url=table.text("url").rstrip("/"),
        poll_s=table.positive("poll_s", 5),
        heartbeat_s=table.positive("heartbeat_s", 5),
    )
    table.done()
    check_url(hub)
    return hub


def check_url(hub: Hub) -> None:
    parts = urlsplit(hub.url)
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.path
        or parts.query
        or parts.username
    ):
        raise ConfigError(f"hub.url is {hub.url!r}; it must be like https://hub.example")
    if parts.scheme == "http" and not hub.is_loopback:
        raise ConfigError("hub.url must be https; http is for a hub on this machine")


def _default_state_dir() -> str:
    if os.geteuid() == 0:
        return "/var/lib/trial-driver"
    return str(Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "trial-driver")


def _device(table: Table) -> Device:
    state_dir = Path(table.text("state_dir", _default_state_dir()))
    device = Device(
        key_file=Path(table.text("key_file", str(state_dir / "device.key"))),
        state_dir=state_dir,
        robot=Path(robot) if (robot := table.text("robot", "")) else None,
        simulated=table.flag("simulated", False),
        go=table.choice("go", ("local", "auto"), "local"),
        go_input=table.argv("go_input", ()),
        stop_input=table.argv("stop_input", ()),
        contracts=table.texts("contracts", ()),
    )
    table.done()
    return device


def _limits(table: Table) -> Limits:
    joints = table.table("joint_pos")
    limits = Limits(
        kd_scale=table.span("kd_scale", (0.5, 1.5)),
        power_scale=table.span("power_scale", (0.2, 1.0)),
        max_stage_s=table.positive("max_stage_s", 120),
        max_offline_s=table.positive("max_offline_s", 60),
        command=table.numbers("command", (0.8, 0.3, 0.6)),
        tilt_deg=table.positive("tilt_deg", 60),
        temp_c=table.positive("temp_c", 85),
        ramp_s=table.positive("ramp_s", 3),
        max_ramp_rad=table.positive("max_ramp_rad", 1),
        joint_pos={name: joints.span(name) for name in joints.names()},
        joint_vel_rad_s=table.positive("joint_vel_rad_s", 20),
    )
    table.done()
    if len(limits.command) != 3 or any(axis < 0 for axis in limits.command):
        raise ConfigError("limits.command must be the largest [vx, vy, wz] either way, none of them negative")
    return limits


def _gains(table: Table) -> Gains:
    gains = Gains(stiffness=_gain(table, "stiffness"), damping=_gain(table, "damping"))
    table.done()
    return gains


def _gain(table: Table, name: str) -> Gain:
    value = table.take(name)
    if isinstance(value, Mapping):
        return {joint: tables.number(f"{table.key(name)}.{joint}", each) for joint, each in value.items()}
    return tables.number(table.key(name), value)


def _stage(table: Table) -> StageCommand:
    stdout = table.table("stdout")
    command = table.argv("command")
    if not command:
        raise ConfigError(f"{table.key('command')} is empty")
    stage = StageCommand(
        command=command,
        stop_command=table.argv("stop_command", ()),
        log=_log_template(table.key("log"), table.text("log", LOG)),
        temps=_pattern(stdout, "temps", groups=2),
        battery=_pattern(stdout, "battery", groups=1),
    )
    stdout.done()
    table.done()
    return stage


def _log_template(path: str, template: str) -> str:
    for name in re.findall(r"\{(.*?)\}", template):
        if name not in PLACEHOLDERS:
            raise ConfigError(tables.unknown(f"{path}: {{{name}}}", name, PLACEHOLDERS))
    return template


def _pattern(table: Table, name: str, *, groups: int) -> re.Pattern[str] | None:
    text = table.text(name, "")
    if not text:
        return None
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise ConfigError(f"{table.key(name)} is no regular expression: {error}") from None
    if pattern.groups != groups:
        said = "two groups, the motor and its °C" if groups == 2 else "one group, the volts"
        raise ConfigError(f"{table.key(name)} must have {said}")
    return pattern


def _logs(table: Table) -> Logs:
    if table.text("map", ""):
        raise ConfigError(
            f"{table.key('map')}: this driver maps no foreign columns; let the command write version 1"
        )
    logs = Logs(settle_s=table.positive("settle_s", 20), keep_days=table.positive("keep_days", 30))
    table.done()
    return logs


def _teleop(table: Table) -> Teleop:
    source = table.text("source", "zero")
    if not SOURCE.fullmatch(source):
        raise ConfigError(f'{table.key("source")} is {source!r}; it must be "zero", "udp:…" or "script:NAME"')
    scripts = {name: _script(script) for name, script in table.tables("scripts").items()}
    table.done()
    name = source.removeprefix("script:")
    if source.startswith("script:") and name not in scripts:
        raise ConfigError(tables.unknown(f"teleop.source: script {name!r}", name, scripts))
    return Teleop(source=source, scripts=scripts)


def _script(table: Table) -> tuple[tuple[float, ...], ...]:
    path = table.key("steps")
    steps = table.take("steps")
    table.done()
    if not isinstance(steps, list) or not steps:
        raise ConfigError(f"{path} must be a list of [seconds, vx, vy, wz]")
    found = tuple(tables.numbers(path, step) for step in steps)
    if any(len(step) != 4 or step[0] <= 0 for step in found):
        raise ConfigError(f"{path}: each step is [seconds, vx, vy, wz], and its seconds are above 0")
    return found


def _upload(table: Table) -> str:
    metered = table.choice("metered", ("ask", "always"), "ask")
    table.done()
    return metered


def _check_together(config: Config) -> None:
    if config.device.go == "auto" and not config.device.simulated:
        raise ConfigError('device.go = "auto" is for a simulated box only; a person starts a real robot')
    _check_logs_apart(config.stages)
    for name, steps in config.teleop.scripts.items():
        for step in steps:
            _check_script_step(name, step[1:], config.limits.command)


def _check_script_step(name: str, command: tuple[float, ...], limit: tuple[float, ...]) -> None:
    if any(abs(axis) > most for axis, most in zip(command, limit, strict=True)):
        raise ConfigError(f"teleop.scripts.{name}: {list(command)} is outside limits.command {list(limit)}")


def _check_logs_apart(stages: Mapping[str, StageCommand]) -> None:
    """Two stages that write one file would each take the other's log for their own."""
    seen: dict[str, str] = {}
    for name, stage in stages.items():
        if "{n}" in stage.log or "{stage}" in stage.log:
            continue
        if name == "default":
            raise ConfigError(
                "stages.default.log needs {n} or {stage}: every stage without a table writes there"
            )
        if stage.log in seen:
            raise ConfigError(f"stages.{name}.log is also the log of stages.{seen[stage.log]}")
        seen[stage.log] = name
