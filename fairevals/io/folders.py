"""Output folders and file names: never someone else's folder, and no name that leads out of it."""

import ctypes
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from fairevals.errors import UsageError, escape
from fairevals.io.parts import is_part, locked, naming, part_of, remove_abandoned
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


@contextmanager
def replacing(
    folder: str | os.PathLike[str],
    *,
    whole: bool = True,
    first: str = "",
    stale: Callable[[Path], Collection[str]] = lambda _: (),
) -> Iterator[Path]:
    """A new folder that takes the place of `folder` when the context ends without an error; else it is removed.

    The new folder is a hidden one beside the old one. Files of the old one that are not in it, except those that
    `stale` names, are linked into it, and then the two are exchanged in one step. So whatever happens, even if the
    process is killed, there is the old folder or the new one, and of two processes the last one wins. If `folder` is
    a link, what it points to is exchanged.

    Not every folder can be exchanged: a mount point, the current folder or one above it, a folder inside one that
    cannot be written, one of another owner, files that cannot be linked, or a file system that cannot do it in one
    step. In these cases, and unless `whole`, the files are renamed into the old folder one after the other: `first`,
    then by name, then the page. Then, too, all of them are written before the first is renamed. A link in the old
    folder is replaced, never followed.
    """
    real = Path(os.path.realpath(folder))
    beside = not real.exists() or (whole and _is_exchangeable(real))
    with (
        naming(Path(folder), real),
        part_of(real if beside else real / real.name, Path.mkdir) as part,
    ):
        yield part
        names = [path.relative_to(part).as_posix() for path in part.rglob("*") if not path.is_dir()]
        names.sort(key=lambda name: (name == PAGE, name != first, name))
        _sync(*_folders(part))
        while True:
            if beside:
                with suppress(FileExistsError):  # there is none, or an empty one
                    return _rename(part, real)
            with locked(real) as is_there:  # not while another process does the same
                if is_there:
                    left = {name for name in stale(real) if name not in names}
                    if not (beside and whole and _exchanged(part, real, left)):
                        _move(names, part, real, left)
                    return None


def _is_exchangeable(folder: Path) -> bool:
    """Whether a folder can be renamed: not a mount point, not the current folder, and the one above can be written."""
    nothing = f".{secrets.token_hex(8)}.part"
    try:
        if not os.access(folder.parent, os.W_OK | os.X_OK) or Path.cwd().is_relative_to(folder):
            return False
        (folder / nothing).rename(folder.parent / nothing)
    except FileNotFoundError:  # at the border of a mount, the system would have refused before it looked
        return True
    except OSError:
        return False
    return True


def _rename(part: Path, folder: Path) -> None:
    """Rename a part to the name of a folder that does not exist or is empty; else raise FileExistsError."""
    try:
        if folder.is_dir():
            shutil.copystat(folder, part)
        part.rename(folder)
    except OSError as error:
        if error.errno == errno.ENOTEMPTY:
            raise FileExistsError from error
        raise
    _sync(folder.parent)


_NOT_EXCHANGEABLE = {
    *(errno.EPERM, errno.EBUSY, errno.EXDEV, errno.EMLINK),
    *(errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP),
}


def _exchanged(part: Path, folder: Path, left: Collection[str]) -> bool:
    """Exchange a part and a folder, with all other files of the folder but those `left`; False if that cannot be done.

    Other files are in both folders until the part, by then the old folder, is removed.
    """
    try:
        shutil.copystat(folder, part)
        owner = folder.stat()
        if hasattr(os, "chown"):
            os.chown(part, owner.st_uid, owner.st_gid)
        _link_files(folder, part, left)
        _sync(*_folders(part))
        exchange(part, folder)
    except OSError as error:
        if error.errno in _NOT_EXCHANGEABLE:
            return False
        raise
    _link_files(part, folder, left)  # what came in the meantime
    _sync(folder.parent)
    return True


