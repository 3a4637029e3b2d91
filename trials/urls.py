from django.urls import include, path

from trials import pages
from trials.views import logs, planning, trials

operations = [
    path("rounds/<str:round_id>/decide", planning.RoundDecide.as_view()),
    path("rounds/<str:round_id>/shortlist", planning.RoundShortlist.as_view()),
    path("trial-sessions", planning.Sessions.as_view()),
    path("trial-sessions/<str:session_id>", planning.OneSession.as_view()),
    path("trial-sessions/<str:session_id>/cancel", planning.SessionCancel.as_view()),
    path("trial-sessions/<str:session_id>/device", planning.SessionDevice.as_view()),
    path("trials", trials.Trials.as_view()),
    path("trials/<str:trial_id>", trials.OneTrial.as_view()),
    path("trials/<str:trial_id>/run-sheet", trials.TrialRunSheet.as_view()),
    path("trials/<str:trial_id>/log/uploads", logs.TrialLogUploads.as_view()),
    path("trials/<str:trial_id>/log", logs.TrialLogRecord.as_view()),
    path("trials/<str:trial_id>/log/series", logs.TrialLogSeries.as_view()),
    path("trials/<str:trial_id>/verdict", trials.TrialVerdict.as_view()),
]
urlpatterns = [
    path("api/v1/", include(operations)),
    path("", pages.sessions, name="sessions"),
    path("trial-sessions/<str:session_id>", pages.session, name="session"),
    path("trials/<str:trial_id>", pages.trial, name="trial"),
]
