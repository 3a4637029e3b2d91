from importlib import import_module

from django.apps import AppConfig

from hub.audit import actions


class DevicesConfig(AppConfig):
    name = "devices"

    def ready(self) -> None:
        # Here and not above: models can be imported only now.
        from devices import signatures
        from hub.accounts import auth

        auth.register(signatures.device, refusals=signatures.REFUSALS)
        import_module("devices.tasks")  # its jobs register themselves
        actions.register(
            {
                "device.created": "a robot box was added and got an enrolment code",
                "device.code-ended": "wrong tries ended an enrolment code",
                "device.enrolled": "a robot box enrolled with its key",
                "device.key-rotated": "a robot box changed its key",
                "device.changed": "a robot box got another name or accepts other contracts",
                "device.revoked": "a robot box was ended for good",
                "device.journal-lost": "a robot box lost its journal and goes on",
                "approval.requested": "consent to one run was asked for",
                "approval.issued": "a person consented to one run of one frozen sheet",
                "approval.declined": "a person said no to a request for consent",
                "approval.withdrawn": "a request for consent was taken back",
                "approval.revoked": "a person took consent back before the run started",
                "approval.stop-requested": "a person asked the robot to stop a run",
                "approval.expired": "a request or a consent ran out",
                "approval.started": "the robot started a run",
                "approval.stopped": "the robot said that a run has stopped",
                "approval.refused": "the robot refused what it was permitted to run",
            }
        )
