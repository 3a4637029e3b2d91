"""Checkpoints: declared, uploaded past the API, then verified from the hub's own copy of the bytes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from driver.contract.document import BadContract, contract_name
from driver.contract.onnx_file import read_contract
from driver.contract.sidecar import contract_table
from hub.accounts.actors import Actor
from hub.audit import services as audit
from hub.campaigns.models import Campaign, Checkpoint, Contract, Robot, TrainingRun
from hub.campaigns.services import campaigns, lineage
from hub.core import ids
from hub.core.problems import Conflict, TooLarge, Unprocessable
from hub.storage import s3
from hub.storage import services as storage
from hub.storage.models import StoredObject


class StepTaken(Conflict):
    slug = "checkpoint-step-taken"
    title = "The run has a verified checkpoint of that step."


class CheckpointTooLarge(TooLarge):
    slug = "checkpoint-too-large"
    title = "A checkpoint is not that large."


class CheckpointRefused(Unprocessable):
    slug = "checkpoint-refused"
    title = "The uploaded file is not what was declared, or no robot could run it."


@dataclass(frozen=True, kw_only=True)
class Declared:
    """What an uploader says of a checkpoint before its bytes are there."""

    run: str
    step: int
    bytes: int
    onnx_sha256: str
    sidecar: Mapping[str, Any] | None = None
    parent: str | None = None


@dataclass(frozen=True, kw_only=True)
class Upload:
    checkpoint: Checkpoint
    put: s3.Presigned


def create_checkpoint(*, campaign: Campaign, declared: Declared, by: Actor, at: datetime) -> Upload:
    """
    Make room for a checkpoint, and a URL that takes exactly its bytes.

    One that is not verified yet is declared anew: an upload that never came or was refused is no obstacle.

    :raises CheckpointTooLarge, OverQuota: when there is no room
    :raises StepTaken: for a step that is verified, saying whether it has the same bytes
    :raises LineageEnded: for a parent that nothing may come from any more
    :raises Unprocessable: for a parent outside the campaign, and for a sidecar with unknown keys
    """
    _check_sidecar(declared.sidecar)
    checkpoint = _declare(campaign, declared, by=by, at=at)
    put = s3.presign_put(_object(checkpoint).key, size=declared.bytes, sha256=declared.onnx_sha256, at=at)
    return Upload(checkpoint=checkpoint, put=put)


def complete_checkpoint(*, checkpoint: Checkpoint, by: Actor, at: datetime) -> Checkpoint:
    """
    Verify an upload: take a copy that no URL can write, hash it, and read its contract. A second time changes
    nothing. A file that is refused gives its room back; declare the step again to send another.

    :raises NotReserved: when nothing was declared, or its time is over
    :raises ObjectMissing: before the upload
    :raises CheckpointRefused: naming what is wrong with the file
    """
    if checkpoint.verified_at is not None:
        return checkpoint
    upload = checkpoint.object
    if upload is None or upload.state != StoredObject.State.RESERVED:
        raise storage.NotReserved("Declare the checkpoint again; there is no open upload for it.")
    with _own_copy(upload.key, f"{_folder(checkpoint.step)}/{ids.new_id('obj')}/policy.onnx") as kept:
        try:
            document = _read(kept, checkpoint)
        except CheckpointRefused as why:
            _refuse(checkpoint, upload, why, by=by, at=at)
            raise
        return _keep(checkpoint, upload, kept, document, by=by, at=at)


@transaction.atomic
def _declare(campaign: Campaign, declared: Declared, *, by: Actor, at: datetime) -> Checkpoint:
    campaign = campaigns.locked(campaign)
    run, _ = TrainingRun.objects.get_or_create(
        campaign=campaign, name=declared.run, defaults={"created_at": at}
    )
    if there := run.checkpoints.filter(step=declared.step).first():
        _make_way(there, declared, at=at)
    said = {
        "parent": _parent(campaign, declared.parent),
        "bytes": declared.bytes,
        "onnx_sha256": declared.onnx_sha256,
        "sidecar": declared.sidecar,
        "object": _room(campaign, declared, at=at),
    }
    checkpoint, _ = run.checkpoints.update_or_create(
        step=declared.step, defaults=said, create_defaults={**said, "created_at": at}
    )
    sentence = f"declared {checkpoint} for {campaign.name}, {declared.bytes} bytes."
    _record("checkpoint.declared", checkpoint, campaign, by=by, at=at, sentence=sentence)
    return checkpoint


def _make_way(checkpoint: Checkpoint, declared: Declared, *, at: datetime) -> None:
    if checkpoint.verified_at is not None:
        raise StepTaken(
            f"{checkpoint} is verified already.",
            checkpoint=checkpoint.pk,
            onnx_sha256=checkpoint.onnx_sha256,
            same=checkpoint.onnx_sha256 == declared.onnx_sha256,
        )
    if checkpoint.object is not None:
        storage.release(obj=checkpoint.object, at=at)


def _room(campaign: Campaign, declared: Declared, *, at: datetime) -> StoredObject:
    if declared.bytes > settings.CHECKPOINT_BYTES:
        cap = settings.CHECKPOINT_BYTES
        raise CheckpointTooLarge(f"At most {cap} bytes are taken.", bytes=declared.bytes, cap=cap)
    key = f"{_folder(declared.step)}/incoming/{ids.new_id('upl')}/policy.onnx"
    wanted = storage.Wanted(key=key, bytes=declared.bytes, sha256=declared.onnx_sha256)
    [room] = storage.reserve(owner=campaign.owner, wanted=[wanted], at=at)
    return room


def _parent(campaign: Campaign, wanted: str | None) -> Checkpoint | None:
    if wanted is None:
        return None
    known = Checkpoint.objects.verified().filter(run__campaign=campaign).select_related("run")
    parent = known.filter(pk=wanted).first()
    if parent is None:
        raise Unprocessable(errors={"parent": [lineage.NOT_VERIFIED]})
    lineage.check_goes_on(parent)
    return parent


def _check_sidecar(sidecar: Mapping[str, Any] | None) -> None:
    try:
        contract_table(sidecar or {})
    except BadContract as bad:
        errors = {f"sidecar.{path}": said for path, said in bad.errors.items()}
        raise Unprocessable("The sidecar does not fit.", errors=errors) from bad


@contextmanager
def _own_copy(source: str, target: str) -> Iterator[str]:
    """The hub's own copy of an upload; deleted again when the work on it does not end well."""
    s3.copy(source, target)
    try:
        yield target
    except BaseException:
        with suppress(s3.StorageUnavailable):
            s3.delete(target)
        raise


