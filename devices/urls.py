from django.urls import include, path

from devices.views import approvals, box, devices

operations = [
    path("devices", devices.Devices.as_view()),
    path("devices/enrol", box.DeviceEnrol.as_view()),
    path("devices/<str:device_id>", devices.OneDevice.as_view()),
    path("devices/<str:device_id>/revoke", devices.DeviceRevoke.as_view()),
    path("devices/<str:device_id>/keys", box.DeviceKeys.as_view()),
    path("devices/<str:device_id>/events", box.DeviceEvents.as_view()),
    path("devices/<str:device_id>/approvals", box.DeviceApprovals.as_view()),
    path("approvals", approvals.Approvals.as_view()),
    path("approvals/<str:approval_id>", approvals.OneApproval.as_view()),
    path("approvals/<str:approval_id>/issue", approvals.ApprovalIssue.as_view()),
    path("approvals/<str:approval_id>/decline", approvals.ApprovalDecline.as_view()),
    path("approvals/<str:approval_id>/revoke", approvals.ApprovalRevoke.as_view()),
    path("approvals/<str:approval_id>/withdraw", approvals.ApprovalWithdraw.as_view()),
    path("approvals/<str:approval_id>/confirm", box.ApprovalConfirm.as_view()),
]
urlpatterns = [
    path(".well-known/trial-hub.json", box.well_known),
    path("api/v1/", include(operations)),
]
