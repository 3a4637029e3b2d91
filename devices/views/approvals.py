from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from devices.models import Approval
from devices.serializers import ApprovalAnswer, ApprovalQuery, IssueApproval, Reason
from devices.services import approvals, consent
from hub.accounts import permissions
from hub.accounts.api import HubView, operation
from hub.campaigns.services.lineage import LineageEnded
from hub.core.lifecycle import WrongState


class ApprovalView(HubView):
    """What the views of one approval share."""

    def find_approval(self, approval_id: str) -> Approval:
        return self.find(Approval.objects.visible_to(self.by).for_reading(), approval_id)

    def given(self) -> dict[str, Any]:
        """The body, where one was sent; nothing in it has to be said."""
        return self.body() if self.raw else {}


class Approvals(HubView):
    @operation("listApprovals", who="SR", query=ApprovalQuery, answer=ApprovalAnswer, listed=True)
    def get(self, request: Request) -> Response:
        """Consent requests on my accounts' devices, and what became of them."""
        query = self.query()
        seen = Approval.objects.visible_to(self.by).for_reading()
        if (states := query.pop("state", None)) is not None:
            seen = seen.standing(states, at=self.at)
        return self.page(seen.filter(**query))


class OneApproval(ApprovalView):
    @operation("getApproval", who="SR", answer=ApprovalAnswer)
    def get(self, request: Request, approval_id: str) -> Response:
        """One consent request and what became of it."""
        return self.answer(self.find_approval(approval_id))


class ApprovalIssue(ApprovalView):
    @operation(
        "issueApproval",
        who="S",
        body=IssueApproval,
        answer=ApprovalAnswer,
        problems=[
            consent.DigestMissing,
            permissions.RecentSignInNeeded,
            consent.SelfApprovalForbidden,
            WrongState,
            consent.DeviceNotActive,
            consent.ContractNotAccepted,
            LineageEnded,
            consent.SheetChanged,
        ],
    )
    def post(self, request: Request, approval_id: str) -> Response:
        """Consent to one run of the sheet with this digest. From here on nobody changes the sheet."""
        approval = self.find_approval(approval_id)
        consent.may_consent(approval, by=self.by, at=self.at)
        issued = consent.issue_approval(
            approval=approval,
            run_sheet_sha256=self.given().get("run_sheet_sha256"),
            by=self.by,
            at=self.at,
        )
        return self.answer(issued)


class ApprovalDecline(ApprovalView):
    @operation("declineApproval", who="S", body=Reason, answer=ApprovalAnswer, problems=[WrongState])
    def post(self, request: Request, approval_id: str) -> Response:
        """Say no to a request."""
        approval = self.find_approval(approval_id)
        permissions.may_decide(self.by, approval.device.owner)
        reason = self.given().get("reason", "")
        declined = approvals.decline_approval(approval=approval, reason=reason, by=self.by, at=self.at)
        return self.answer(declined)


class ApprovalRevoke(ApprovalView):
    @operation("revokeApproval", who="S", body=Reason, answer=ApprovalAnswer, problems=[WrongState])
    def post(self, request: Request, approval_id: str) -> Response:
        """Take consent back. What runs is asked to stop; only the robot can say that it has."""
        approval = self.find_approval(approval_id)
        permissions.may_decide(self.by, approval.device.owner)
        reason = self.given().get("reason", "")
        revoked = approvals.revoke_approval(approval=approval, reason=reason, by=self.by, at=self.at)
        return self.answer(revoked)


class ApprovalWithdraw(ApprovalView):
    @operation("withdrawApproval", who="SW", body=Reason, answer=ApprovalAnswer, problems=[WrongState])
    def post(self, request: Request, approval_id: str) -> Response:
        """Take a request back before anybody has answered it."""
        approval = self.find_approval(approval_id)
        permissions.may_plan(self.by, approval.device.owner)
        reason = self.given().get("reason", "")
        withdrawn = approvals.withdraw_approval(approval=approval, reason=reason, by=self.by, at=self.at)
        return self.answer(withdrawn)
