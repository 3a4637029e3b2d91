from importlib import import_module

from django.apps import AppConfig


class StorageConfig(AppConfig):
    name = "hub.storage"

    def ready(self) -> None:
        import_module("hub.storage.tasks")  # its jobs register themselves
