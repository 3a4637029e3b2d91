"""`trial-driver stage`: the built-in stage command. One order on stdin, one log, one last line on stdout."""

import argparse
import sys
from contextlib import closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from driver.policy.ending import Ending
    from driver.policy.guard import Guard
    from driver.policy.order import StageOrder

MAX_ORDER = 4 * 1024 * 1024


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "stage",
        help="run one stage of a trial on a body (the daemon starts this and writes its order on stdin)",
    )
    parser.add_argument(
        "--body",
        required=True,
        metavar="KIND:…",
        help="mujoco:robot.xml?latency_ticks=1, or python:module:factory",
    )


def run(args: argparse.Namespace) -> int:
    from driver.policy.ending import say
    from driver.policy.guard import Guard

    guard = Guard()
    guard.install()
    ending = _run(args.body, guard)
    guard.leave_if_orphaned()
    say(ending, sys.stdout)
    return 0 if ending.as_planned else 1


def _run(body: str, guard: "Guard") -> "Ending":
    """Everything that can be refused is refused before the body is touched."""
    from driver.bodies.base import BodyError
    from driver.contract.document import BadContract
    from driver.policy.commands import NoSource
    from driver.policy.ending import refused
    from driver.policy.inference import ModelFailed
    from driver.policy.order import BadOrder, read_order

    try:
        return _stage(read_order(sys.stdin.buffer.read(MAX_ORDER)), body, guard)
    except (BadOrder, BadContract, ModelFailed, NoSource, BodyError) as error:
        return refused(str(error))


def _stage(order: "StageOrder", name: str, guard: "Guard") -> "Ending":
    from driver.bodies.base import BodyError
    from driver.bodies.choose import body_from
    from driver.policy.commands import source_for
    from driver.policy.ending import failed
    from driver.policy.inference import Model
    from driver.policy.logfile import LogFile
    from driver.policy.runner import Parts, run_stage

    with Model(order.onnx, order.contract, sha256=order.onnx_sha256) as model:
        model.warm_up()
        body = body_from(name, seed=order.seed)
        if order.simulated and not body.simulated:
            raise BodyError("the box says that it is simulated, and this body is not")
        with closing(source_for(order)) as source, LogFile(order.log, may_wait=body.simulated) as log:
            parts = Parts(body=body, policy=model, source=source, open_log=log.open, asked=guard.ask)
            ending = run_stage(order, parts)
    return ending if log.error is None else failed(ending, f"the log cannot be written: {log.error}")
