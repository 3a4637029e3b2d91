"""What the driver is tested against: a hub in a thread, a robot that is a script, and the real daemon."""
