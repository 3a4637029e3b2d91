"""The guide for somebody else's robot says nothing that the driver would refuse."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from driver.__main__ import parser
from driver.bodies.choose import simulated_options
from driver.bodies.options import Options
from driver.contract.document import check_contract
from driver.wire.robot import robot_from_document

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "another-robot.md").read_text()


BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(language: str) -> list[str]:
    return [text for said, text in BLOCK.findall(GUIDE) if said == language]


def table(name: str) -> dict[str, Any]:
    """The first TOML block that has a table of that name at its top."""
    return next(said for block in blocks("toml") if name in (said := tomllib.loads(block)))


def test_the_robot_file_is_one():
    pairs = {pair.name: pair.mirror for pair in robot_from_document(table("robot")).pairs}

    assert pairs == {"hip_roll": -1, "knee": 1}


def test_the_sidecar_is_a_whole_contract_of_that_robot():
    contract = check_contract(table("contract")["contract"])

    assert set(contract.joints) == set(robot_from_document(table("robot")).joints)
    assert contract.width("obs") == 5 * (3 + 3 + 3 + 4 + 4 + 4)


def test_the_body_is_one_and_every_option_is_told():
    words = table("stages")["stages"]["default"]["command"][-1]

    assert simulated_options(words).latency_ticks == 1
    told = set(re.findall(r"`(\w+)`", "".join(line for line in GUIDE.splitlines() if line.startswith("| "))))
    assert set(Options.__dataclass_fields__) - {"model"} <= told


@pytest.mark.parametrize("command", ["pack", "evaluate"])
def test_the_commands_take_their_arguments(command: str):
    lines = "".join(blocks("")).replace("\\\n", " ").splitlines()
    words = next(line for line in lines if line.startswith(f"trial-driver {command}")).split("#")[0]

    args = parser().parse_args(words.replace("'", "").split()[1:])

    assert args.command == command
