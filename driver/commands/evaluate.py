"""`trial-driver evaluate`: checkpoints over seeds in simulation, as the results of a round."""

import argparse
import json
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from driver.contract.document import Contract
    from driver.evaluate import Course

Gates = list[dict[str, Any]]


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("evaluate", help="measure checkpoints over seeds in simulation")
    parser.add_argument("checkpoints", nargs="+", type=Path, metavar="CHECKPOINT", help="ONNX files")
    parser.add_argument("--robot", required=True, type=Path, help="the robot file (TOML)")
    parser.add_argument(
        "--body", required=True, metavar="mujoco:…", help="the simulated body and its options"
    )
    parser.add_argument("--sidecar", type=Path, help="what the checkpoints leave open (TOML or JSON)")
    parser.add_argument(
        "--gates", type=Path, help="the round's gates (JSON); without, every metric is measured"
    )
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--judged", default="floor", metavar="STAGE")
    parser.add_argument("--hang", type=float, default=4.0, metavar="S", help="seconds in the ropes")
    parser.add_argument("--floor", type=float, default=10.0, metavar="S", help="seconds on the floor")
    parser.add_argument(
        "--teleop",
        action="append",
        default=[],
        metavar="S,VX,VY,WZ",
        help="a step of a third stage; repeatable",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(args: argparse.Namespace) -> int:
    from driver.bodies.base import BodyError
    from driver.contract.document import BadContract
    from driver.policy.inference import ModelFailed
    from driver.wire.robot import BadRobot

    try:
        course, gates = _course(args), _gates(args.gates)
        said = _measure(args, course, gates)
    except (BodyError, BadContract, BadRobot, ModelFailed, ValueError, OSError) as error:
        print(f"trial-driver evaluate: {error}", file=sys.stderr)
        return 1
    print(json.dumps(said, indent=1, allow_nan=False) if args.json else "\n".join(_table(said, gates)))
    return 0


def _measure(args: argparse.Namespace, course: "Course", gates: Gates) -> dict[str, Any]:
    from driver.evaluate import evaluate

    contracts = [_contract(path, args, course) for path in args.checkpoints]
    results = [
        evaluate(path, contract, course=course, gates=gates, seeds=args.seeds)
        for path, contract in zip(args.checkpoints, contracts, strict=True)
    ]
    return {"conditions": {**course.conditions(), "seeds": args.seeds}, "results": results}


def _course(args: argparse.Namespace) -> "Course":
    from driver.bodies.choose import simulated_options
    from driver.evaluate import Course
    from driver.wire.robot import robot_from_document

    return Course(
        robot=robot_from_document(tomllib.loads(args.robot.read_text())),
        body=simulated_options(args.body),
        judged=args.judged,
        hang_s=args.hang,
        floor_s=args.floor,
        teleop=tuple(_step(text) for text in args.teleop),
    )


def _step(text: str) -> tuple[float, float, float, float]:
    seconds, vx, vy, wz = (float(part) for part in text.split(","))
    return seconds, vx, vy, wz


def _contract(path: Path, args: argparse.Namespace, course: "Course") -> "Contract":
    from driver.contract.document import check_contract
    from driver.contract.onnx_file import read_contract
    from driver.contract.sidecar import parse_sidecar

    sidecar = parse_sidecar(args.sidecar.read_bytes(), name=args.sidecar.name) if args.sidecar else None
    return check_contract(
        read_contract(path, sidecar=sidecar, robot=course.robot.slug, joints=course.robot.joints)
    )


def _gates(path: Path | None) -> Gates:
    """The gates of a round, as a list or as `{"gates": […]}`; without a file, each metric once."""
    from driver.wire.vocabulary import METRICS

    if path is None:
        return [{"key": metric, "metric": metric} for metric in METRICS]
    said = json.loads(path.read_text())
    gates = said["gates"] if isinstance(said, dict) and "gates" in said else said
    if not isinstance(gates, list) or not all(isinstance(gate, dict) for gate in gates):
        raise ValueError(f"{path.name} is no list of gates")
    for gate in gates:
        if not {"key", "metric"} <= gate.keys():
            raise ValueError(f"{path.name}: a gate has no key or no metric")
    return gates


def _table(said: dict[str, Any], gates: Gates) -> list[str]:
    lines = ["under " + ", ".join(f"{key} {value}" for key, value in said["conditions"].items())]
    for result in said["results"]:
        lines.append(
            f"{result['checkpoint']}: {result['seeds_upright']} of {result['seeds_run']} seeds upright"
        )
        lines += [f"  {_gate_line(gate, result['measured'][gate['key']])}" for gate in gates]
    return lines


def _gate_line(gate: dict[str, Any], value: float | None) -> str:
    shown = "not measured" if value is None else f"{value:.3f}"
    bound = f"  ({gate['op']} {gate['threshold']:g})" if "threshold" in gate else ""
    return f"{gate['key']:24} {shown}{bound}"
