from tests import factories


def test_a_person_sees_who_they_are_and_what_they_speak_for(ana, lab):
    answer = factories.client(ana).get("/api/v1/me").json()

    assert answer["kind"] == "person"
    assert answer["name"] == "ana@lab.test"
    assert [(account["name"], account["role"]) for account in answer["accounts"]] == [
        ("ana", "owner"),
        ("lab", "owner"),
    ]
    assert answer["signed_in_at"].endswith("Z")


def test_a_key_speaks_for_one_account_and_has_scopes_instead_of_a_role(ana, lab):
    new = factories.api_key(ana, account=lab, scopes=("key:read",))

    answer = factories.key_client(new).get("/api/v1/me").json()

    assert answer["kind"] == "key"
    assert answer["accounts"] == [{"id": lab.pk, "kind": "org", "name": "lab", "role": None}]
    assert answer["scopes"] == ["key:read"]
