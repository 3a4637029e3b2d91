"""The approval token: what a person's consent is on the wire."""

from datetime import datetime

from devices import keys
from devices.models import Approval
from devices.subjects import Frozen
from driver.wire import canonical
from driver.wire.token import token_payload
from hub.accounts.actors import Actor
from hub.campaigns.models import Contract


def signed_token(
    approval: Approval, *, frozen: Frozen, contract: Contract, by: Actor, at: datetime, until: datetime
) -> str:
    """Make the envelope that lets one device run one document once; kept as this text, never remade."""
    checkpoint = approval.checkpoint
    payload = token_payload(
        approval_id=approval.pk,
        device_id=approval.device_id,
        robot=contract.robot.slug,
        contract=contract.name,
        checkpoint_id=checkpoint.pk,
        onnx_sha256=approval.onnx_sha256,
        onnx_bytes=checkpoint.bytes,
        run_sheet_sha256=frozen.sha256,
        issued_at=at,
        expires_at=until,
        approver=by.label,
        **frozen.claims,
    )
    return canonical.dumps(keys.sign(payload, at=at)).decode()
