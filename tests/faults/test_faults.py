"""Every command under every fault: it ends, says what happened, and leaves outputs old or new as a whole."""

from __future__ import annotations

import pytest
from fault_cases import COMMANDS, FAULTS, check

CASES = [(fault, command) for fault in FAULTS for command in COMMANDS if command not in FAULTS[fault].skip]


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "command"), CASES)
def test_whole_outputs_and_a_plain_end(tmp_path, fault, command):
    check(COMMANDS[command], FAULTS[fault], tmp_path)
