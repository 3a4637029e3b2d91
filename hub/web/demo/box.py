"""The demo's robot box: its simulated body differs from the simulation of the training, as hardware does."""

from pathlib import Path

from hub.web.demo.cast import DEMO, ONE_TICK_LATE, STILT, Cast

__all__ = ["BODY", "DEMO", "write_config"]

BODY = ONE_TICK_LATE

CONFIG = """\
[hub]
url = "{origin}"
poll_s = 0.2
heartbeat_s = 1

[device]
key_file = "{folder}/device.key"
state_dir = "{folder}/state"
robot = "{robot}"
simulated = true
go = "auto" # nobody stands beside a simulated robot

[limits]
kd_scale = [0.5, 1.5]
power_scale = [0.2, 1.0]
max_stage_s = 60
command = [1.0, 0.0, 0.0]
tilt_deg = 60
temp_c = 85
max_ramp_rad = 1.5
joint_vel_rad_s = 40.0

[stages.default]
command = ["{python}", "-m", "driver", "stage", "--body", "{body}"]

[log]
settle_s = 1

[teleop]
source = "script:walk"

[teleop.scripts.walk]
steps = [[2.0, 0.0, 0.0, 0.0], [8.0, {speed}, 0.0, 0.0]]
"""


def write_config(folder: Path, *, origin: str, python: str, body: str = BODY, cast: Cast = STILT) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    config = folder / "config.toml"
    config.write_text(
        CONFIG.format(
            origin=origin,
            folder=folder,
            robot=cast.robot.resolve(),
            speed=cast.speed,
            python=python,
            body=cast.on_the_box(body),
        )
    )
    return config
