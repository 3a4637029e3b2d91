"""After a crash, a power cut or a late answer to a start: never a stage again, always a stated end."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from driver import facts, logs, running, stages
from driver.accept import Accepted
from driver.box import Box
from driver.hub import Offer
from driver.journal import KEEP_USED, Run, StageRun, Step
from driver.orders import StageCall
from driver.permission import End
from driver.trial import stop
from driver.wire.sheet import check_sheet

log = logging.getLogger("driver")


def make_safe(box: Box) -> None:
    """First of all at a start: end what a stage left running, run its stop command once. Asks no network."""
    run = box.journal.state.run
    if run is None or run.step not in (Step.STAGE, Step.STAGE_ENDED):
        return
    log.error("the last run ended uncleanly in step %s; making the robot safe", run.step)
    stages.end_leftovers(run.approval_id, waits=box.waits)
    call = _last_call(box, run)
    if call is not None:
        running.make_safe(box, call)
    elif any(stage.status != "not_run" for stage in run.stages):
        box.journal.attend("the stage that was cut off has no table in the config: no stop command was run")


def end_run(box: Box) -> None:
    """End a run that this process did not carry out. Whatever step it was in, nothing of it runs again."""
    run = box.journal.state.run
    if run is None or run.step in (Step.STARTING, Step.STOPPED):
        return
    folder = box.run_folder(run.approval_id)
    ran = [stage for stage in run.stages if stage.status != "not_run"]
    for stage in ran[-1:]:
        logs.keep(folder, stage, settle_s=box.config.log.settle_s)
    stop(box, _why(run, ran))


def resolve_start(box: Box, offers: Sequence[Offer], *, in_hand: str | None) -> None:
    """
    Find out what became of a start whose answer never came.

    Where the hub still lists the approval as issued, nothing has started. Where it runs and this process has
    the trial in hand, the run goes on to its first stage's go; after a crash it ends.
    """
    run = box.journal.state.run
    if run is None or run.step is not Step.STARTING:
        return
    states = {offer.approval_id: offer.state for offer in offers}
    if states.get(run.approval_id) != "running":
        log.info("the start of %s did not reach the hub", run.trial_id)
        box.journal.change(run=None)
        return
    used = (*box.journal.state.used, run.approval_id)[-KEEP_USED:]
    box.journal.change(run=replace(run, step=Step.STARTED), used=used)
    if run.reason is not None:
        stop(box, End(run.stopped_by or "driver_stopped", run.reason))
    elif in_hand != run.approval_id:
        end_run(box)


def adopt(box: Box, offer: Offer) -> None:
    """End a run that the hub lists as running and this box knows nothing of. A person has looked before."""
    sheet: dict[str, Any] = dict(offer.run_sheet)
    check_sheet(sheet)
    folder = box.run_folder(offer.approval_id)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    logs.write_plan(folder, sheet=sheet)
    run = Run(
        approval_id=offer.approval_id,
        trial_id=sheet["trial_id"],
        step=Step.STAGE_ENDED,
        boot_id=facts.boot_id(),
        start="",
        stages=tuple(
            _found_stage(folder, n, stage["name"]) for n, stage in enumerate(sheet["stages"], start=1)
        ),
    )
    used = (*box.journal.state.used, run.approval_id)[-KEEP_USED:]
    box.journal.change(run=run, used=used)
    stop(box, End("driver_stopped", "the box lost its journal of this run"))


def _found_stage(folder: Path, n: int, name: str) -> StageRun:
    stage = StageRun(name=name, n=n, log="")
    path = folder / logs.file_name(stage)
    if not path.exists():
        return stage
    return replace(stage, log=str(path), status="aborted", t0_s=0.0, reason="the box lost its journal of it")


def _why(run: Run, ran: Sequence[StageRun]) -> End:
    where = (
        f"in stage {ran[-1].name}" if run.step is Step.STAGE else f"after stage {ran[-1].name}" if ran else ""
    )
    if run.boot_id != facts.boot_id():
        return End("power_loss", f"the box lost power {where or 'before the first stage'}")
    return End("driver_stopped", f"the daemon was ended {where or 'before the first stage'}")


def _last_call(box: Box, run: Run) -> StageCall | None:
    """The command of the stage that ran last, from the plan that lies beside its log."""
    ran = [stage for stage in run.stages if stage.status != "not_run"]
    if not ran or box.config.stage(ran[-1].name) is None:
        return None
    plan: dict[str, Any] = logs.read_plan(box.run_folder(run.approval_id))
    accepted = Accepted(
        approval_id=run.approval_id,
        trial_id=run.trial_id,
        token=plan["token"],
        sheet=plan["sheet"],
        contract=plan["contract"],
        onnx=box.state_dir / "checkpoints" / f"{plan['token']['checkpoint']['onnx_sha256']}.onnx",
    )
    return StageCall(
        accepted=accepted, stage=plan["sheet"]["stages"][ran[-1].n - 1], n=ran[-1].n, config=box.config
    )
