"""Runs the policy's model: one thread, on the CPU, never for longer than a deadline."""

import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import onnxruntime

from driver.bodies.base import Array
from driver.contract import graph, onnx_file
from driver.contract.document import Contract
from driver.policy.observation import Feeds
from driver.wire import canonical

DEADLINE_S = 1.0
LOOK_EVERY_S = 0.1


class ModelFailed(Exception):
    """The model cannot be loaded or run."""


class Model:
    """
    An ONNX policy, loaded from bytes that were looked at before.

    :raises BadContract: where the file breaks a rule or its ports are not the contract's
    :raises ModelFailed: where the runtime does not take it
    """

    def __init__(self, path: Path, contract: Contract, *, sha256: str | None = None) -> None:
        self.contract = contract
        raw = graph.read_bytes(path)
        if sha256 is not None and canonical.sha256_hex(raw) != sha256:
            raise ModelFailed(f"{path.name} is not the file that was approved: its digest is another")
        ports = graph.read_ports(raw, name=path.name)
        onnx_file.check_ports(contract, ports)
        self._shapes = {name: (1,) * (ports.ranks[name] - 1) + (-1,) for name in contract.inputs}
        self._session = _session(raw)
        self._options = onnxruntime.RunOptions()
        self._deadline = _Deadline(self._options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._deadline.close()

    def action(self, feeds: Feeds) -> Array:
        """
        One number for each of the contract's joints, as the model says them.

        :raises ModelFailed: where it fails, or takes longer than the deadline
        """
        shaped = {name: values.reshape(self._shapes[name]) for name, values in feeds.items()}
        self._deadline.busy_since = time.monotonic()
        try:
            said = self._session.run([self.contract.output], shaped, self._options)[0]
        except Exception as error:  # noqa: BLE001  # the runtime raises classes of its own, made in C++
            raise ModelFailed(f"the policy failed: {str(error)[:200]}") from None
        finally:
            self._deadline.busy_since = None
        action: Array = np.asarray(said, dtype=float).reshape(-1)
        return action

    def warm_up(self) -> None:
        """Run once on zeros, so that no first run is slow and a model that cannot run is found out early."""
        zeros = {name: np.zeros(self.contract.width(name), np.float32) for name in self.contract.inputs}
        size = len(self.action(zeros))
        if size != len(self.contract.joints):
            raise ModelFailed(f"the policy gives {size} actions for {len(self.contract.joints)} joints")


def _session(raw: bytes) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(raw, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001  # as above
        raise ModelFailed(f"the policy cannot be loaded: {str(error)[:200]}") from None


class _Deadline:
    """Ends a run that lasts too long, from a thread that only looks at the clock."""

    def __init__(self, options: onnxruntime.RunOptions) -> None:
        self.busy_since: float | None = None
        self._options = options
        self._closed = threading.Event()
        threading.Thread(target=self._watch, daemon=True, name="model-deadline").start()

    def _watch(self) -> None:
        while not self._closed.wait(LOOK_EVERY_S):
            since = self.busy_since
            if since is not None and time.monotonic() - since > DEADLINE_S:
                self._options.terminate = True

    def close(self) -> None:
        self._closed.set()
