"""Policies of a sweep that is not finished: each is kept as soon as it is trained, so that training can be resumed.

They stand in the folder `unfinished` below that of the results, beside a record of the data and the settings. The
results themselves are written together when all policies are there, and then this folder is removed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fairevals.errors import UsageError, escape
from fairevals.io.folders import replacing
from fairevals.io.streams import written
from fairevals.training.data import Dataset
from fairevals.training.outputs import UNFINISHED, read_curve, write_curve
from fairevals.training.policies import TrainedPolicy, read_policy, save_policy
from fairevals.training.settings import Settings

_RECORD, _FORMAT = "sweep.json", "fairevals sweep 1"
_OF_ONE_POLICY = ("lambda", "max_disparity", "seed")
"""Settings that differ between the policies of a sweep; their names say them."""


class Unfinished:
    """The finished policies of a sweep, in the folder that its results will be in.

    `splits` and `runs` are the data and the settings of the sweep: only policies of the same are ever resumed.
    """

    def __init__(self, folder: Path, splits: Mapping[str, Dataset], runs: Sequence[Settings]) -> None:
        self.folder, self.runs = folder / UNFINISHED, runs
        settings = {name: value for name, value in runs[0].record().items() if name not in _OF_ONE_POLICY}
        facts = {f"the {name} data": split.digest for name, split in splits.items()} | settings
        self._record = {"format": _FORMAT, "facts": facts}
        self._is_begun = False

    @property
    def count(self) -> int:
        """The number of policies that are there."""
        return sum(self._path(run).is_dir() for run in self.runs)

    def resume(self) -> dict[str, TrainedPolicy]:
        """The policies that are there, by their names; a `UsageError` if they are of other data or settings."""
        if not self.folder.exists():
            return {}
        try:
            record = json.loads((self.folder / _RECORD).read_text(encoding="utf-8"))
            before = dict(record["facts"]) if record["format"] == _FORMAT else None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            before = None
        if before is None:
            raise UsageError(f"{_shown(self.folder)} is no unfinished training of this version")
        now = json.loads(json.dumps(self._record))["facts"]
        for name in {**now, **before}:
            if before.get(name) != now.get(name):
                is_data = name.startswith("the ")
                values = "" if is_data else f", from {before.get(name)!r} to {now.get(name)!r}"
                changed = f"{escape(name)} has changed{escape(values, 200)}"
                advice = "resume it as it was begun, or force training from the start"
                raise UsageError(f"{_shown(self.folder)} cannot be resumed: {changed}; {advice}")
        self._is_begun = True
        return {run.policy_name: self._read(run) for run in self.runs if self._path(run).is_dir()}

    def _path(self, run: Settings) -> Path:
        return self.folder / run.policy_name

    def _read(self, run: Settings) -> TrainedPolicy:
        path = self._path(run)
        policy = read_policy(path)
        if policy.settings != run:
            raise UsageError(
                f"{_shown(path)} has other settings than its name says; remove it to train it again"
            )
        return replace(policy, curve=read_curve(path))

    def keep(self, policy: TrainedPolicy) -> None:
        """Write a policy that is trained, as a whole. The first one takes the place of an earlier sweep's."""
        if not self._is_begun:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            with written(self.folder / _RECORD) as file:
                file.write(json.dumps(self._record, indent=2, ensure_ascii=False) + "\n")
            self._is_begun = True
        with replacing(self._path(policy.settings)) as part:
            save_policy(policy, part)
            write_curve(policy, part)


def _shown(path: Path) -> str:
    return escape(str(path), 200)
