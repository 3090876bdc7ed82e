"""Submissions of several runs: folders and zip archives, which are never unpacked to a disk.

A file of an archive is named `sub.zip:team/run1.txt`, in messages and wherever a path is taken.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from fairevals.errors import InputError, Place, escape, pluralize

MAX_FILES = 1000
"""The largest number of runs in a folder or an archive."""
MAX_RATIO = 200
"""An archive may hold so many times its own size. Runs are seldom compressed to less than a tenth."""
_SLACK = 1 << 20
_DIRECTORY = 1 << 20
"""The largest size of an archive's table of contents, in bytes."""
_EXPECTED = "a folder or a zip archive of run files"
_END, _END_SIZE, _LOCATOR_64 = b"PK\x05\x06", 22, b"PK\x06\x07"


def is_zip(path: str | os.PathLike[str]) -> bool:
    """Whether a path leads to a zip archive, by its first bytes."""
    try:
        if not Path(path).is_file():
            return False
        with Path(path).open("rb") as file:
            return re.match(rb"PK(\x03\x04|\x05\x06)", file.read(4)) is not None
    except (OSError, ValueError):  # its reader reports what is wrong
        return False


def member_of(path: str | os.PathLike[str]) -> tuple[str, str] | None:
    """The archive and the name of the file in it, if a path such as `sub.zip:team/run1.txt` leads into an archive."""
    text = os.fspath(path)
    if not isinstance(text, str) or ":" not in text or os.path.lexists(text):
        return None
    cuts = (match.start() for match in re.finditer(":", text))
    return next(((text[:at], text[at + 1 :]) for at in cuts if is_zip(text[:at])), None)


def file_name(path: str | os.PathLike[str]) -> str:
    """The last part of a path, also of one that leads into an archive."""
    member = member_of(path)
    return Path(member[1] if member else path).name


@contextmanager
def opened_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """The bytes of a file as they are, also of one in an archive."""
    member = member_of(path)
    with opened_member(*member) if member else Path(path).open("rb") as opened:
        yield opened


@contextmanager
def opened_member(archive: str, name: str) -> Iterator[IO[bytes]]:
    """A file of an archive, once the whole archive was checked."""
    with _opened(archive) as (file, infos):
        if name not in infos:
            raise InputError(Place(archive), f"no file {escape(name)!r} in the archive", "one of its files")
        with file.open(infos[name]) as opened:
            yield opened


@contextmanager
def _opened(archive: str) -> Iterator[tuple[ZipFile, dict[str, ZipInfo]]]:
    """An archive and its files, checked."""
    _check_directory(archive)
    with ZipFile(archive) as file:
        yield file, _checked(archive, file)


def _is_skipped(parts: Iterable[str]) -> bool:
    """Whether a file is not one of the participant's: hidden, or added by a system."""
    return any(part.startswith(".") or part == "__MACOSX" for part in parts)


def _checked(archive: str, file: ZipFile) -> dict[str, ZipInfo]:
    """The files of an archive; an `InputError` unless all of its entries are harmless."""
    from fairevals.io.streams import Limits, too_large

    infos: dict[str, ZipInfo] = {}
    for info in file.infolist():
        if problem := _problem(info, infos):
            found, expected = problem
            raise InputError(Place(archive), f"the entry {escape(info.filename)!r} {found}", expected)
        if not info.is_dir():
            infos[info.filename] = info
    total, size = sum(info.file_size for info in infos.values()), Path(archive).stat().st_size
    if total > MAX_RATIO * size + _SLACK:
        found = f"{total} bytes in an archive of {size}"
        raise InputError(Place(archive), found, f"at most {MAX_RATIO} times as many")
    if total > (limit := Limits.current().bytes):
        raise too_large(archive, limit)
    return infos


def _problem(info: ZipInfo, infos: dict[str, ZipInfo]) -> tuple[str, str] | None:
    """What is wrong with an entry, and what was expected."""
    name, kind = info.filename, stat.S_IFMT(info.external_attr >> 16)
    if name.startswith("/") or "\\" in name or re.match("[A-Za-z]:", name) or ".." in name.split("/"):
        return "leads out of the archive's folder", "names such as team/run1.txt"
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a link or a device", "files and folders"
    if info.flag_bits & 1:
        return "is encrypted", "an archive without a password"
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        return "is compressed by a method other than deflate", "an ordinary zip archive"
    return ("is there twice", "every name once") if name in infos else None


def _check_directory(archive: str) -> None:
    """Refuse an archive whose table of contents is large, before it is read into memory as a whole."""
    with Path(archive).open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _END_SIZE - (1 << 16) - 20))
        tail = file.read()
    at = len(tail) - _END_SIZE  # as Python's reader looks for it
    if tail[at : at + 4] != _END or tail[-2:] != b"\0\0":
        at = tail.rfind(_END)
    large = at >= 0 and int.from_bytes(tail[at + 12 : at + 16], "little") > _DIRECTORY
    if large or tail[max(at - 20, 0) : max(at - 16, 0)] == _LOCATOR_64:
        raise InputError(Place(archive), "an archive of very many or very large files", _EXPECTED)


def files_in(path: str | os.PathLike[str]) -> list[str]:
    """The paths of all files in a folder or an archive, sorted; hidden files and `__MACOSX` are skipped.

    An `InputError` where there is none, there are too many, or one leads elsewhere. Archives in a folder are opened,
    those in an archive are not. A harmful archive in a folder is among the files: its reader reports the error.
    """
    from fairevals.io.streams import reading

    name, found = os.fspath(path), []
    if is_zip(path):
        with reading(name, "not a readable zip archive"), _opened(name) as (_, infos):
            pass
        found = [f"{name}:{inner}" for inner in sorted(infos) if not _is_skipped(inner.split("/"))]
    else:
        root = os.path.realpath(path)
        paths = list(islice(Path(path).rglob("*"), 100 * MAX_FILES))
        for one in sorted(one for one in paths if not _is_skipped(one.relative_to(path).parts)):
            if one.is_symlink() and os.path.commonpath([root, os.path.realpath(one)]) != root:
                raise InputError(Place(str(one)), "a link that leads out of the folder", _EXPECTED)
            if one.is_symlink() and not one.exists():
                raise InputError(Place(str(one)), "a link that leads nowhere", _EXPECTED)
            if one.is_file():
                try:
                    found += files_in(one) if is_zip(one) else [str(one)]
                except InputError:
                    found.append(str(one))
    if not found:
        raise InputError(Place(name), "no file", _EXPECTED)
    if len(found) > MAX_FILES:
        raise InputError(Place(name), pluralize(len(found), "file"), f"at most {MAX_FILES:,}")
    return found


def is_submission(path: Any) -> bool:
    """Whether a path leads to several runs: a zip archive, or a folder that is not one run of parquet files.

    A folder is one run if it has parquet files, and no others but hidden ones and those named `_…`.
    """
    if not isinstance(path, (str, os.PathLike)):
        return False
    try:
        folder = Path(path)
        if not folder.is_dir():
            return is_zip(path)
        below = (file.relative_to(folder).parts for file in folder.rglob("*") if file.is_file())
        names = [parts[-1] for parts in below if not any(part.startswith((".", "_")) for part in parts)]
        return not names or not all(name.endswith(".parquet") for name in names)
    except (OSError, ValueError):
        return False


def each_run(runs: Iterable[Any]) -> list[Any]:
    """The runs, with the files of a folder or an archive in its place."""
    return [one for run in runs for one in (files_in(run) if is_submission(run) else [run])]
