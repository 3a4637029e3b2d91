"""A signed log on its way: presigned, put into storage, recorded at the hub. Each step is on disk first."""

import json
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from driver import durable, logs, word
from driver.answers import HubRefused, HubUnreachable
from driver.box import Box
from driver.hub import BytesRefused, UrlExpired, UrlRefused
from driver.journal import OwedLog, Step

log = logging.getLogger("driver")

FRESH_URLS = 3  # in one pass; storage that expires them at once is out of order
A_DAY_S = 24 * 3600.0
RECORDED = "recorded.json"


class Stuck(Exception):
    """This log goes nowhere until a person has looked."""


class PutOff(Exception):
    """There is no room for it at the hub now."""


class Delivery:
    """The logs that the hub does not have yet, oldest first, one at a time."""

    def __init__(self, box: Box, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.box, self.monotonic = box, monotonic
        self._not_before: dict[str, float] = {}

    def sign(self) -> None:
        """Turn a stopped run into a log that is owed; the box is free for the next run."""
        run = self.box.journal.state.run
        if run is None or run.step is not Step.STOPPED:
            return
        word.keep_statement(self.box, run)
        owed = OwedLog(approval_id=run.approval_id, trial_id=run.trial_id)
        self.box.journal.change(run=None, logs=(*self.box.journal.state.logs, owed))

    def step(self) -> None:
        """
        Bring each owed log as far as it goes.

        :raises HubUnreachable: the rest waits for the next pass
        """
        for owed in self.box.journal.state.logs:
            if owed.stuck is None and self.monotonic() >= self._not_before.get(owed.approval_id, 0.0):
                self._bring(owed)

    def _bring(self, owed: OwedLog) -> None:
        try:
            while owed.step is not Step.RECORDED:
                owed = self._next(owed)
            self._forget(owed)
        except PutOff as error:
            log.error("the log of %s waits a day: %s", owed.trial_id, error)
            self._not_before[owed.approval_id] = self.monotonic() + A_DAY_S
        except Stuck as error:
            log.error("the log of %s is stuck: %s", owed.trial_id, error)
            current = self.box.journal.state.log_of(owed.approval_id) or owed
            self._change(replace(current, stuck=str(error)))
            self.box.journal.attend(f"the log of {owed.trial_id} is stuck: {error}")

    def _next(self, owed: OwedLog) -> OwedLog:
        try:
            return self._put(owed) if owed.step is Step.SIGNED else self._record(owed)
        except HubRefused as refused:
            if refused.status == 413:
                raise PutOff(str(refused)) from None
            raise Stuck(str(refused)) from None

    def _put(self, owed: OwedLog) -> OwedLog:
        folder = self.box.run_folder(owed.approval_id)
        files = word.payload_of(folder)["files"]
        try:
            if files:
                self._put_all(owed, folder, files)
        except HubRefused as refused:
            if refused.status != 409:
                raise
            log.info("no more files are taken for %s; the record decides: %s", owed.trial_id, refused)
        return self._change(replace(owed, step=Step.STORED))

    def _put_all(self, owed: OwedLog, folder: Path, files: list[dict[str, Any]]) -> None:
        declared = [{key: file[key] for key in ("name", "stage", "bytes", "sha256")} for file in files]
        for _ in range(FRESH_URLS):
            uploads = self.box.hub.create_trial_log_upload(owed.trial_id, declared)
            try:
                for file in files:
                    upload = next((each for each in uploads if each.name == file["name"]), None)
                    if upload is None:
                        raise HubUnreachable(f"the hub gave no URL for {file['name']}")
                    self.box.storage.put(upload.url, upload.headers, folder / file["name"])
            except UrlExpired:
                continue
            except (BytesRefused, UrlRefused) as error:
                raise Stuck(str(error)) from None
            return
        raise HubUnreachable("the storage refuses even fresh URLs")

    def _record(self, owed: OwedLog) -> OwedLog:
        folder = self.box.run_folder(owed.approval_id)
        try:
            answer = self.box.hub.upload_trial_log(owed.trial_id, word.statement_of(folder))
        except HubRefused as refused:
            if refused.status == 409 and refused.problem.get("same") is True:
                answer = refused.problem  # told before; the answer was lost
            elif refused.status == 422 and not owed.is_sent_again:
                return self._send_again(owed, folder, refused)
            else:
                raise
        durable.write(folder / RECORDED, json.dumps(answer).encode())
        return self._change(replace(owed, step=Step.RECORDED))

    def _send_again(self, owed: OwedLog, folder: Path, refused: HubRefused) -> OwedLog:
        """Storage may have kept other bytes than we sent. Where our own file changed, a person looks."""
        for file in word.payload_of(folder)["files"]:
            if logs.sha256(folder / file["name"]) != file["sha256"]:
                raise Stuck(f"{file['name']} is no longer what was signed: {refused}")
        return self._change(replace(owed, step=Step.SIGNED, is_sent_again=True))

    def _change(self, owed: OwedLog) -> OwedLog:
        with self.box.journal.lock:
            kept = self.box.journal.state.logs
            changed = tuple(owed if each.approval_id == owed.approval_id else each for each in kept)
            self.box.journal.change(logs=changed)
        return owed

    def _forget(self, owed: OwedLog) -> None:
        """The hub has it. The files stay for as long as the box config says."""
        with self.box.journal.lock:
            kept = self.box.journal.state.logs
            left = tuple(each for each in kept if each.approval_id != owed.approval_id)
            self.box.journal.change(logs=left)
        log.warning("log of %s recorded", owed.trial_id)
