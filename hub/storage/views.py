from rest_framework.request import Request
from rest_framework.response import Response

from hub.accounts.api import HubView, operation
from hub.storage import services
from hub.storage.serializers import UsageAnswer


class Storage(HubView):
    @operation("getStorageUsage", who="SR", answer=UsageAnswer)
    def get(self, request: Request) -> Response:
        """What my accounts hold in object storage."""
        return self.answer(services.usage(self.by))
