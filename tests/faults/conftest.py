"""Lets a failed check of the shared cases show its values."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("fault_cases")
