"""`fairevals doctor`."""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import PackageNotFoundError, version

from fairevals import __version__

SUMMARY = "What is installed, what is optional and what it is good for, and which limits are in force."
EXAMPLE = "  fairevals doctor"

NEEDED = ("numpy", "scipy", "pandas", "ir-measures", "matplotlib", "jinja2")
OPTIONAL = {
    "pyarrow": ("parquet", "runs as parquet files and folders"),
    "zstandard": ("zst", "files that end in .zst"),
    "distributed": ("dask", "scoring on a Dask cluster (--dask)"),
}
"""Package: the extra that installs it, and what it enables."""


def configure(parser: argparse.ArgumentParser) -> None:
    """There are no options."""


def found(package: str) -> str | None:
    """The version of an installed package, or None.

    >>> found("no-such-package") is None
    True
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def run(args: argparse.Namespace) -> int:
    """Print it; 1 if something is missing that is needed."""
    from fairevals.io.streams import Limits

    missing = [name for name in NEEDED if found(name) is None]
    print(f"fairevals {__version__}")
    print(f"Python {sys.version.split()[0]} ({sys.platform})")
    print("\nneeded:")
    for name in NEEDED:
        print(f"  {name:<12} {found(name) or f'MISSING (pip install {name})'}")
    print("\noptional:")
    for name, (extra, purpose) in OPTIONAL.items():
        state = found(name) or "—"
        if name == "zstandard" and sys.version_info >= (3, 14):
            state = "in Python itself"
        hint = "" if state != "—" else f" (pip install 'fairevals[{extra}]')"
        print(f"  {name:<12} {state:<10} {purpose}{hint}")
    limits = Limits.current()
    print("\nlimits:")
    print(f"  FAIREVALS_MAX_BYTES {limits.bytes:<14} bytes of one file, decompressed")
    print(f"  FAIREVALS_MAX_LINE  {limits.line:<14} bytes of one line")
    if missing:
        print(f"\nmissing: {', '.join(missing)}", file=sys.stderr)
    return 1 if missing else 0
