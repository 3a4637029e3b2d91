"""`trial-driver pack`: one ONNX file out of a model and the weights beside it."""

import argparse
import sys
from pathlib import Path


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("pack", help="fold a model's external weights into one file")
    parser.add_argument("model", type=Path, metavar="MODEL.onnx")
    parser.add_argument("-o", "--out", type=Path, help="where to write; default: MODEL.packed.onnx beside it")


def run(args: argparse.Namespace) -> int:
    from driver.contract.document import BadContract
    from driver.contract.onnx_file import pack
    from driver.wire import canonical

    out: Path = args.out or args.model.with_suffix(".packed.onnx")
    try:
        pack(args.model, out)
    except (BadContract, OSError) as error:
        print(f"trial-driver pack: {error}", file=sys.stderr)
        return 1
    print(f"{out}  {out.stat().st_size} bytes  sha256 {canonical.sha256_hex(out.read_bytes())}")
    return 0
