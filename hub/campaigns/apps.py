from django.apps import AppConfig


class CampaignsConfig(AppConfig):
    name = "hub.campaigns"
    label = "campaigns"
