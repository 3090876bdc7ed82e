"""Unfinished files and folders: hidden, locked while someone writes them, and removed once nobody does."""

import os
import re
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl


@contextmanager
def part_of(path: Path, make: Callable[[Path], object]) -> Iterator[Path]:
    """An unfinished file or folder beside `path`, which `make` makes; what is still there at the end is removed.

    Its name is `.NAME.TOKEN.part`. It is locked, which tells it from what a killed process left: the system drops the
    locks of a process that ends. Parts of the same path that nobody has locked are removed first.
    """
    missing = [parent for parent in path.parents if not parent.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(PermissionError):  # a folder that can be written but not listed
            for other in path.parent.iterdir():
                remove_abandoned(other, path.name)
        while True:
            # The name is chosen before anything has it, so that an interruption at any point can remove it.
            part = path.parent / f".{path.name[:40]}.{secrets.token_hex(8)}.part"
            try:
                make(part)
                with locked(part) as is_there:
                    if is_there:
                        yield part
                        return
            finally:
                _remove(part)
    except BaseException:
        for parent in missing:
            with suppress(OSError):
                parent.rmdir()
        raise


def is_part(name: str, of: str | None = None) -> bool:
    """Whether a name is that of an unfinished file or folder: of one with the name `of`, or of any.

    >>> is_part(".index.html.0123456789abcdef.part"), is_part(".index.html.part"), is_part("film.part")
    (True, False, False)
    """
    stem = ".*" if of is None else re.escape(of[:40])
    return re.fullmatch(rf"\.{stem}\.[0-9a-f]{{16}}\.part", name, re.DOTALL) is not None


def remove_abandoned(path: Path, of: str | None = None) -> bool:
    """Remove a part, as its name tells, that nobody writes any more; returns whether it was one."""
    if is_part(path.name, of):
        with suppress(OSError), locked(path, wait=False) as is_there:
            if is_there and sys.platform != "win32":  # there, nothing tells whether the writer is alive
                # Under the lock: a process that has only just made it waits for the lock and makes another.
                _remove(path)
                return True
    return False


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold the lock of a file or folder; yields whether it is still there under its name.

    Without `wait`, a lock that another process holds is an OSError, as is a file system that has no locks.
    """
    if sys.platform == "win32":
        yield path.exists()
        return
    # Neither follow a link nor wait for the other end of a pipe.
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:  # another process was faster
        yield False
        return
    try:
        # NFS locks only what is open for writing, which a folder cannot be.
        with suppress(OSError) if wait else nullcontext():
            fcntl.flock(opened, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            is_there = os.path.samestat(os.fstat(opened), path.lstat())
        except FileNotFoundError:
            is_there = False
        yield is_there
    finally:
        os.close(opened)


def _remove(part: Path) -> None:
    """Remove a file, or a folder with its content, as far as the system allows."""
    with suppress(OSError):
        if part.is_dir() and not part.is_symlink():
            for folder, _, _ in os.walk(part):  # one that is read-only could not be emptied
                Path(folder).chmod(0o700)
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)


@contextmanager
def naming(path: Path, real: Path, *, unnamed: bool = False) -> Iterator[None]:
    """Errors of the system while `real`, which `path` leads to, is written say that `path` cannot be written.

    An error about a file in the folder, or in its part, names that file; one about any other file stays as it is. With
    `unnamed`, an error that names no file is taken to be about `path`.
    """
    try:
        yield
    except OSError as error:
        given = error.filename
        name = _destination(Path(given), path, real) if isinstance(given, str) else path if unnamed else None
        if name is not None:
            error.filename = str(name)
            del error.filename2
            if error.strerror and not error.strerror.startswith("cannot be written"):
                error.strerror = f"cannot be written ({error.strerror})"
        raise


def _destination(file: Path, path: Path, real: Path) -> Path | None:
    """What a file would have become; None if it is neither `real`, above it, in it nor in a part of it."""
    if real.is_relative_to(file):
        return path
    if not file.is_relative_to(real.parent):
        return None
    first, *rest = file.relative_to(real.parent).parts
    if first != real.name and not is_part(first, real.name):
        return None
    return path.joinpath(*(name for name in rest if not is_part(name)))
