from collections.abc import Sequence
from datetime import datetime

from hub.jobs.registry import job
from hub.storage import s3
from trials.models import TrialLog


@job("trials.drop_copies")
def drop_copies(*, log_id: str, keys: Sequence[str], at: datetime) -> None:
    """Delete the copies that were taken for a log which was then not recorded."""
    if not TrialLog.objects.filter(pk=log_id).exists():
        for key in keys:
            s3.delete(key)
