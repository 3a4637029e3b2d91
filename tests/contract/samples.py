"""For every operation a request that is good in the prepared world, from whoever may make it."""

import json
from dataclasses import dataclass
from typing import Any

from nacl.signing import SigningKey

from driver.wire import rotation, signatures
from tests.contract.operations import Operation
from tests.contract.world import World
from tests.devices.factories import enrol_envelope
from tests.factories import NOON
from tests.hub.campaigns import factories as campaigns
from tests.trials import factories as made

DIGEST = "0123456789abcdef" * 4


@dataclass(frozen=True)
class Sample:
    """The ids in an operation's path, and its body; without one, nothing is sent."""

    ids: tuple[str, ...] = ()
    body: Any = None

    @property
    def raw(self) -> bytes:
        return b"" if self.body is None else json.dumps(self.body).encode()

    def path(self, operation: Operation) -> str:
        return operation.at(*self.ids)


def of(*ids: str, body: Any = None) -> Sample:
    return Sample(ids, body)


def all_of(world: World) -> dict[str, Sample]:
    return {
        **_of_accounts(world),
        **_of_campaigns(world),
        **_of_rounds(world),
        **_of_devices(world),
        **_of_boxes(world),
        **_of_approvals(world),
        **_of_sessions(world),
        **_of_trials(world),
        **_of_agents(world),
    }


def _of_accounts(world: World) -> dict[str, Sample]:
    new_key = {"account": world.lab.pk, "name": "planner", "scopes": ["key:read"]}
    return {
        "getMe": of(),
        "listApiKeys": of(),
        "createApiKey": of(body=new_key),
        "revokeApiKey": of(world.keys.spare.key.pk),
        "listActivity": of(),
        "getStorageUsage": of(),
    }


def _of_campaigns(world: World) -> dict[str, Sample]:
    campaign, checkpoint = world.bench.campaign, world.bench.good
    new_robot = {"account": world.lab.pk, "robot": {**campaigns.ROBOT_FILE["robot"], "slug": "stilt-2"}}
    new_campaign = {"account": world.lab.pk, "robot": campaign.robot_id, "name": "run"}
    new_checkpoint = {
        "run": "walk-9",
        "step": 100,
        "bytes": 3000,
        "onnx_sha256": DIGEST,
        "sidecar": campaigns.SIDECAR["contract"],
        "parent": checkpoint.pk,
    }
    return {
        "listRobots": of(),
        "createRobot": of(body=new_robot),
        "getRobot": of(campaign.robot_id),
        "listCampaigns": of(),
        "createCampaign": of(body=new_campaign),
        "getCampaign": of(campaign.pk),
        "updateCampaign": of(campaign.pk, body={"name": "walk on", "fail_ends_lineage": False}),
        "listCheckpoints": of(campaign.pk),
        "createCheckpoint": of(campaign.pk, body=new_checkpoint),
        "completeCheckpoint": of(checkpoint.pk),
        "getCheckpoint": of(checkpoint.pk),
    }


def _of_rounds(world: World) -> dict[str, Sample]:
    content = {"gates": campaigns.GATES, "results": [campaigns.result(world.bench.good)]}
    shortlist = {
        "shortlist": [world.bench.good.pk, {"run": "walk-8", "step": 800}],
        "controls": [world.bench.control.pk],
        "device_id": world.box.device.pk,
        "reason": made.REASON,
        "tolerances": [{"metric": "tilt_mean_deg", "decides": True}],
    }
    return {
        "listRounds": of(world.bench.campaign.pk),
        "createRound": of(world.bench.campaign.pk, body={**content, "resumes_from": world.bench.good.pk}),
        "getRound": of(world.draft_round.pk),
        "updateRound": of(world.draft_round.pk, body={**content, "resumes_from": None}),
        "lockRound": of(world.draft_round.pk),
        "decideRound": of(world.open_round.pk, body=shortlist),
        "shortlistRound": of(world.open_round.pk, body=shortlist),
    }


def _of_devices(world: World) -> dict[str, Sample]:
    device, robot = world.box.device, world.bench.campaign.robot
    new_device = {
        "account": world.lab.pk,
        "robot": robot.pk,
        "name": "fourth",
        "accepted_contracts": [f"{robot.slug}@50"],
    }
    return {
        "listDevices": of(),
        "createDevice": of(body=new_device),
        "getDevice": of(device.pk),
        "updateDevice": of(device.pk, body={"name": "bench box", "accepted_contracts": [f"{robot.slug}@50"]}),
        "revokeDevice": of(device.pk, body={"reason": "sold"}),
    }


def _of_boxes(world: World) -> dict[str, Sample]:
    box = world.box
    rotated = rotation.rotation_payload(device_id=box.device.pk, new_key=SigningKey.generate(), at=NOON)
    return {
        "enrolDevice": of(body=enrol_envelope(world.pending.code, SigningKey.generate())),
        "rotateDeviceKey": of(box.device.pk, body=signatures.sign(rotated, box.key)),
        "postDeviceEvent": of(box.device.pk, body=box.heartbeat()),
        "listDeviceApprovals": of(box.device.pk),
        "confirmApproval": of(_approval(world.ready)),
    }


def _of_approvals(world: World) -> dict[str, Sample]:
    asked, ready = _approval(world.asked), _approval(world.ready)
    return {
        "listApprovals": of(),
        "getApproval": of(ready),
        "issueApproval": of(asked, body={"run_sheet_sha256": world.digest_of(world.asked)}),
        "declineApproval": of(asked, body={"reason": "not today"}),
        "revokeApproval": of(ready, body={"reason": "the floor is wet"}),
        "withdrawApproval": of(asked, body={"reason": "a better one is coming"}),
    }


def _of_sessions(world: World) -> dict[str, Sample]:
    picks = {
        "campaign": world.bench.campaign.pk,
        "device_id": world.box.device.pk,
        "candidates": [world.bench.good.pk, {"run": "walk-8", "step": 800}],
        "controls": [world.bench.control.pk],
        "reason": made.REASON,
    }
    return {
        "listTrialSessions": of(),
        "createTrialSession": of(body=picks),
        "getTrialSession": of(world.walked.pk),
        "cancelTrialSession": of(world.idle.pk),
        "fileSessionApprovals": of(world.idle.pk, body={"device_id": world.box.device.pk}),
    }


def _of_trials(world: World) -> dict[str, Sample]:
    file = {"name": "01-hang.csv", "stage": "hang", "bytes": 1000, "sha256": DIGEST}
    sheet = made.fresh(world.asked).run_sheet.document
    return {
        "listTrials": of(),
        "getTrial": of(world.judged.pk),
        "getRunSheet": of(world.asked.pk),
        "updateRunSheet": of(world.asked.pk, body={**sheet, "kd_scale": 1.1}),
        "createTrialLogUpload": of(world.stopped.pk, body={"files": [file]}),
        "uploadTrialLog": of(world.stopped.pk, body=world.bench.statement(world.stopped)),
        "getTrialLogSeries": of(world.judged.pk),
        "giveTrialVerdict": of(world.stopped.pk, body={"option": "iterate", "reason": "it sways"}),
    }


def _of_agents(world: World) -> dict[str, Sample]:
    attached = {"campaign": world.bench.campaign.pk, "name": "second planner"}
    return {
        "listAgentSessions": of(),
        "createAgentSession": of(body=attached),
        "listWakes": of(world.agent.pk),
        "ackWake": of(world.wake.pk),
    }


def _approval(trial: Any) -> str:
    return str(made.fresh(trial).approval_id)
