"""
A prepared hub: an org and what it may own, in the states that the operations need, and a stranger's own.

It is made once a module, through the services, inside a transaction that nobody commits.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.apps import apps
from django.db import models
from django.utils import timezone

from devices.models import Approval
from devices.services import devices as device_services
from devices.services.enrolment import NewDevice
from hub.accounts import services as accounts
from hub.accounts.models import Account, User
from hub.accounts.services import NewKey
from hub.campaigns.models import AgentSession, Campaign, Checkpoint, Round, Wake
from hub.campaigns.services import agents
from tests import factories
from tests.devices import factories as devices
from tests.devices.factories import Box
from tests.hub.campaigns import factories as campaigns
from tests.trials import factories as made
from tests.trials.factories import Bench
from trials.models import Trial, TrialSession

HOUR = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class People:
    """Those of the lab, one in each role."""

    owner: User
    member: User
    operator: User
    lab: Account


@dataclass(frozen=True, kw_only=True)
class Keys:
    reader: NewKey
    writer: NewKey
    revoked: NewKey
    expired: NewKey
    spare: NewKey


@dataclass(frozen=True, kw_only=True)
class Hers:
    """A stranger, and what she owns."""

    person: User
    campaign: Campaign
    checkpoint: Checkpoint
    round: Round
    key: NewKey
    box: Box


@dataclass(frozen=True, kw_only=True)
class World:
    """
    `walked` is a session of which the control and the candidate `good` have run and `bad` has stopped without
    a word on its log; the last control is ready to start. `idle` is one that waits for consent.
    """

    at: datetime
    people: People
    keys: Keys
    bench: Bench
    other_box: Box
    revoked_box: Box
    pending: NewDevice
    agent: AgentSession
    wake: Wake
    walked: TrialSession
    idle: TrialSession
    draft_round: Round
    open_round: Round
    hers: Hers
    lab_ids: frozenset[str]

    @property
    def lab(self) -> Account:
        return self.people.lab

    @property
    def box(self) -> Box:
        return self.bench.box

    @cached_property
    def walked_trials(self) -> list[Trial]:
        return made.trials_of(self.walked)

    @cached_property
    def idle_trials(self) -> list[Trial]:
        return made.trials_of(self.idle)

    @property
    def judged(self) -> Trial:
        """A control with a log of its own bytes."""
        return self.walked_trials[0]

    @property
    def stopped(self) -> Trial:
        """A candidate whose run has stopped, without a log."""
        return self.walked_trials[2]

    @property
    def ready(self) -> Trial:
        return self.walked_trials[3]

    @property
    def asked(self) -> Trial:
        """One that waits for consent, the first of its session."""
        return self.idle_trials[0]

    def digest_of(self, trial: Trial) -> str:
        return made.fresh(trial).run_sheet.digest

    @cached_property
    def her_ids(self) -> frozenset[str]:
        return all_ids() - self.lab_ids


def build() -> World:
    at = timezone.now()
    people = _people()
    bench = made.bench(people.lab, people.owner)
    agent = agents.create_agent_session(
        campaign=bench.campaign, name="planner", by=factories.actor(people.owner), at=at
    )
    walked = _walked(bench, at=at - HOUR)
    others = _other_things(people, bench, at=at)
    idle = bench.session(at=at, device=bench.device)
    lab_ids = all_ids()
    return World(
        at=at,
        people=people,
        bench=bench,
        agent=agent,
        wake=Wake.objects.get(agent_session=agent),
        walked=walked,
        idle=idle,
        hers=_hers(),
        lab_ids=lab_ids,
        **others,
    )


def all_ids() -> frozenset[str]:
    """The id of everything there is; ids are texts, a serial number tells nothing apart."""
    kinds = [kind for kind in apps.get_models() if isinstance(kind._meta.pk, models.CharField)]
    found = {pk for kind in kinds for pk in kind._default_manager.values_list("pk", flat=True)}
    return frozenset(pk for pk in found if "_" in pk)


def _people() -> People:
    owner = factories.person("ana")
    lab = factories.org("lab", owner=owner)
    return People(
        owner=owner,
        lab=lab,
        member=factories.member("mo", org=lab),
        operator=factories.operator("oto", org=lab),
    )


def _other_things(people: People, bench: Bench, *, at: datetime) -> dict[str, Any]:
    lab, owner, campaign = people.lab, people.owner, bench.campaign
    results = [campaigns.result(each) for each in (bench.control, bench.good, bench.bad)]
    revoked_box = devices.box(lab, owner, name="gone", accepts=[])
    device_services.revoke_device(
        device=revoked_box.device, reason="", by=factories.actor(owner, signed_in_at=at), at=at
    )
    return {
        "keys": _keys(people, at=at),
        "other_box": devices.box(lab, owner, name="second", accepts=[]),
        "revoked_box": revoked_box,
        "pending": devices.new_device(lab, owner, name="third", accepts=[], at=at),
        "draft_round": campaigns.round_of(campaign, *results, is_locked=False),
        "open_round": campaigns.round_of(campaign, *results),
    }


def _keys(people: People, *, at: datetime) -> Keys:
    def key(*scopes: str) -> NewKey:
        return factories.api_key(people.owner, account=people.lab, scopes=scopes)

    keys = Keys(
        reader=key("key:read"),
        writer=key("key:write"),
        revoked=key("key:write"),
        expired=key("key:write"),
        spare=key("key:read"),
    )
    accounts.revoke_api_key(key=keys.revoked.key, by=factories.actor(people.owner), at=at)
    keys.expired.key.expires_at = at
    keys.expired.key.save(update_fields=["expires_at"])
    return keys


def _walked(bench: Bench, *, at: datetime) -> TrialSession:
    session = bench.decide(at=at, device=bench.device)
    control, good, bad, last = made.trials_of(session)
    bench.run(control, at=at)
    bench.log(control, at=at)
    bench.run(good, at=at)
    bench.lose_log(good, at=at)
    bench.judge(good, "iterate", at=at)
    bench.run(bad, at=at)
    bench.consent(last, at=at)
    return session


def _hers() -> Hers:
    stranger = factories.stranger("eve")
    campaign = campaigns.campaign(stranger.account, name="hers")
    checkpoint = campaigns.checkpoint(campaign, run="hers", step=1)
    return Hers(
        person=stranger,
        campaign=campaign,
        checkpoint=checkpoint,
        round=campaigns.round_of(campaign, campaigns.result(checkpoint)),
        key=factories.api_key(stranger),
        box=devices.box(stranger.account, stranger, name="hers"),
    )


def approvals_running() -> set[str]:
    return set(Approval.objects.filter(state=Approval.State.RUNNING).values_list("pk", flat=True))
