"""A live hub with a founder, a campaign and two checkpoints, and boxes that reach it through somebody."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from hub.web.demo.founder import API
from hub.web.demo.story import CANDIDATES, CONTROL, Story
from tests import services
from tests.contract.live import live_hub
from tests.driver.rig.box import wait_for
from tests.faults.between import Between
from tests.faults.box import RobotBox

WITHIN_S = 90.0
CANDIDATE = CANDIDATES[0]
Trial = dict[str, Any]
Stage = dict[str, Any]


def stages(*, hang_s: float = 0.4, floor_s: float = 0.6, teleop_s: float | None = None) -> list[Stage]:
    """Stages as short as they can be."""
    planned = [_stage("hang", hang_s), _stage("floor", floor_s, judged=True, free_standing=True)]
    return planned if teleop_s is None else [*planned, _stage("teleop", teleop_s, free_standing=True)]


def _stage(name: str, duration_s: float, *, judged: bool = False, free_standing: bool = False) -> Stage:
    return {
        "name": name,
        "duration_s": duration_s,
        "judged": judged,
        "free_standing": free_standing,
        "values": {"command": [0, 0, 0]},
    }


@dataclass
class Site:
    story: Story
    hub: Between
    storage: Between
    contracts: list[str]
    names: Iterator[int]

    def box(self, **how: Any) -> RobotBox:
        """A box of its own for a test, enrolled through whoever stands between."""
        name = f"box-{next(self.names)}"
        asked = {"robot": self.story.robot, "name": name, "accepted_contracts": self.contracts}
        made = self.story.founder.post("/devices", asked)
        box = RobotBox(self.story.folder / name, self.hub.origin, device_id=made["device_id"], **how)
        box.enrol(made["code"])
        return box

    def planned(self, box: RobotBox) -> list[Trial]:
        """A session of control, candidate, control."""
        session = self.story.founder.post(
            "/trial-sessions",
            {
                "campaign": self.story.campaign,
                "candidates": [{"run": CANDIDATE.run, "step": CANDIDATE.step}],
                "controls": [{"run": CONTROL.run, "step": CONTROL.step}],
                "device_id": box.device_id,
                "reason": "What does it do when something breaks?",
            },
        )
        return list(session["trials"])

    def consent(self, trial: Trial, **how: float) -> Trial:
        """A person makes the sheet short, reads it and permits it."""
        self._patch(f"/trials/{trial['id']}/run-sheet", {"stages": stages(**how)})
        self.story.consent(trial)
        return trial

    def consented(self, box: RobotBox, **how: float) -> Trial:
        """The first trial of a new session, permitted."""
        return self.consent(self.planned(box)[0], **how)

    def revoke(self, trial: Trial) -> None:
        self.story.founder.post(f"/approvals/{trial['approval']['id']}/revoke", {"reason": "enough"})

    def _patch(self, path: str, body: dict[str, Any]) -> None:
        http = self.story.founder._http
        answer = http.patch(API + path, json=body, headers={"X-CSRFToken": http.cookies["csrftoken"]})
        answer.raise_for_status()

    def trial(self, trial: Trial) -> Trial:
        return self.story.founder.get(f"/trials/{trial['id']}")

    def approval(self, trial: Trial) -> dict[str, Any]:
        return self.story.founder.get(f"/approvals/{trial['approval']['id']}")

    def page(self, trial: Trial) -> str:
        return self.story.founder.page(f"/trials/{trial['id']}")

    def log_of(self, trial: Trial) -> dict[str, Any]:
        """The log of a trial, once the hub has its record."""

        def recorded() -> dict[str, Any] | None:
            log: dict[str, Any] = self.trial(trial)["log"]
            return log if log["state"] != "awaiting" else None

        return wait_for(recorded, within_s=WITHIN_S) or {}

    def acts(self, action: str, target: str) -> list[str]:
        """The sentences about every such act, oldest first."""
        found = self.story.founder.get("/activity", action=action, target=target)["items"]
        return [said["sentence"] for said in reversed(found)]

    def starts(self, trial: Trial) -> int:
        return len(self.acts("approval.started", trial["approval"]["id"]))

    def records(self, trial: Trial) -> int:
        return len(self.acts("trial.log", trial["id"]))

    def refusals(self, trial: Trial) -> list[str]:
        return self.acts("approval.refused", trial["approval"]["id"])


@contextmanager
def open_site(folder: Path) -> Iterator[Site]:
    store = services.ensure("store")["url"]
    with Between() as hub, Between(store) as storage:
        origins = {"DEVICE_ORIGINS": hub.origin, "S3_PUBLIC_ENDPOINT": storage.origin}
        with live_hub(folder, **origins) as story:
            hub.to = story.origin
            story.describe_robot()
            checkpoints: Sequence[Trial] = [story.upload(shipped) for shipped in (CONTROL, CANDIDATE)]
            contracts = sorted({checkpoint["contract"]["name"] for checkpoint in checkpoints})
            yield Site(story, hub, storage, contracts, count(1))
