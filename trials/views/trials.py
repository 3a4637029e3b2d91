"""Trials as records: what was planned, what ran, what it says, and what a person decided."""

from rest_framework.request import Request
from rest_framework.response import Response

from hub.accounts import permissions
from hub.accounts.api import HubView, operation
from hub.core import paging
from trials import readings
from trials.bodies import GiveVerdict, TrialQuery, UpdateRunSheet
from trials.models import RunSheet, Trial
from trials.readings import TrialLine
from trials.rules.verdicts import Asked
from trials.serializers import RunSheetAnswer, TrialAnswer, TrialLineAnswer, VerdictAnswer
from trials.services import run_sheets, verdicts


class TrialView(HubView):
    def trial(self, trial_id: str) -> Trial:
        seen = readings.in_order(Trial.objects.visible_to(self.by))
        return self.find(
            seen.select_related("session__owner", "session__campaign", "session__device"), trial_id
        )


class Trials(HubView):
    @operation("listTrials", who="SRD", query=TrialQuery, answer=TrialLineAnswer, listed=True)
    def get(self, request: Request) -> Response:
        """My trials, by status, session, campaign, or an approval about one; a device sees its own."""
        wanted = self.query()
        found = Trial.objects.visible_to(self.by).with_status(at=self.at)
        if approval_id := wanted.pop("approval_id", None):
            found = found.about(approval_id)
        rows, cursor = paging.page(readings.with_what_is_read(found.filter(**wanted)), request)
        lines = [TrialLine(row, row.status) for row in rows]  # type: ignore[attr-defined]  # noted by with_status
        items = TrialLineAnswer(lines, many=True, context={"view": self}).data  # type: ignore[arg-type]
        return Response({"items": items, "next": cursor})


class OneTrial(TrialView):
    @operation("getTrial", who="SRD", answer=TrialAnswer)
    def get(self, request: Request, trial_id: str) -> Response:
        """One trial, judged now against what was written down before it ran."""
        return self.answer(readings.read_trial(self.trial(trial_id), at=self.at))


class TrialRunSheet(TrialView):
    @operation("getRunSheet", who="SR", answer=RunSheetAnswer)
    def get(self, request: Request, trial_id: str) -> Response:
        """What will be done, and the digest that consent to it names."""
        return self.answer(RunSheet.objects.get(trial=self.trial(trial_id)))

    @operation(
        "updateRunSheet",
        who="SW",
        body=UpdateRunSheet,
        answer=RunSheetAnswer,
        problems=[run_sheets.RunSheetLocked],
    )
    def patch(self, request: Request, trial_id: str) -> Response:
        """Change a draft: an absent key is unchanged, null clears an optional one."""
        trial = self.trial(trial_id)
        permissions.may_plan(self.by, trial.session.owner)
        sheet = run_sheets.update_run_sheet(trial=trial, changes=self.body(), by=self.by, at=self.at)
        return self.answer(sheet)


class TrialVerdict(TrialView):
    @operation(
        "giveTrialVerdict",
        who="S",
        body=GiveVerdict,
        answer=VerdictAnswer,
        status=201,
        problems=[permissions.RecentSignInNeeded, verdicts.NoVerdict],
    )
    def post(self, request: Request, trial_id: str) -> Response:
        """Decide what a run showed: promote, iterate or stop, once and with a reason. Only a person can."""
        trial = self.trial(trial_id)
        permissions.may_decide(self.by, trial.session.owner)
        body = self.body()
        reason = body.pop("reason")
        verdict = verdicts.give_verdict(
            trial=trial, asked=Asked(**body), reason=reason, by=self.by, at=self.at
        )
        return self.answer(verdict)
