"""Where the config's values come from: flag > TRIAL_DRIVER_* > user's file > system's file > defaults."""

import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driver.tables import ConfigError

SYSTEM = Path("/etc/trial-driver/config.toml")
PREFIX = "TRIAL_DRIVER_"
PATHS = {("device", "key_file"), ("device", "state_dir"), ("device", "robot")}

# What an environment variable or a flag may set: TRIAL_DRIVER_HUB_URL sets hub.url.
SETTABLE = {
    "hub": ("url", "poll_s", "heartbeat_s"),
    "device": ("key_file", "state_dir", "robot", "simulated", "go", "go_input", "stop_input", "contracts"),
    "limits": (
        "kd_scale",
        "power_scale",
        "max_stage_s",
        "max_offline_s",
        "command",
        "tilt_deg",
        "temp_c",
        "ramp_s",
        "max_ramp_rad",
        "joint_pos",
        "joint_vel_rad_s",
    ),
    "log": ("settle_s", "keep_days"),
    "teleop": ("source",),
    "upload": ("metered",),
}

Values = dict[str, Any]


@dataclass(frozen=True)
class Layers:
    """The merged values, the folder that relative commands start in, and the files that were read."""

    values: Values
    folder: Path
    files: tuple[Path, ...]


def user_file(environ: Mapping[str, str]) -> Path:
    home = environ.get("XDG_CONFIG_HOME") or str(Path(environ.get("HOME", "/")) / ".config")
    return Path(home) / "trial-driver" / "config.toml"


def collect(*, flags: Mapping[str, str | None], environ: Mapping[str, str] | None = None) -> Layers:
    """
    Merge all layers. `flags` has dotted keys (`hub.url`) and `config`, a file read instead of both others.

    :raises ConfigError: for a file that cannot be read, or a TRIAL_DRIVER_ name that nobody knows
    """
    environ = os.environ if environ is None else environ
    files = _files(flags.get("config"), environ)
    merged: Values = {}
    for path in files:
        merged = merge(merged, read(path))
    merged = merge(merged, from_environ(environ))
    merged = merge(merged, _nested({key: text for key, text in flags.items() if text and key != "config"}))
    return Layers(merged, files[-1].parent if files else Path.cwd(), files)


def _files(named: str | None, environ: Mapping[str, str]) -> tuple[Path, ...]:
    if named := named or environ.get(PREFIX + "CONFIG"):
        return (Path(named).absolute(),)
    return tuple(path for path in places(environ) if path.exists())


def places(environ: Mapping[str, str]) -> tuple[Path, Path]:
    """Where a config is looked for when none is named."""
    return SYSTEM, user_file(environ)


def none_found(*, flags: Mapping[str, str | None], environ: Mapping[str, str] | None = None) -> str | None:
    """What to do where no file is named and none lies in its place, or nothing."""
    environ = os.environ if environ is None else environ
    if _files(flags.get("config"), environ):
        return None
    looked = " and ".join(map(str, places(environ)))
    return f"no config file was found at {looked}; copy driver/box.example.toml to one of them and edit it"


def read(path: Path) -> Values:
    """Read one file; its relative paths start at its own folder."""
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None
    for section, key in PATHS:
        table = values.get(section)
        if isinstance(table, dict) and isinstance(table.get(key), str):
            table[key] = str(path.parent / table[key])
    return values


def merge(below: Values, above: Values) -> Values:
    """Table by table and key by key; what is above wins."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def from_environ(environ: Mapping[str, str]) -> Values:
    known = {
        f"{PREFIX}{section}_{key}".upper(): f"{section}.{key}"
        for section, keys in SETTABLE.items()
        for key in keys
    }
    found = {}
    for name, text in environ.items():
        if not name.startswith(PREFIX) or name == PREFIX + "CONFIG":
            continue
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise ConfigError(f"{name} sets nothing" + (f"; did you mean {near[0]}?" if near else ""))
        found[known[name]] = text
    return _nested(found)


def _nested(dotted: Mapping[str, str]) -> Values:
    values: Values = {}
    for key, text in dotted.items():
        section, name = key.split(".")
        is_path = (section, name) in PATHS
        values.setdefault(section, {})[name] = str(Path(text).absolute()) if is_path else _value(text)
    return values


def _value(text: str) -> Any:
    """Numbers, lists and true/false as TOML writes them; everything else is text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
