"""From an approval that the hub lists to a run this box would do: all that is checked before it moves."""

import hashlib
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from driver import argv, hub, limits
from driver.config import Config
from driver.contract.document import BadContract, contract_name
from driver.contract.onnx_file import read_contract
from driver.hub import Offer, Storage
from driver.pins import Pins
from driver.wire import canonical, moments
from driver.wire.robot import Robot
from driver.wire.sheet import BadSheet, check_sheet, sheet_digest
from driver.wire.token import TokenRefused, accepts, verify_token

MIN_FREE = 600 * 2**20  # two logs as large as a log may be, and some air


class Refused(Exception):
    """This box will not run the approval; the sentence is what the hub is told."""


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """An approval that passed every check, with what its stages need."""

    approval_id: str
    trial_id: str
    token: Mapping[str, Any]
    sheet: Mapping[str, Any]
    contract: Mapping[str, Any]
    onnx: Path

    @property
    def digest(self) -> str:
        return str(self.token["run_sheet_sha256"])

    @property
    def latest_start(self) -> datetime:
        return moments.read(self.token["expires_at"])


@dataclass(frozen=True, kw_only=True)
class Inspector:
    """What the checks need to know about this box."""

    config: Config
    pins: Pins
    robot: Robot
    storage: Storage

    def accept(self, offer: Offer, *, used: Collection[str], now: datetime) -> Accepted:
        """
        Check an offer, cheapest first; the ONNX file is fetched only for a token that holds.

        :raises Refused: with the first reason
        :raises HubUnreachable: when the ONNX file cannot be had now
        """
        token = self._token(offer, used=used, now=now)
        sheet = self._sheet(offer, token)
        self._check_box(sheet)
        onnx = self._onnx(offer, token)
        contract = self._contract(offer, token, onnx)
        return Accepted(
            approval_id=offer.approval_id,
            trial_id=token["trial_id"],
            token=token,
            sheet=sheet,
            contract=contract,
            onnx=onnx,
        )

    def _token(self, offer: Offer, *, used: Collection[str], now: datetime) -> dict[str, Any]:
        """The listing is believed for the digests only until the bytes themselves are here."""
        try:
            return verify_token(
                offer.token,
                hub_keys=self.pins.keys,
                device_id=self.pins.device_id,
                approval_id=offer.approval_id,
                sheet_sha256=_digest(offer.run_sheet),
                onnx_sha256=offer.onnx_sha256,
                onnx_bytes=offer.bytes,
                accepted=self._accepted(offer),
                used=used,
                now=now,
            )
        except TokenRefused as refused:
            raise Refused(f"token ({refused.reason}): {refused}") from None

    def _accepted(self, offer: Offer) -> Collection[str]:
        """Every contract passes here when the box names none; whose it is is checked against the file."""
        payload = offer.token.get("payload")
        named = payload.get("contract") if isinstance(payload, dict) else None
        return [named] if isinstance(named, str) else []

    def _sheet(self, offer: Offer, token: Mapping[str, Any]) -> dict[str, Any]:
        try:
            check_sheet(offer.run_sheet)
        except BadSheet as error:
            raise Refused(f"run sheet: {error}") from None
        sheet: dict[str, Any] = dict(offer.run_sheet)
        bound = {
            "trial": (sheet["trial_id"], token["trial_id"]),
            "session": (sheet["session_id"], token["session_id"]),
            "position": (sheet["position"], token["position"]),
            "checkpoint": (sheet["checkpoint"]["id"], token["checkpoint"]["id"]),
            "ONNX digest": (sheet["checkpoint"]["onnx_sha256"], token["checkpoint"]["onnx_sha256"]),
            "contract": (sheet["checkpoint"]["contract"], token["contract"]),
        }
        for what, (in_sheet, in_token) in bound.items():
            if in_sheet != in_token:
                raise Refused(f"the {what} of sheet and token differ: {in_sheet}, {in_token}")
        return sheet

    def _check_box(self, sheet: Mapping[str, Any]) -> None:
        try:
            limits.check(sheet, self.config)
        except limits.OutsideLimits as error:
            raise Refused(str(error)) from None
        for stage in sheet["stages"]:
            command = self.config.stage(stage["name"])
            if command and (problem := argv.problem(command.command, self.config.folder)):
                raise Refused(f"stage {stage['name']}: {problem}")
        free = shutil.disk_usage(self.config.device.state_dir).free
        if free < MIN_FREE:
            raise Refused(f"{free // 2**20} MB are free in state_dir; a run needs {MIN_FREE // 2**20}")

    def _onnx(self, offer: Offer, token: Mapping[str, Any]) -> Path:
        """The file from the shelf, or fetched; its bytes are hashed either way."""
        wanted = token["checkpoint"]
        shelf = self.config.device.state_dir / "checkpoints"
        shelf.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = shelf / f"{wanted['onnx_sha256']}.onnx"
        if path.exists() and _sha256(path) == wanted["onnx_sha256"]:
            return path
        try:
            digest = self.storage.download(offer.url, path, size=wanted["bytes"])
        except (hub.UrlRefused, hub.BytesRefused) as error:
            raise Refused(str(error)) from None
        if digest != wanted["onnx_sha256"]:
            path.unlink()
            raise Refused("token (onnx_digest): the ONNX file is not the one that was consented to")
        return path

    def _contract(self, offer: Offer, token: Mapping[str, Any], onnx: Path) -> dict[str, Any]:
        """Read from the file, completed by what the hub lists: its name is under both signatures."""
        try:
            document = read_contract(
                onnx, sidecar=offer.contract, robot=self.robot.slug, joints=self.robot.joints
            )
        except BadContract as error:
            raise Refused(f"contract: {error}") from None
        if contract_name(document) != token["contract"]:
            raise Refused(f"the ONNX file's contract is {contract_name(document)}, not {token['contract']}")
        named, robot, rate_hz = self.config.device.contracts, token["robot"], document["rate_hz"]
        if robot != self.robot.slug:
            raise Refused(f"for robot {robot}; this box drives {self.robot.slug}")
        if named and not accepts(named, contract=token["contract"], robot=robot, rate_hz=rate_hz):
            raise Refused(f"contract {token['contract']} is not among this box's device.contracts")
        return document


def _digest(sheet: Mapping[str, Any]) -> str:
    try:
        return sheet_digest(dict(sheet))
    except canonical.NotStrict as error:
        raise Refused(f"run sheet: {error}") from None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
