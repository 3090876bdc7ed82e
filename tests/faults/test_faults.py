"""Every command under every fault: it ends, says what happened, and leaves outputs old or new as a whole."""

from __future__ import annotations

import pytest
from fault_cases import COMMANDS, FAULTS, check

SHARED = ("score", "export", "annotate")
"""One command that writes a file, one that writes a folder and one that reads a database meet every fault."""
ALONE = ("no room for a file", "SIGINT while writing", "SIGKILL while writing", "a worker killed")
"""Every command meets these faults."""


def _case(fault: str, command: str) -> object:
    always = command in SHARED or fault in ALONE
    return pytest.param(fault, command, marks=[] if always else pytest.mark.thorough)


CASES = [
    _case(fault, command) for fault in FAULTS for command in COMMANDS if command not in FAULTS[fault].skip
]


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "command"), CASES)
def test_whole_outputs_and_a_plain_end(tmp_path, fault, command):
    check(COMMANDS[command], FAULTS[fault], tmp_path)
