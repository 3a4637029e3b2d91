from importlib import import_module

from django.apps import AppConfig

from hub.audit import actions


class TrialsConfig(AppConfig):
    name = "trials"

    def ready(self) -> None:
        from devices import subjects
        from trials.models import SUBJECT_KIND
        from trials.services.run_sheets import TrialSubject

        import_module("trials.tasks")  # its jobs register themselves
        subjects.register(SUBJECT_KIND, TrialSubject())
        actions.register(
            {
                "session.planned": "a session was planned, with its order and its run sheets",
                "session.device": "a session that had none got its device",
                "session.cancelled": "a session was called off before anything of it ran",
                "run_sheet.changed": "a run sheet that nobody had approved yet was changed",
                "trial.log": "a device reported the log of a run, or that there is none",
                "trial.verdict": "a person decided on a trial",
            }
        )
