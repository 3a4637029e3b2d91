from hypothesis import settings

# How long one example takes says nothing on a machine that does other work beside.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
