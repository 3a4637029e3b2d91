"""The box config: read once, and a key that nobody knows is refused, for a misspelt limit is no limit."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from driver import config, layers
from driver.__main__ import COMMANDS, main
from driver.exits import Exit
from driver.tables import ConfigError

SOUND = """
[hub]
url = "https://hub.example"
[device]
state_dir = "state"
robot = "robot.toml"
[stages.default]
command = ["trial-driver", "stage", "--body", "mujoco:robot.xml"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(SOUND)
    return path


def load(file: Path, *, more: str = "", environ: dict[str, str] | None = None, **flags: str) -> config.Config:
    file.write_text(SOUND + more)
    dotted = {name.replace("__", "."): value for name, value in flags.items()}
    return config.load(flags={"config": str(file), **dotted}, environ=environ or {})


def refusal(file: Path, **said: Any) -> str:
    with pytest.raises(ConfigError) as refused:
        load(file, **said)
    return str(refused.value)


def test_what_the_file_leaves_open_has_the_documented_default(file: Path) -> None:
    found = load(file)

    assert found.limits.tilt_deg == 60
    assert found.limits.kd_scale == (0.5, 1.5)
    assert found.device.go == "local"
    assert found.stages["default"].log == "{state_dir}/runs/{approval_id}/{n}-{stage}.csv"


def test_relative_paths_start_at_the_files_own_folder(file: Path) -> None:
    assert load(file).device.state_dir == file.parent / "state"


def test_a_misspelt_limit_is_refused_and_the_right_one_named(file: Path) -> None:
    assert refusal(file, more="[limits]\ntilt_degs = 20\n") == (
        "limits.tilt_degs is not a key this driver knows; did you mean 'tilt_deg'?"
    )


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ("[limit]\ntilt_deg = 20\n", "limit is not a key"),
        ("[stages.floor]\ncomand = ['x']\n", "stages.floor.command is missing"),
        ("[stages.floor]\ncommand = ['x']\nlogg = 'x'\n", "stages.floor.logg is not a key"),
        (
            "[stages.floor]\ncommand = ['x']\nstdout = { temp = '(a)(b)' }\n",
            "stages.floor.stdout.temp is not a key",
        ),
        ("[teleop.scripts.walk]\nstep = []\n", "teleop.scripts.walk.steps is missing"),
        ("[gains.soft]\nstiffness = 60\ndamping = 3\nkp = 1\n", "gains.soft.kp is not a key"),
        ("[upload]\nmeterd = 'ask'\n", "upload.meterd is not a key"),
    ],
)
def test_an_unknown_key_anywhere_is_refused(file: Path, more: str, named: str) -> None:
    assert named in refusal(file, more=more)


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ("[limits]\ntilt_deg = true\n", "limits.tilt_deg must be a finite number"),
        ("[limits]\ntilt_deg = nan\n", "limits.tilt_deg must be a finite number"),
        ("[limits]\ntilt_deg = -1\n", "limits.tilt_deg must be above 0"),
        ("[limits]\nkd_scale = [1.5, 0.5]\n", "limits.kd_scale must be [lowest, highest]"),
        ("[limits]\ncommand = [0.8, 0.3]\n", "limits.command must be the largest [vx, vy, wz]"),
        ("[limits]\njoint_pos = { knee = [1] }\n", "limits.joint_pos.knee must be [lowest, highest]"),
        ("[stages.floor]\ncommand = 'run me'\n", "no shell reads it"),
        ("[stages.floor]\ncommand = []\n", "stages.floor.command is empty"),
        ("[stages.floor]\ncommand = ['x']\nlog = '/tmp/{stge}.csv'\n", "did you mean 'stage'?"),
        ("[stages.floor]\ncommand = ['x']\nstdout = { temps = '(' }\n", "is no regular expression"),
        (
            "[stages.floor]\ncommand = ['x']\nstdout = { battery = '(a)(b)' }\n",
            "must have one group, the volts",
        ),
        ("[teleop]\nsource = 'tcp:1'\n", "teleop.source is 'tcp:1'"),
        ("[teleop]\nsource = 'script:wlk'\n", "script 'wlk' is not a key"),
        ("[teleop.scripts.walk]\nsteps = [[1.0, 0.9, 0, 0]]\n", "is outside limits.command"),
        ("[log]\nmap = 'map.toml'\n", "maps no foreign columns"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused(file: Path, more: str, named: str) -> None:
    assert named in refusal(file, more=more)


def test_only_a_simulated_box_may_start_without_a_person(file: Path) -> None:
    with pytest.raises(ConfigError, match="a person starts a real robot"):
        load(file, device__go="auto")
    assert load(file, device__go="auto", device__simulated="true").device.go == "auto"


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (
            "[stages.a]\ncommand=['x']\nlog='/t/l.csv'\n[stages.b]\ncommand=['x']\nlog='/t/l.csv'\n",
            "stages.b.log",
        ),
        ("[stages.a]\ncommand=['x']\n", ""),
    ],
)
def test_two_stages_never_share_a_log(file: Path, more: str, named: str) -> None:
    if named:
        assert "is also the log of stages.a" in refusal(file, more=more)
    else:
        load(file, more=more)


