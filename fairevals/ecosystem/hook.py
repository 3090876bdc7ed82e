"""Add this package's measures to ir-measures as soon as that is imported, without importing it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec


class IrMeasuresFinder:
    """Stays in `sys.meta_path` until ir-measures has been imported."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find ir-measures as the other finders do, and register the measures after it is loaded."""
        if name != "ir_measures":
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if finder is self or find is None else find(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    self._register_after(spec.loader)
                return spec
        return None

    def _register_after(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module  # the loader is as it was
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            _register(module)

        loader.exec_module = exec_module


def offer_measures() -> None:
    """Make this package's measures known to ir-measures: now if it is imported already, else when it is."""
    if "ir_measures" in sys.modules:
        _register(sys.modules["ir_measures"])
    elif not any(isinstance(finder, IrMeasuresFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, IrMeasuresFinder())


def _register(module: ModuleType) -> None:
    try:
        # The provider registers itself when it is imported; it may be what is importing ir-measures right now.
        import_module("fairevals.ecosystem.provider")
    except Exception as error:  # importing another library must not fail because of this one
        version = getattr(module, "__version__", "?")
        warnings.warn(f"fairevals could not add its measures to ir-measures {version}: {error}", stacklevel=2)
