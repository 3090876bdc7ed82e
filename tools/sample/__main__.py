"""`python -m tools.sample`: write the sample task, and the archive of it that the package ships."""

from __future__ import annotations

import argparse
from pathlib import Path

from tools.sample import ARCHIVE, pack_sample, write_sample


def main() -> None:
    """Write runs/, qrels/ and the archive below a folder, by default the repository."""
    parser = argparse.ArgumentParser(prog="python -m tools.sample", description=__doc__)
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("folder", nargs="?", type=Path, default=root, help="default: the repository")
    folder = parser.parse_args().folder
    paths = write_sample(folder)
    archive = folder / ARCHIVE
    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.write_bytes(pack_sample(folder))
    print(f"written: {len(paths)} files of the task and {archive}")


if __name__ == "__main__":
    main()
