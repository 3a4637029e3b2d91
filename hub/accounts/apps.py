from django.apps import AppConfig

from hub.audit import actions


class AccountsConfig(AppConfig):
    name = "hub.accounts"

    def ready(self) -> None:
        from hub.accounts import auth  # needs the models

        auth.connect()
        actions.register(
            {
                "account.created": "a person or an org got an account",
                "member.added": "a person got a role in an org",
                "owner-link.made": "a one-time link to choose a password was printed",
                "owner-link.used": "a password was chosen through a one-time link",
                "key.created": "an API key was made",
                "key.revoked": "an API key was revoked",
            }
        )
