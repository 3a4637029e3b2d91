"""Ways into planning: a round's shortlist, by a person or an agent, and explicit picks."""

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from devices.models import Device
from devices.services.consent import ContractNotAccepted, DeviceNotActive
from hub.accounts import permissions
from hub.accounts.api import HubView, operation
from hub.accounts.models import Account
from hub.campaigns.models import Campaign, Round
from hub.campaigns.services.lineage import LineageEnded
from hub.campaigns.services.rounds import AlreadyDecided
from hub.core import paging
from hub.core.lifecycle import WrongState
from hub.core.problems import Problem, Unprocessable
from trials import picks, readings
from trials.bodies import CreateSession, NameDevice, SessionQuery, Shortlist
from trials.models import TrialSession
from trials.serializers import SessionAnswer, SessionDetail
from trials.services import filing, sessions
from trials.services.planning import PicksRefused, Plan

PLANNING: list[type[Problem]] = [
    PicksRefused,
    LineageEnded,
    DeviceNotActive,
    ContractNotAccepted,
    AlreadyDecided,
]


class PlanningView(HubView):
    """What the ways into planning share: whose the session becomes, and what the request's names mean."""

    def session(self, session: TrialSession) -> Response:
        return self.answer(readings.read_session(session, at=self.at))

    def round(self, round_id: str) -> Round:
        seen = Round.objects.visible_to(self.by)
        return self.find(seen.select_related("campaign__owner", "campaign__robot"), round_id)

    def plan(self, body: dict[str, Any], *, campaign: Campaign | None, picked_as: str) -> Plan:
        """The body as a plan. It was checked that it has a campaign or a device."""
        device = self.device(body.get("device_id"), owner=campaign.owner if campaign else None)
        owner = campaign.owner if campaign else device.owner  # type: ignore[union-attr]  # one of them is there
        permissions.may_plan(self.by, owner)
        return Plan(
            owner=owner,
            campaign=campaign,
            device=device,
            controls=self.picked(body, "controls", campaign),
            candidates=self.picked(body, picked_as, campaign),
            reason=body["reason"],
            tolerances=body.get("tolerances", ()),
            picked_as=picked_as,  # type: ignore[arg-type]  # one of the two names
        )

    def device(self, pk: str | None, *, owner: Account | None) -> Device | None:
        """A device of the session's owner; of another's it is none, whoever sees it."""
        if pk is None:
            return None
        seen = Device.objects.visible_to(self.by).select_related("owner", "robot")
        return self.find(seen.filter(owner=owner) if owner else seen, pk)

    def decided(self, round: Round) -> Response:
        """Plan the session of a round's shortlist, whoever shortlists it."""
        plan = self.plan(self.body(), campaign=round.campaign, picked_as="shortlist")
        return self.session(sessions.decide_round(round=round, plan=plan, by=self.by, at=self.at))

    def picked(self, body: dict[str, Any], field: str, campaign: Campaign | None) -> Any:
        return picks.find(body.get(field, ()), field=field, by=self.by, campaign=campaign)


class RoundDecide(PlanningView):
    @operation(
        "decideRound",
        who="S",
        body=Shortlist,
        answer=SessionDetail,
        status=201,
        problems=[*PLANNING, WrongState],
    )
    def post(self, request: Request, round_id: str) -> Response:
        """Shortlist a locked round: its session is planned, and consent asked for where one device fits."""
        round = self.round(round_id)
        permissions.may_decide(self.by, round.campaign.owner)
        return self.decided(round)


class RoundShortlist(PlanningView):
    @operation(
        "shortlistRound",
        who="W",
        body=Shortlist,
        answer=SessionDetail,
        status=201,
        problems=[*PLANNING, WrongState],
    )
    def post(self, request: Request, round_id: str) -> Response:
        """The same, by an agent. A person still consents to each trial."""
        round = self.round(round_id)
        permissions.may_plan(self.by, round.campaign.owner)
        return self.decided(round)


class Sessions(PlanningView):
    @operation("listTrialSessions", who="SR", query=SessionQuery, answer=SessionAnswer, listed=True)
    def get(self, request: Request) -> Response:
        """My accounts' sessions."""
        found = TrialSession.objects.visible_to(self.by).filter(**self.query())
        rows, cursor = paging.page(readings.with_trials(found), request)
        read = [readings.reading_of(row, list(row.trials.all()), past=(), at=self.at) for row in rows]
        items = SessionAnswer(read, many=True, context={"view": self}).data  # type: ignore[arg-type]
        return Response({"items": items, "next": cursor})

    @operation(
        "createTrialSession",
        who="SW",
        body=CreateSession,
        answer=SessionDetail,
        status=201,
        problems=[*PLANNING, sessions.NotShortlisted],
    )
    def post(self, request: Request) -> Response:
        """Plan a session from a decided round's shortlist, or from explicit picks. It consents to nothing."""
        body = self.body()
        round = self.round(body["round"]) if body.get("round") else None
        campaign = self.campaign(body, round)
        if campaign is None and not body.get("device_id"):
            raise Unprocessable(
                errors={"campaign": ["Name a campaign or a device: the session is its owner's."]}
            )
        plan = self.plan(body, campaign=campaign, picked_as="candidates")
        if round is None:
            return self.session(sessions.plan_session(plan=plan, by=self.by, at=self.at))
        if plan.picks:
            raise Unprocessable(errors={"round": ["Its shortlist is what is run: name no picks beside it."]})
        return self.session(sessions.replan_round(round=round, plan=plan, by=self.by, at=self.at))

    def campaign(self, body: dict[str, Any], round: Round | None) -> Campaign | None:
        if not body.get("campaign"):
            return round.campaign if round else None
        seen = Campaign.objects.visible_to(self.by).select_related("owner", "robot")
        campaign = self.find(seen, body["campaign"])
        if round is not None and round.campaign != campaign:
            raise Unprocessable(errors={"round": ["It is a round of another campaign."]})
        return campaign


class OneSession(PlanningView):
    @operation("getTrialSession", who="SR", answer=SessionDetail)
    def get(self, request: Request, session_id: str) -> Response:
        """One session: its order, its bracket, and every candidate beside the controls."""
        return self.session(self.find(_sessions(self), session_id))


class SessionCancel(PlanningView):
    @operation("cancelTrialSession", who="SW", answer=SessionDetail, problems=[sessions.SessionUnderWay])
    def post(self, request: Request, session_id: str) -> Response:
        """Call a session off: what is requested is withdrawn. A second time changes nothing."""
        session = self.find(_sessions(self), session_id)
        permissions.may_plan(self.by, session.owner)
        return self.session(sessions.cancel_session(session=session, by=self.by, at=self.at))


class SessionDevice(PlanningView):
    @operation(
        "fileSessionApprovals",
        who="SW",
        body=NameDevice,
        answer=SessionDetail,
        problems=[filing.SessionCancelled, filing.OnAnotherDevice, ContractNotAccepted, DeviceNotActive],
    )
    def post(self, request: Request, session_id: str) -> Response:
        """Name the device, and ask for consent to each trial that has no request. It can be repeated."""
        session = self.find(_sessions(self), session_id)
        permissions.may_plan(self.by, session.owner)
        device = self.device(self.body()["device_id"], owner=session.owner)
        filed = filing.file_approvals(session=session, device=device, by=self.by, at=self.at)  # type: ignore[arg-type]
        return self.session(filed)


def _sessions(view: HubView) -> Any:
    return TrialSession.objects.visible_to(view.by).select_related("owner", "device", "campaign")
