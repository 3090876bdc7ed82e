"""Qrels that are read while other processes read the runs."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from dataclasses import fields
from mmap import ACCESS_READ, mmap
from multiprocessing import get_start_method
from typing import Any

from fairevals.collection.qrels import Qrels

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class LateQrels(Qrels):
    """Qrels that are read when they are first needed, once for this process and all processes forked from it.

    A forked process that asks for them waits until this one has read them. They come through a file in memory, on
    which this process holds a lock until it has written them.
    """

    def __init__(self, read: Callable[[], Qrels]) -> None:
        file = os.memfd_create("qrels")
        fcntl.lockf(file, fcntl.LOCK_EX)
        self.__dict__.update(_read=read, _process=os.getpid(), _file=file)

    def __getattr__(self, name: str) -> Any:
        names = [field.name for field in fields(Qrels)]
        if name not in names:
            raise AttributeError(name)
        self.__dict__.update(self._written(names) if os.getpid() == self._process else self._received())
        return self.__dict__[name]

    def _written(self, names: list[str]) -> dict[str, Any]:
        qrels = self._read()
        values = {name: getattr(qrels, name) for name in names}
        with os.fdopen(self._file, "wb") as file:  # closing it gives up the lock
            pickle.dump(values, file, protocol=5)
        return values

    def _received(self) -> dict[str, Any]:
        fcntl.lockf(self._file, fcntl.LOCK_SH)
        with mmap(self._file, 0, access=ACCESS_READ) as data:
            values: dict[str, Any] = pickle.loads(data)  # noqa: S301 -- what `_written` wrote
        return values

    def __reduce__(self) -> Any:
        return Qrels, tuple(getattr(self, field.name) for field in fields(Qrels))


def can_wait() -> bool:
    """Whether worker processes are forked, and so can wait for this one."""
    return fcntl is not None and hasattr(os, "memfd_create") and get_start_method(allow_none=False) == "fork"
