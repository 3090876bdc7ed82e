"""`fairevals doctor`."""

import argparse
import sys
from importlib.metadata import PackageNotFoundError, version

from fairevals import __version__

SUMMARY = "Show the installed versions, the optional packages with what they enable, and the limits in force."
EXAMPLE = "  fairevals doctor"

NEEDED = ("numpy", "scipy", "pandas", "ir-measures", "matplotlib", "jinja2")
OPTIONAL = {
    "pyarrow": ("parquet", "runs as parquet files and folders"),
    "zstandard": ("zst", "files compressed by zstd"),
    "distributed": ("dask", "scoring on a Dask cluster (--dask)"),
    "lightgbm": ("trees", "training of trees (train --model trees)"),
    "pyyaml": ("yaml", "checking the metadata of runs"),
    "starlette": ("annotate", "the browser tool for assessors"),
    "uvicorn": ("annotate", "its server"),
    "shtab": ("completion", "completion in shells"),
}
"""Package: the extra that installs it, and what it enables."""


def configure(parser: argparse.ArgumentParser) -> None:
    """There are no options."""


def version_of(package: str) -> str | None:
    """The version of an installed package, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def run(args: argparse.Namespace) -> int:
    from fairevals.io.streams import Limits

    print(f"fairevals {__version__}\nPython {sys.version.split()[0]} ({sys.platform})\n\nneeded:")
    versions = {name: version_of(name) for name in NEEDED}
    for name, state in versions.items():
        print(f"  {name:<12} {state or f'MISSING (pip install {name})'}")
    print("\noptional:")
    for name, (extra, purpose) in OPTIONAL.items():
        state, hint = version_of(name), ""
        if name == "zstandard" and sys.version_info >= (3, 14):
            state = "in Python itself"
        elif state is None:
            state, hint = "—", f" (pip install 'fairevals[{extra}]')"
        print(f"  {name:<12} {state:<10} {purpose}{hint}")
    limits = Limits.current()
    print(f"\nlimits:\n  FAIREVALS_MAX_BYTES {limits.bytes:<14} bytes of one file, decompressed")
    print(f"  FAIREVALS_MAX_LINE  {limits.line:<14} bytes of one line")
    print(f"  FAIREVALS_MAX_CELLS {limits.cells:<14} documents of one topic × groups of one attribute")
    missing = [name for name, state in versions.items() if state is None]
    if missing:
        print(f"\nmissing: {', '.join(missing)}", file=sys.stderr)
    return 1 if missing else 0