@pytest.mark.parametrize(
    "url", ["http://hub.example", "hub.example", "https://hub.example/api", "ftp://hub.example"]
)
def test_the_hub_is_reached_by_https_or_on_this_machine(file: Path, url: str) -> None:
    assert "hub.url" in refusal(file, hub__url=url)


def test_http_is_for_a_hub_on_this_machine(file: Path) -> None:
    assert load(file, hub__url="http://127.0.0.1:8000").hub.is_loopback


def test_a_flag_beats_the_environment_which_beats_the_file(file: Path) -> None:
    environ = {"TRIAL_DRIVER_HUB_URL": "https://environment.example", "TRIAL_DRIVER_LIMITS_TILT_DEG": "30"}

    assert load(file, environ=environ).hub.url == "https://environment.example"
    assert load(file, environ=environ).limits.tilt_deg == 30
    assert load(file, environ=environ, hub__url="https://flag.example").hub.url == "https://flag.example"


def test_a_misspelt_variable_is_refused_too(file: Path) -> None:
    said = refusal(file, environ={"TRIAL_DRIVER_LIMITS_TILT_DEGS": "30"})

    assert "did you mean TRIAL_DRIVER_LIMITS_TILT_DEG?" in said


def test_the_users_file_is_laid_over_the_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system, home = tmp_path / "system.toml", tmp_path / "home"
    system.write_text(SOUND + "[limits]\ntilt_deg = 20\ntemp_c = 70\n")
    (home / "trial-driver").mkdir(parents=True)
    (home / "trial-driver" / "config.toml").write_text("[limits]\ntemp_c = 60\n")
    monkeypatch.setattr(layers, "SYSTEM", system)

    found = config.load(flags={}, environ={"XDG_CONFIG_HOME": str(home)})

    assert (found.limits.tilt_deg, found.limits.temp_c) == (20, 60)
    assert found.device.state_dir == tmp_path / "state"


def test_a_file_that_is_no_toml_is_refused_with_its_name(file: Path) -> None:
    assert str(file) in refusal(file, more="limits]")


def test_a_stage_without_a_table_of_its_own_has_the_default_command(file: Path) -> None:
    found = load(file, more="[stages.floor]\ncommand = ['walk.sh']\n")

    assert found.stage("floor") is found.stages["floor"]
    assert found.stage("teleop") is found.stages["default"]


def test_the_state_folder_is_found_however_broken_the_rest_is(file: Path) -> None:
    file.write_text(SOUND + "[limitz]\n")

    assert config.state_dir_alone(flags={"config": str(file)}, environ={}) == file.parent / "state"
    assert config.state_dir_alone(flags={"config": str(file), "device.state_dir": "/x"}, environ={}) == Path(
        "/x"
    )


def test_a_flag_names_the_state_folder_when_the_file_is_no_toml(file: Path) -> None:
    file.write_text("[[[")

    assert config.state_dir_alone(flags={"config": str(file), "device.state_dir": "/x"}, environ={}) == Path(
        "/x"
    )


ROOT = Path(__file__).parents[2]


def test_the_example_says_every_default_as_it_is(file: Path) -> None:
    example = config.load(flags={"config": str(ROOT / "driver" / "box.example.toml")}, environ={})
    bare = load(file)

    assert example.limits == bare.limits
    assert example.log == bare.log
    assert example.teleop.source == bare.teleop.source
    assert (example.hub.poll_s, example.hub.heartbeat_s) == (bare.hub.poll_s, bare.hub.heartbeat_s)
    assert (example.device.simulated, example.device.go) == (bare.device.simulated, bare.device.go)
    assert example.stages["default"] == bare.stages["default"]


def test_every_key_of_the_example_may_also_be_set_from_outside() -> None:
    said = tomllib.loads((ROOT / "driver" / "box.example.toml").read_text())
    scalars = {
        section: {
            key for key, value in said[section].items() if not isinstance(value, dict) or key == "joint_pos"
        }
        for section in layers.SETTABLE
    }

    assert scalars == {section: set(keys) for section, keys in layers.SETTABLE.items()}


@pytest.mark.parametrize("command", ["doctor", "status"])
def test_without_any_file_the_places_and_the_example_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], command: str
) -> None:
    monkeypatch.setattr(layers, "SYSTEM", tmp_path / "system.toml")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("TRIAL_DRIVER_CONFIG", raising=False)

    assert main([command]) != Exit.OK

    said = "".join(capfd.readouterr())
    assert "no config file was found" in said
    assert str(tmp_path / "system.toml") in said
    assert str(tmp_path / "trial-driver" / "config.toml") in said
    assert "driver/box.example.toml" in said


def test_the_handbook_names_every_subcommand_of_the_box() -> None:
    text = (ROOT / "docs" / "driver.md").read_text()

    for name in ("enroll", "doctor", "run", "go", "stop", "status"):
        assert f"trial-driver {name}" in text
        assert name in COMMANDS
