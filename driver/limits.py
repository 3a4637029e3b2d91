"""The box's own limits against a run sheet: whatever the hub asks, nothing outside them ever moves."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from driver.config import Config, Limits

JSONObject = Mapping[str, Any]


class OutsideLimits(ValueError):
    """The sheet asks for what this box does not do; the sentence names limit and value."""


def check(sheet: JSONObject, config: Config) -> None:
    """:raises OutsideLimits: with the first thing met"""
    _check_scale("kd_scale", sheet["kd_scale"], config.limits.kd_scale)
    _check_scale("power_scale", sheet["power_scale"], config.limits.power_scale)
    _check_gains(sheet["gain_profile"], config)
    for stage in sheet["stages"]:
        _check_stage(stage, config)


def _check_scale(name: str, value: float, allowed: tuple[float, float]) -> None:
    lowest, highest = allowed
    if not lowest <= value <= highest:
        raise OutsideLimits(f"{name} {value:g} is outside this box's limits.{name} [{lowest:g}, {highest:g}]")


def _check_gains(profile: str, config: Config) -> None:
    if profile != "policy" and profile not in config.gains:
        raise OutsideLimits(f"gain_profile {profile!r} is not among this box's [gains]")


def _check_stage(stage: JSONObject, config: Config) -> None:
    name, duration, limits = stage["name"], stage["duration_s"], config.limits
    if duration is not None and duration > limits.max_stage_s:
        raise OutsideLimits(
            f"stage {name}: {duration:g} s is above this box's limits.max_stage_s {limits.max_stage_s:g}"
        )
    if config.stage(name) is None:
        raise OutsideLimits(
            f"stage {name}: this box has no command for it, neither stages.{name} nor stages.default"
        )
    values = stage["values"]
    if "command" in values:
        _check_command(name, values["command"], limits)
    script = values.get("command_script")
    if script is not None and script not in config.teleop.scripts:
        raise OutsideLimits(f"stage {name}: this box has no teleop script {script!r}")


def _check_command(stage: str, command: object, limits: Limits) -> None:
    if not isinstance(command, list) or len(command) != len(limits.command):
        raise OutsideLimits(
            f"stage {stage}: the command must be {len(limits.command)} numbers, vx, vy and wz"
        )
    for axis, value, most in zip(("vx", "vy", "wz"), command, limits.command, strict=True):
        if abs(value) > most:
            raise OutsideLimits(
                f"stage {stage}: command {axis} {value:g} is outside this box's limits.command ±{most:g}"
            )


def abort_rules(sheet: JSONObject, stage: JSONObject, limits: Limits) -> list[dict[str, Any]]:
    """
    The rules that act in a stage: the sheet's and the box's own, both, so that the stricter one acts.

    A robot that hangs may be tilted; the box's tilt rule is for stages in which it stands by itself.
    """
    name = stage["name"]
    rules = [{**rule, "stages": [name]} for rule in sheet["abort_rules"] if name in rule["stages"]]
    own = {"temp_c": limits.temp_c, "joint_vel_rad_s": limits.joint_vel_rad_s}
    if stage["free_standing"]:
        own["tilt_deg"] = limits.tilt_deg
    for metric, value in own.items():
        if not any(_is_as_strict(rule, metric, value) for rule in rules):
            rules.append({"metric": metric, "op": ">", "value": value, "for_s": 0.0, "stages": [name]})
    return rules


def _is_as_strict(rule: JSONObject, metric: str, value: float) -> bool:
    is_above = rule["op"] in (">", ">=")
    return rule["metric"] == metric and is_above and rule["value"] <= value and rule["for_s"] == 0


def as_order(limits: Limits) -> dict[str, Any]:
    """The limits as the stage's command reads them."""
    said = dataclasses.asdict(limits)
    said["joint_pos"] = {joint: list(span) for joint, span in limits.joint_pos.items()}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in said.items()}


def in_words(limits: Limits) -> str:
    """The limits on one line, for the person who gives the go."""
    vx, vy, wz = limits.command
    return (
        f"tilt {limits.tilt_deg:g}°, temperature {limits.temp_c:g} °C, stage {limits.max_stage_s:g} s, "
        f"command ±[{vx:g}, {vy:g}, {wz:g}], kd scale {limits.kd_scale[0]:g}–{limits.kd_scale[1]:g}, "
        f"power scale {limits.power_scale[0]:g}–{limits.power_scale[1]:g}"
    )