def exchange(one: Path, other: Path) -> None:
    """Exchange the names of two folders in one step; an OSError where the system cannot."""
    try:
        library, swap = ctypes.CDLL(None, use_errno=True), 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
        if sys.platform == "darwin":
            failed = library.renamex_np(os.fsencode(one), os.fsencode(other), swap)
        else:
            failed = library.renameat2(-1, os.fsencode(one), -1, os.fsencode(other), swap)
    except (AttributeError, TypeError):  # another system, or an older one
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS)) from None
    if failed:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(other))


def _link_files(old: Path, new: Path, left: Collection[str], below: str = "") -> None:
    """Link the files below a folder into another, except those `left`, unfinished ones, and where a new one stands."""
    for path in old.iterdir():
        name, target = below + path.name, new / path.name
        is_folder = path.is_dir() and not path.is_symlink()
        if os.path.lexists(target) and not path.is_symlink() and is_folder != target.is_dir():
            code = errno.EISDIR if is_folder else errno.ENOTDIR
            raise OSError(code, os.strerror(code), str(path))
        if is_folder and not is_part(path.name):
            is_new = not target.exists()
            target.mkdir(exist_ok=True)
            _link_files(path, target, left, f"{name}/")
            if is_new:
                shutil.copystat(path, target)
                if any(file.startswith(f"{name}/") for file in left):
                    with suppress(OSError):  # if nothing else was in it
                        target.rmdir()
        elif name not in left and not os.path.lexists(target) and not remove_abandoned(path):
            os.link(path, target, follow_symlinks=False)


def _move(names: Collection[str], part: Path, folder: Path, left: Collection[str]) -> None:
    """Rename the files of a part into a folder one after the other, and delete those `left`."""
    for name in names:  # before the first is renamed
        if (folder / name).is_dir() and not (folder / name).is_symlink():
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), str(folder / name))
    for name in names:
        for above in reversed(Path(name).parents[:-1]):
            if (folder / above).is_symlink():  # it may lead anywhere
                (folder / above).unlink()
            (folder / above).mkdir(exist_ok=True)
        (part / name).replace(folder / name)
    for name in left:
        if not (folder / name).parent.is_symlink():
            (folder / name).unlink(missing_ok=True)
    for above in {(folder / name).parent for name in (*names, *left)}:
        for other in above.iterdir() if above.is_dir() else ():
            remove_abandoned(other)
    _sync(*{(folder / name).parent for name in names})


def _folders(folder: Path) -> Iterator[Path]:
    """A folder and all folders below it."""
    return (Path(path) for path, _, _ in os.walk(folder))


def _sync(*folders: Path) -> None:
    """Wait until the names in the folders are on the disk."""
    for path in folders if os.name == "posix" else ():
        opened = os.open(path, os.O_RDONLY)
        try:
            os.fsync(opened)
        except OSError as error:
            if error.errno != errno.EINVAL:  # a file system that does so anyway
                raise OSError(error.errno, error.strerror, str(path)) from None
        finally:
            os.close(opened)


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

    def replacing(self, folder: Path) -> AbstractContextManager[Path]:
        """A new folder of this kind in the place of an earlier one, whose figures are not kept: see `replacing`."""
        return replacing(folder, first=self.marker, stale=self._figures)

    def _figures(self, folder: Path) -> list[str]:
        """The figures of an earlier version."""
        figures = (self.earlier(folder) or {}).get("figures")
        # Anyone may have changed the marker: delete only what this module could have written.
        return [
            name
            for name in (figures if isinstance(figures, list) else [])
            if isinstance(name, str) and _FIGURE.fullmatch(name)
        ]

    def write(self, folder: Path, files: Mapping[str, bytes]) -> list[Path]:
        """Write the files, all or none, in the place of an earlier version; returns their paths, the page first."""
        with self.replacing(folder) as part:
            write_files(part, files)
        return [folder / name for name in sorted(files, key=lambda name: (name != PAGE, name))]


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files by their names below a folder."""
    for name, content in files.items():
        with written_bytes(folder / name) as file:
            file.write(content)
