"""Settings that all tests share."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from fairevals.io.screen import SCREEN, Screen

# The same examples every time, on machines of any speed: a failure in CI is one that everybody can see.
EXAMPLES = {"default": 40, "thorough": 200}
for profile, count in EXAMPLES.items():
    settings.register_profile(
        profile,
        derandomize=True,
        deadline=None,
        max_examples=count,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("default")


@pytest.fixture
def wide_screen(monkeypatch: pytest.MonkeyPatch):
    """Tables as they are where the terminal is wide enough for all of them."""
    monkeypatch.setattr(Screen, "of", classmethod(lambda cls, stream: cls(1000)))
    before = SCREEN.set(Screen(1000))
    yield
    SCREEN.reset(before)