def _read(kept: str, checkpoint: Checkpoint) -> dict[str, Any]:
    """Hash the copy and read its contract, against what was declared and the robot it is for."""
    try:
        with s3.temporary(kept, cap=checkpoint.bytes) as (path, found):
            if found != s3.Digest(checkpoint.onnx_sha256, checkpoint.bytes):
                said = f"{found.bytes} bytes with sha256 {found.sha256} are stored."
                raise CheckpointRefused(errors={"onnx_sha256": [said]})
            robot = checkpoint.campaign.robot.described
            return read_contract(path, sidecar=checkpoint.sidecar, robot=robot.slug, joints=robot.joints)
    except s3.ObjectTooLarge as error:
        raise CheckpointRefused(errors={"bytes": [f"More than {checkpoint.bytes} are stored."]}) from error
    except BadContract as bad:
        raise CheckpointRefused(errors=bad.errors) from bad


@transaction.atomic
def _keep(
    checkpoint: Checkpoint,
    upload: StoredObject,
    kept: str,
    document: Mapping[str, Any],
    *,
    by: Actor,
    at: datetime,
) -> Checkpoint:
    checkpoint, campaign = _locked(checkpoint)
    if checkpoint.verified_at is not None:  # somebody completed it meanwhile
        storage.forget(kept, at=at)
        return checkpoint
    _check_same(checkpoint, upload)
    checkpoint.object = storage.complete(obj=upload, at=at, key=kept)
    checkpoint.contract = _contract(campaign.robot, document, at=at)
    checkpoint.verified_at = at
    checkpoint.save(update_fields=["object", "contract", "verified_at"])
    sentence = f"uploaded {checkpoint} to {campaign.name}; its contract is {checkpoint.contract}."
    _record("checkpoint.verified", checkpoint, campaign, by=by, at=at, sentence=sentence)
    return checkpoint


@transaction.atomic
def _refuse(
    checkpoint: Checkpoint, upload: StoredObject, why: CheckpointRefused, *, by: Actor, at: datetime
) -> None:
    checkpoint, campaign = _locked(checkpoint)
    _check_same(checkpoint, upload)
    storage.release(obj=upload, at=at)
    checkpoint.object = None
    checkpoint.save(update_fields=["object"])
    errors = why.members["errors"]
    sentence = f"uploaded a file for {checkpoint} of {campaign.name} that was refused."
    _record("checkpoint.refused", checkpoint, campaign, by=by, at=at, sentence=sentence, errors=errors)


def _locked(checkpoint: Checkpoint) -> tuple[Checkpoint, Campaign]:
    campaign = campaigns.locked(checkpoint.campaign)
    return Checkpoint.objects.select_related("run", "object").get(pk=checkpoint.pk), campaign


def _check_same(checkpoint: Checkpoint, upload: StoredObject) -> None:
    if checkpoint.object_id != upload.pk:
        raise storage.NotReserved("Another upload was declared for this checkpoint meanwhile.")


def _contract(robot: Robot, document: Mapping[str, Any], *, at: datetime) -> Contract:
    contract, _ = Contract.objects.get_or_create(
        robot=robot,
        name=contract_name(document),
        defaults={"document": dict(document), "created_at": at},
    )
    return contract


def _object(checkpoint: Checkpoint) -> StoredObject:
    if checkpoint.object is None:
        raise LookupError(f"{checkpoint} has no object")
    return checkpoint.object


def _folder(step: int) -> str:
    return f"checkpoints/step_{step}"


def _record(
    action: str,
    checkpoint: Checkpoint,
    campaign: Campaign,
    *,
    by: Actor,
    at: datetime,
    sentence: str,
    **data: object,
) -> None:
    audit.record(
        action,
        by=by,
        account_id=campaign.owner_id,
        target=checkpoint,
        at=at,
        sentence=f"{by.label} {sentence}",
        **data,
    )
