import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from driver.__main__ import main
from driver.wire import malformed
from tests import cases

ROBOT = """
[robot]
slug = "two-legs"
name = "Two legs"
joints = ["l", "r"]
"""


@pytest.fixture
def robot(tmp_path: Path) -> Path:
    path = tmp_path / "robot.toml"
    path.write_text(ROBOT)
    return path


def summarize(capsys: pytest.CaptureFixture[str], *args: str | Path) -> tuple[int, str, str]:
    code = main(["summarize", *map(str, args)])
    said = capsys.readouterr()
    return code, said.out, said.err


def g1_robot(path: Path, header: str) -> Path:
    joints = [name[2:] for name in header.split(",") if name.startswith("q:")]
    mirror = "[robot.mirror]\npitch = 1\nknee = 1\nelbow = 1\n"
    path.write_text(f'[robot]\nslug = "unitree-g1-29"\nname = "G1"\njoints = {json.dumps(joints)}\n{mirror}')
    return path


def test_every_shared_log_gives_its_expected_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = cases.path("logs/sim_g1")
    expected: dict[str, Any] = json.loads((folder / "expected.json").read_text())

    for name, facts in expected.items():
        robot = g1_robot(tmp_path / "g1.toml", (folder / name).read_text().partition("\n")[0])
        code, out, _ = summarize(
            capsys, "--json", f"floor={folder / name}", "--robot", robot, "--judged", "floor"
        )
        found = json.loads(out)
        assert code == 0
        assert found["tilt_mean_deg"] == pytest.approx(facts["tilt_mean_deg"], abs=1e-3)
        assert found["tilt_max_deg"] == pytest.approx(facts["tilt_max_deg"], abs=1e-3)
        assert found["asym_max_deg"] == pytest.approx(facts["worst_asym_with_signs_deg"][0], abs=1e-3)
        assert found["tracking_error_rad"] == pytest.approx(facts["tracking_rad"], abs=1e-3)


# The mean tilt of the two rows in the window; nothing where the torn line leaves only one.
TOLERATED = {
    "01_ok": 0.859,
    "02_truncated_mid_number": 0.859,
    "03_truncated_mid_row_then_nothing": 0.859,
    "04_no_final_newline": None,
    "05_nul_block_tail": 0.859,
    "07_bom": 0.859,
    "08_crlf": 0.859,
}
MALFORMED = {
    "06_nul_inside_number": (3, malformed.NUL),
    "09_semicolon_decimal_comma": (1, malformed.NO_TIME),
    "10_dup_header": (1, malformed.REPEATED_COLUMN),
}


@pytest.mark.parametrize("name", TOLERATED)
def test_every_tolerated_case_gives_its_number(
    name: str, robot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, tilt = cases.path(f"logs/malformed/{name}.csv"), TOLERATED[name]

    code, out, err = summarize(capsys, "--json", f"floor={path}", "--robot", robot)

    assert (code, err) == (0, "")
    assert json.loads(out)["tilt_mean_deg"] == (tilt if tilt is None else pytest.approx(tilt, abs=1e-3))


@pytest.mark.parametrize("name", MALFORMED)
def test_every_malformed_case_is_refused_with_line_and_reason(
    name: str, robot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, (line, reason) = cases.path(f"logs/malformed/{name}.csv"), MALFORMED[name]

    code, out, err = summarize(capsys, "--json", f"floor={path}", "--robot", robot)

    found = json.loads(out)
    assert (code, err) == (1, "")
    assert (found["line"], found["reason"], found["stage"]) == (line, reason, "floor")


def test_every_shared_malformed_case_has_its_answer_here() -> None:
    found = {path.stem for path in cases.path("logs/malformed").iterdir()}

    assert found == {*TOLERATED, *MALFORMED}


def test_stages_are_named_by_their_files_and_follow_each_other(
    tmp_path: Path, robot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("01-hang.csv", "02-floor.csv"):
        (tmp_path / name).write_text("t,g_x,g_y,g_z\n5,0,0,-1\n6,0,0,-1\n7,0,0,-1\n")

    code, out, _ = summarize(
        capsys, "--json", tmp_path / "01-hang.csv", tmp_path / "02-floor.csv", "--robot", robot
    )

    found = json.loads(out)
    assert code == 0
    assert [(stage["name"], stage["t0_s"], stage["duration_s"]) for stage in found["stages"]] == [
        ("hang", 0.0, 2.0),
        ("floor", 2.0, 2.0),
    ]
    assert (found["judged_stage"], found["tilt_mean_deg"]) == ("floor", 0.0)


def test_without_a_file_of_the_judged_stage_the_numbers_are_null_and_it_is_said(
    tmp_path: Path, robot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "01-hang.csv").write_text("t\n0\n1\n")

    code, out, _ = summarize(capsys, "--json", tmp_path / "01-hang.csv", "--robot", robot)

    found = json.loads(out)
    assert (code, found["tilt_mean_deg"]) == (0, None)
    assert "no file is of the judged stage floor" in found["warnings"][0]


def test_for_people_the_numbers_are_printed_as_lines(
    tmp_path: Path, robot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "01-floor.csv").write_text("t,g_x,g_y,g_z\n0,0,0,-1\n1,0,0,-1\n2,0,0,-1\n")

    code, out, _ = summarize(capsys, tmp_path / "01-floor.csv", "--robot", robot)

    assert code == 0
    assert "tilt_mean_deg  0.0000" in out
    assert "loop_hz        –" in out


@pytest.mark.parametrize(
    "files",
    [["floor=absent.csv"], ["absent.csv", "floor=absent.csv"], ["floor=."], ["a=x", "a=y"], ["bad name.csv"]],
)
def test_wrong_usage_is_said_and_exits_with_2(
    files: list[str], robot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = summarize(capsys, "--json", *files, "--robot", robot)

    assert (code, out) == (2, "")
    assert err.startswith("trial-driver summarize: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("text", ["", "[robot", '[robot]\nslug = "x"\n', "\x00", "[[robot]]\n"])
def test_an_unusable_robot_file_is_wrong_usage(
    text: str, robot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    robot.write_text(text)

    code, out, err = summarize(capsys, "--json", "floor=x.csv", "--robot", robot)

    assert (code, out) == (2, "")
    assert "robot file" in err


@pytest.mark.parametrize("args", [[], ["--json"], ["floor=x.csv"], ["--robot", "x.toml"]])
def test_missing_arguments_exit_with_2(args: list[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["summarize", *args])

    assert left.value.code == 2


def test_the_command_needs_neither_hub_nor_policy(tmp_path: Path, robot: Path) -> None:
    (tmp_path / "01-floor.csv").write_text("t\n0\n1\n2\n")
    code = (
        "import sys\n"
        "from driver.__main__ import main\n"
        "assert main(sys.argv[1:]) == 0\n"
        "heavy = {'django', 'onnx', 'onnxruntime', 'mujoco', 'httpx'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )

    args = ["summarize", "--json", str(tmp_path / "01-floor.csv"), "--robot", str(robot)]
    ran = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, check=False, text=True)

    assert ran.returncode == 0, ran.stderr
