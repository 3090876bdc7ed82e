"""Settings that all tests share."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# The same examples every time, on machines of any speed: a failure in CI is one that everybody can see.
settings.register_profile(
    "default", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("default")
