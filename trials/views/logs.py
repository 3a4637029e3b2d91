"""A box's logs: where it may put them, its signed word on them, and what they look like."""

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from devices import statements
from devices.serializers import Envelope
from driver.wire.canonical import sha256_hex
from hub.accounts.api import operation
from hub.storage.s3 import ObjectMissing, StorageUnavailable
from hub.storage.services import NotReserved, OverQuota
from trials.bodies import OpenLogUpload, SeriesQuery
from trials.serializers import LogAnswer, SeriesAnswer, UploadsAnswer
from trials.services import log_series, log_uploads, logs
from trials.views.trials import TrialView


class TrialLogUploads(TrialView):
    @operation(
        "createTrialLogUpload",
        who="D",
        body=OpenLogUpload,
        answer=UploadsAnswer,
        status=201,
        problems=[log_uploads.NoLogNow, log_uploads.LogTooLarge, OverQuota, StorageUnavailable],
    )
    def post(self, request: Request, trial_id: str) -> Response:
        """A URL for each file of a log, bound to its length and sha256, for an hour."""
        trial = self.trial(trial_id)
        opened = log_uploads.open_log_upload(trial=trial, files=self.body()["files"], at=self.at)
        return self.answer({"files": opened})


class TrialLogRecord(TrialView):
    @operation(
        "uploadTrialLog",
        who="D",
        body=Envelope,
        answer=LogAnswer,
        status=201,
        problems=[
            statements.StatementInvalid,
            statements.WrongSignature,
            statements.NotBound,
            logs.AlreadyRecorded,
            log_uploads.NoLogNow,
            logs.BytesDiffer,
            ObjectMissing,
            NotReserved,
            StorageUnavailable,
        ],
    )
    def post(self, request: Request, trial_id: str) -> Response:
        """The device's signed word on what its command wrote: uploaded, missing or malformed. Once only."""
        trial = self.trial(trial_id)
        self.body()
        log = logs.record_log(trial=trial, envelope=self.parsed, by=self.by, at=self.at)
        return self.answer(log)


class TrialLogSeries(TrialView):
    @operation(
        "getTrialLogSeries",
        who="SR",
        query=SeriesQuery,
        answer=SeriesAnswer,
        problems=[log_series.NoLogYet, log_series.NotReadable, StorageUnavailable],
    )
    def get(self, request: Request, trial_id: str) -> Response:
        """The log as channels on the trial's own clock, least and greatest of each bucket."""
        trial = self.trial(trial_id)
        wanted = self.query()
        log = log_series.readable_log(trial)
        tag = _tag(log_series.digest_of(log), wanted)
        if tag in request.headers.get("If-None-Match", ""):
            return Response(status=304, headers={"ETag": tag})
        found = log_series.read_series(log, **wanted)
        response = self.answer({"trial": trial.pk, **found})
        response["ETag"] = tag
        return response


def _tag(digest: str, wanted: dict[str, Any]) -> str:
    """The same question about the same bytes has the same answer."""
    asked = "&".join(f"{name}={wanted[name]}" for name in sorted(wanted))
    return f'"{sha256_hex(f"{digest}?{asked}".encode())[:32]}"'
