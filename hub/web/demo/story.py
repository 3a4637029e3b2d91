"""The product's main job, step by step, over the same API and the same driver that a team uses."""

import hashlib
import json
import sys
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hub.web.demo import table
from hub.web.demo.box import write_config
from hub.web.demo.cast import CANDIDATES, CONTROL, STILT, Cast, Shipped
from hub.web.demo.founder import DemoError, Founder
from hub.web.demo.processes import call_driver, driver

SEEDS = 8
RUN_WITHIN = 120.0
LOOK_EVERY = 0.2

Say = Callable[[str], None]

__all__ = ["CANDIDATES", "CONTROL", "Say", "Story"]


@dataclass
class Story:
    """One telling of the main job. Each step is a method, in the order of `tell`."""

    founder: Founder
    origin: str
    folder: Path
    say: Say
    seeds: int = SEEDS
    cast: Cast = STILT

    def tell(self) -> str:
        """
        Go the whole way from a robot file to a verdict; gives the session's id.

        :raises DemoError: when a step does not hold
        """
        self.describe_robot()
        checkpoints = self.upload_checkpoints()
        round_id = self.measure_in_simulation(checkpoints)
        device = self.enrol_box(checkpoints)
        session = self.plan(round_id, device)
        self.run_all(session)
        self.report(session)
        self.decide(session)
        return session

    def describe_robot(self) -> None:
        self.say("A robot and a campaign")
        robot = self.founder.post("/robots", tomllib.loads(self.cast.robot.read_text()))
        self.robot = robot["id"]
        named = f"{robot['name'].partition(',')[0]} walks"
        self.campaign = self.founder.post("/campaigns", {"robot": self.robot, "name": named})["id"]

    def upload_checkpoints(self) -> dict[str, dict[str, Any]]:
        """The control first; keyed by checkpoint id."""
        found = {}
        for shipped in [self.cast.control, *self.cast.candidates]:
            checkpoint = self.upload(shipped)
            self.say(f"  {shipped.run} step {shipped.step}: {shipped.why}, {checkpoint['contract']['name']}")
            found[checkpoint["id"]] = {**checkpoint, "shipped": shipped}
        return found

    def upload(self, shipped: Shipped) -> dict[str, Any]:
        content = shipped.file.read_bytes()
        declared = {
            "run": shipped.run,
            "step": shipped.step,
            "bytes": len(content),
            "onnx_sha256": hashlib.sha256(content).hexdigest(),
            "sidecar": shipped.completing,
        }
        made = self.founder.post(f"/campaigns/{self.campaign}/checkpoints", declared)
        self.founder.put_file(made["upload"], shipped.file)
        return self.founder.post(f"/checkpoints/{made['checkpoint']['id']}/complete")

    def measure_in_simulation(self, checkpoints: dict[str, dict[str, Any]]) -> str:
        self.say(
            f"Measured in simulation without latency, {self.seeds} seeds each, and locked with its gates"
        )
        conditions, measured = self.evaluate([checkpoint["shipped"] for checkpoint in checkpoints.values()])
        gates = [{**gate, "conditions": conditions} for gate in self.cast.gates]
        kept = ("seeds_run", "seeds_upright", "measured")
        results = [
            {"checkpoint": checkpoint, **{key: said[key] for key in kept}}
            for checkpoint, said in zip(checkpoints, measured, strict=True)
        ]
        content = {"gates": gates, "results": results}
        made = self.founder.post(f"/campaigns/{self.campaign}/rounds", content)
        locked = self.founder.post(f"/rounds/{made['id']}/lock")
        for line in table.sim(locked):
            self.say(line)
        self.control, *self.candidates = checkpoints
        return str(made["id"])

    def evaluate(self, policies: list[Shipped]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The conditions, and each policy's numbers. Those that share a sidecar are measured in one call."""
        conditions: dict[str, Any] = {}
        found: dict[Shipped, dict[str, Any]] = {}
        for sidecar in dict.fromkeys(policy.sidecar for policy in policies):
            alike = [policy for policy in policies if policy.sidecar == sidecar]
            said = self.simulate(alike, sidecar)
            conditions = said["conditions"]
            found |= dict(zip(alike, said["results"], strict=True))
        return conditions, [found[policy] for policy in policies]

    def simulate(self, policies: list[Shipped], sidecar: Path | None) -> dict[str, Any]:
        gates = self.folder / "gates.json"
        gates.write_text(json.dumps(list(self.cast.gates)))
        printed = call_driver(
            "evaluate",
            *(str(policy.file) for policy in policies),
            f"--robot={self.cast.robot}",
            *([f"--sidecar={sidecar}"] if sidecar else []),
            f"--body={self.cast.simulated}",
            f"--gates={gates}",
            f"--seeds={self.seeds}",
            "--json",
        )
        said: dict[str, Any] = json.loads(printed)
        return said

    def enrol_box(self, checkpoints: dict[str, dict[str, Any]]) -> str:
        self.say(f"A simulated robot box enrols; its body differs from the simulation: {self.cast.body}")
        contracts = sorted({checkpoint["contract"]["name"] for checkpoint in checkpoints.values()})
        body = {"robot": self.robot, "name": "bench", "accepted_contracts": contracts}
        made = self.founder.post("/devices", body)
        self.config = self.box(self.cast.body)
        call_driver("enroll", made["code"], f"--hub={self.origin}", config=self.config)
        return str(made["device_id"])

    def box(self, body: str) -> Path:
        """The box's config, with a body of these options."""
        return write_config(
            self.folder / "box", origin=self.origin, python=sys.executable, body=body, cast=self.cast
        )

    def plan(self, round_id: str, device: str) -> str:
        decided = self.founder.post(
            f"/rounds/{round_id}/decide",
            {
                "shortlist": self.candidates,
                "controls": [self.control],
                "device_id": device,
                "reason": "Is one of them better than what runs today?",
            },
        )
        self.say("The session, in the order written down before anything runs")
        for trial in decided["trials"]:
            self.say(f"  {table.name_of(trial)}")
        return str(decided["id"])

    def run_all(self, session: str) -> None:
        self.say("Consent is given one by one; the box runs what is permitted and signs its logs")
        self.run(self.founder.get(f"/trial-sessions/{session}")["trials"], config=self.config)

    def run(self, trials: list[dict[str, Any]], *, config: Path) -> None:
        """Let one daemon run these trials, each with a consent of its own."""
        with driver(config=config, log=self.folder / "driver.log") as process:
            for trial in trials:
                self.consent(trial)
                self.say(f"  {table.run_of(self.wait_for_log(trial, process))}")

    def consent(self, trial: dict[str, Any]) -> None:
        """What a founder does on the consent page: read the sheet, then permit that sheet and no other."""
        sheet = self.founder.get(f"/trials/{trial['id']}/run-sheet")
        self.founder.post(
            f"/approvals/{trial['approval']['id']}/issue", {"run_sheet_sha256": sheet["digest"]}
        )

    def wait_for_log(self, trial: dict[str, Any], process: Any) -> dict[str, Any]:
        deadline = time.monotonic() + RUN_WITHIN
        while time.monotonic() < deadline:
            seen = self.founder.get(f"/trials/{trial['id']}")
            if seen["log"]["state"] != "awaiting":
                return seen
            if process.poll() is not None:
                break
            time.sleep(LOOK_EVERY)
        raise DemoError(f"No log came for trial {trial['position']}.\n{self.driver_said()}")

    def driver_said(self) -> str:
        return (self.folder / "driver.log").read_text(errors="replace")[-3000:]

    def report(self, session: str) -> None:
        said = self.founder.get(f"/trial-sessions/{session}")
        trials = [self.founder.get(f"/trials/{trial['id']}") for trial in said["trials"]]
        for line in table.bracket(said["bracket"]):
            self.say(line)
        for trial in trials:
            if trial["role"] == "candidate":
                for line in table.criteria(trial):
                    self.say(line)

    def decide(self, session: str) -> None:
        """Judge the candidate that the session is about: promote where everything allows it, else iterate."""
        said = self.founder.get(f"/trial-sessions/{session}")
        trial = self.trial_of(said, self.cast.candidates[0])
        failed = [judged["id"] for judged in trial["criteria"] if judged["result"] == "FAIL"]
        if said["bracket"]["holds"] and not failed:
            option, reason = "promote", "The bracket holds and no criterion fails."
        else:
            option, reason = "iterate", "The session does not show that it is better."
        self.founder.post(f"/trials/{trial['id']}/verdict", {"option": option, "reason": reason})
        self.say(f"Verdict on {table.name_of(trial)}: {option}. {reason}")

    def trial_of(self, session: dict[str, Any], shipped: Shipped) -> dict[str, Any]:
        wanted = (shipped.run, shipped.step)
        (found,) = [
            trial
            for trial in session["trials"]
            if (trial["checkpoint"]["run"], trial["checkpoint"]["step"]) == wanted
        ]
        return self.founder.get(f"/trials/{found['id']}")
