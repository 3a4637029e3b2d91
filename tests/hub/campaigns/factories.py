"""Robots, campaigns, checkpoints and rounds to test with, made by the services or as they leave them."""

import hashlib
import tomllib
from pathlib import Path
from typing import Any

from driver.contract.document import contract_name
from hub.accounts.actors import SYSTEM
from hub.accounts.models import Account
from hub.campaigns.models import Campaign, Checkpoint, Contract, Robot, Round, TrainingRun
from hub.campaigns.services import campaigns, robots, rounds
from hub.storage.models import StoredObject
from tests.factories import NOON

DEMO = Path(__file__).resolve().parents[3] / "driver" / "bodies" / "demo"
ROBOT_FILE = tomllib.loads((DEMO / "stilt.toml").read_text())
SIDECAR = tomllib.loads((DEMO / "contract.toml").read_text())
GATES = [
    {
        "key": "tilt",
        "metric": "tilt_mean_deg",
        "op": "<=",
        "threshold": 2.0,
        "conditions": {"terrain": "flat"},
    },
    {"key": "upright", "metric": "seeds_upright_share", "op": ">=", "threshold": 0.9, "conditions": {}},
]


def onnx(name: str = "tied_step_276") -> bytes:
    return (DEMO / "checkpoints" / f"{name}.onnx").read_bytes()


def robot(owner: Account, *, slug: str = "stilt") -> Robot:
    document = {"robot": {**ROBOT_FILE["robot"], "slug": slug}}
    return robots.create_robot(owner=owner, document=document, by=SYSTEM, at=NOON)


def campaign(
    owner: Account, *, robot: Robot | None = None, name: str = "walk", fail_ends_lineage: bool = True
) -> Campaign:
    return campaigns.create_campaign(
        owner=owner,
        robot=robot or _robot_of(owner),
        name=name,
        fail_ends_lineage=fail_ends_lineage,
        by=SYSTEM,
        at=NOON,
    )


def checkpoint(
    campaign: Campaign, *, run: str = "walk-7", step: int = 700, parent: Checkpoint | None = None
) -> Checkpoint:
    """A verified checkpoint as completing an upload leaves it; its bytes are nowhere."""
    training_run, _ = TrainingRun.objects.get_or_create(
        campaign=campaign, name=run, defaults={"created_at": NOON}
    )
    sha256 = hashlib.sha256(f"{campaign.pk}/{run}/{step}".encode()).hexdigest()
    stored = StoredObject.objects.create(
        owner=campaign.owner,
        key=f"checkpoints/step_{step}/{sha256}/policy.onnx",
        bytes=3000,
        sha256=sha256,
        state=StoredObject.State.STORED,
        created_at=NOON,
        stored_at=NOON,
    )
    return Checkpoint.objects.create(
        run=training_run,
        step=step,
        parent=parent,
        onnx_sha256=sha256,
        bytes=3000,
        object=stored,
        contract=contract(campaign.robot),
        verified_at=NOON,
        created_at=NOON,
    )


def contract(robot: Robot) -> Contract:
    document = {"robot": robot.slug, "rate_hz": 50, "joints": list(robot.described.joints)}
    found, _ = Contract.objects.get_or_create(
        robot=robot, name=contract_name(document), defaults={"document": document, "created_at": NOON}
    )
    return found


def result(checkpoint: Checkpoint, *, tilt: float | None = 1.0, upright: int = 16) -> dict[str, Any]:
    """A result that passes both gates unless told otherwise."""
    measured = {"tilt": tilt, "upright": upright / 16}
    return {"checkpoint": checkpoint.pk, "seeds_run": 16, "seeds_upright": upright, "measured": measured}


def round_of(
    campaign: Campaign,
    *results: dict[str, Any],
    resumes_from: Checkpoint | None = None,
    is_locked: bool = True,
) -> Round:
    content = {"gates": GATES, "results": list(results)}
    if resumes_from is not None:
        content["resumes_from"] = resumes_from.pk  # type: ignore[assignment]
    made = rounds.create_round(campaign=campaign, content=content, by=SYSTEM, at=NOON)
    return rounds.lock_round(round=made, by=SYSTEM, at=NOON) if is_locked else made


def _robot_of(owner: Account) -> Robot:
    return Robot.objects.filter(owner=owner).first() or robot(owner)
