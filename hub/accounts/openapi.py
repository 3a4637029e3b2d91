from drf_spectacular.openapi import AutoSchema


class HubSchema(AutoSchema):
    """What the document says of each operation beyond what DRF's classes tell."""
