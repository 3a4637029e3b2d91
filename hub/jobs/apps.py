from importlib import import_module

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "hub.jobs"

    def ready(self) -> None:
        import_module("hub.jobs.tasks")  # its jobs register themselves
