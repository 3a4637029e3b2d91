from hub.accounts import services
from tests import factories
from tests.factories import NOON

ACTIVITY = "/api/v1/activity"


def sentences(client, query=""):
    return [item["sentence"] for item in client.get(ACTIVITY + query).json()["items"]]


def test_a_person_reads_what_was_done_for_their_accounts_newest_first(ana, lab, mo, eve):
    assert sentences(factories.client(ana)) == [
        "the hub made mo@lab.test member of lab.",
        "the hub founded lab, owned by ana@lab.test.",
        "the hub gave ana@lab.test an account.",
    ]
    assert sentences(factories.client(eve)) == ["the hub gave eve@lab.test an account."]


def test_a_key_reads_the_activity_of_its_account_alone(ana, lab):
    program = factories.key_client(factories.api_key(ana, account=lab))

    accounts = {item["account"] for item in program.get(ACTIVITY).json()["items"]}

    assert accounts == {lab.pk}


def test_filters_only_narrow(ana, lab, eve):
    browser = factories.client(ana)

    assert sentences(browser, "?action=account.created&account=" + lab.pk) == [
        "the hub founded lab, owned by ana@lab.test."
    ]
    assert sentences(browser, "?account=" + eve.account.pk) == []


def test_an_act_that_is_over_stays_on_the_record(ana, lab, mo):
    services.revoke_api_key(key=factories.api_key(ana, account=lab).key, by=factories.actor(ana), at=NOON)

    actions = [item["action"] for item in factories.client(mo).get(ACTIVITY).json()["items"]]

    assert actions[:2] == ["key.revoked", "key.created"]
