"""Output folders and file names: never someone else's folder, and no name that leads out of it."""

import hashlib
import json
import os
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fairevals.errors import UsageError, escape
from fairevals.io.streams import written_bytes

PAGE = "index.html"
_FIGURE = re.compile(r"figures/\w[\w.-]*\.(svg|png)")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?", re.IGNORECASE | re.DOTALL)
_HASHED = re.compile(r".*-[0-9a-f]{8}", re.DOTALL)


def safe_name(text: str) -> str:
    r"""A readable file name for a tag, topic or attribute: not a path, hidden, reserved or empty.

    A harmless text is returned as it is. Any other is changed and gets a hash of the text, so that two texts never
    have the same name (except for upper and lower case).

    >>> safe_name("HINDEX"), safe_name("bm25+rm3 v1.2")
    ('HINDEX', 'bm25_rm3_v1.2-78c4c91d')
    >>> safe_name("../../x"), safe_name("CON"), safe_name("\u200b")
    ('x-9cdf6a50', 'CON-a3dbc4b6', 'name-f4e48e66')
    """
    clean = re.sub(r"[^\w.-]+", "_", unicodedata.normalize("NFC", text)).strip("._-")
    # 200 bytes leave room for endings: most file systems allow 255 in a name.
    clean = clean[:60].encode()[:200].decode(errors="ignore").rstrip("._-")
    if clean == text and clean and not _RESERVED.fullmatch(clean) and not _HASHED.fullmatch(clean):
        return clean
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    if _RESERVED.fullmatch(clean):
        clean = clean.replace(".", "_")  # `con.x-1` would still name the device
    return f"{clean or 'name'}-{digest}"


def check_folder(folder: str | os.PathLike[str], *, force: bool = False, hint: str = "") -> Path:
    """The folder, if it does not exist, is empty, or `force` allows to write into it; else a `UsageError`."""
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise UsageError(f"{escape(str(path), 200)} is not a folder")
    if not force and path.is_dir() and any(path.iterdir()):
        advice = "choose another folder, or force writing into it"
        raise UsageError(f"{escape(str(path), 200)} is not empty{hint}; {advice}")
    return path


@dataclass(frozen=True)
class Marked:
    """A kind of output folder. A JSON file in it, the marker, has the `format` and a list of the `figures`."""

    what: str
    marker: str
    format: str

    def check(self, folder: Path, *, force: bool = False) -> None:
        """Raise a `UsageError` if the folder has content but is not an earlier one of this kind, unless forced."""
        hint = f" and not an earlier {self.what} (it has no valid {self.marker})"
        check_folder(folder, force=force or self.earlier(folder) is not None, hint=hint)

    def earlier(self, folder: Path) -> Mapping[str, object] | None:
        """The content of the marker; None if the folder is not of this kind."""
        try:
            marker = json.loads((folder / self.marker).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        return marker if isinstance(marker, dict) and marker.get("format") == self.format else None

    def write(self, folder: Path, files: Mapping[str, bytes]) -> list[Path]:
        """Write the files, each completely or not at all: the marker first, the page last.

        Figures of an earlier version are deleted. Returns the paths of the files, the page first.
        """
        earlier = self.earlier(folder) or {}
        for name in sorted(files, key=lambda name: (name == PAGE, name != self.marker, name)):
            with written_bytes(folder / name) as file:
                file.write(files[name])
        figures = earlier.get("figures")
        for name in figures if isinstance(figures, list) else []:
            # Anyone may have changed the marker: delete only what this module could have written.
            if isinstance(name, str) and _FIGURE.fullmatch(name) and name not in files:
                (folder / name).unlink(missing_ok=True)
        return [folder / name for name in sorted(files, key=lambda name: (name != PAGE, name))]
