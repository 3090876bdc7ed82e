"""Do something once another library is imported, without importing it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec


class _Loader:
    """The library's own loader, and then what was asked for."""

    def __init__(self, loader: Any, finder: _Finder) -> None:
        self._loader, self._finder = loader, finder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        found: ModuleType | None = self._loader.create_module(spec)
        return found

    def exec_module(self, module: ModuleType) -> None:
        # From here on the module looks as if nobody had stood in between.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._finder.done(module)


class _Finder:
    """Stands in `sys.meta_path` until the library is imported."""

    def __init__(self, name: str, then: Callable[[ModuleType], None]) -> None:
        self.name, self.then = name, then

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self.name:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if finder is self or find is None else find(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, self)  # type: ignore[assignment]
                return spec
        return None

    def done(self, module: ModuleType) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        self.then(module)


def after_import(name: str, then: Callable[[ModuleType], None]) -> None:
    """Call `then` with the library: at once if it is imported already, else as soon as it is.

    >>> after_import("sys", lambda module: print(module.__name__))
    sys
    """
    if name in sys.modules:
        then(sys.modules[name])
    elif not any(isinstance(f, _Finder) and (f.name, f.then) == (name, then) for f in sys.meta_path):
        sys.meta_path.insert(0, _Finder(name, then))


def offer_measures() -> None:
    """See to it that ir-measures knows this package's measures, whenever it is imported."""
    after_import("ir_measures", _register)


def _register(module: ModuleType) -> None:
    try:
        # It registers itself when it is imported: it may be what is importing ir-measures right now.
        import_module("fairevals.ecosystem.provider")
    except Exception as error:  # another library's import must not fail for ours
        import warnings

        version = getattr(module, "__version__", "?")
        warnings.warn(f"fairevals could not add its measures to ir-measures {version}: {error}", stacklevel=2)
