from trials.models.log import LogUpload, TrialLog, TrialLogFile
from trials.models.run_sheet import RunSheet
from trials.models.session import TrialSession
from trials.models.trial import SUBJECT_KIND, Trial
from trials.models.verdict import Verdict

__all__ = [
    "SUBJECT_KIND",
    "LogUpload",
    "RunSheet",
    "Trial",
    "TrialLog",
    "TrialLogFile",
    "TrialSession",
    "Verdict",
]
