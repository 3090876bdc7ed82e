"""Bytes in and out: compressed or not, from standard input, within limits; written whole or not at all."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from fairevals.errors import InputError, Place, UsageError, shown

BOM = b"\xef\xbb\xbf"


def _setting(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    if text and not (text.isdecimal() and int(text) > 0):
        raise UsageError(
            f"the environment variable {name} is {shown(text)!r}; expected a whole number above 0"
        )
    return int(text) if text else default


@dataclass(frozen=True)
class Limits:
    """What a file from a stranger may cost. Set by FAIREVALS_MAX_BYTES and FAIREVALS_MAX_LINE."""

    bytes: int = 64 << 30
    """Bytes after decompression, of one file."""
    line: int = 1 << 20
    """Bytes of one line."""

    @classmethod
    def current(cls) -> Limits:
        """The limits in force."""
        return cls(_setting("FAIREVALS_MAX_BYTES", cls.bytes), _setting("FAIREVALS_MAX_LINE", cls.line))


def _zstd(file: BinaryIO) -> BinaryIO:
    try:
        if sys.version_info >= (3, 14):
            from compression.zstd import ZstdFile

            return cast(BinaryIO, ZstdFile(file))
        from zstandard import ZstdDecompressor
    except ImportError:
        raise UsageError("reading .zst files needs Python 3.14 or: pip install 'fairevals[zst]'") from None
    return cast(BinaryIO, ZstdDecompressor().stream_reader(file, read_across_frames=True))


def _decompressed(file: BinaryIO, suffix: str) -> BinaryIO:
    if suffix == ".gz":
        import gzip

        return cast(BinaryIO, gzip.GzipFile(fileobj=file))
    if suffix == ".bz2":
        import bz2

        return cast(BinaryIO, bz2.BZ2File(file))
    if suffix == ".xz":
        import lzma

        return cast(BinaryIO, lzma.LZMAFile(file))
    return _zstd(file) if suffix == ".zst" else file


class Source:
    """A file to read, perhaps twice: by path, `-` for standard input, or bytes already at hand.

    >>> source = Source.of(b"1 0 a 1", "example.qrels")
    >>> [bytes(chunk) for chunk in source.chunks(4)]
    [b'1 0 a 1\\n']
    """

    def __init__(self, name: str, data: bytes | None, limits: Limits | None = None) -> None:
        self.name, self._data, self.limits = name, data, limits or Limits.current()

    @classmethod
    def of(cls, what: str | os.PathLike[str] | bytes, name: str | None = None) -> Source:
        """A source for a path, `-`, or bytes (which need a name for messages)."""
        if isinstance(what, bytes):
            return cls(name or "<bytes>", what)
        path = os.fspath(what)
        if path != "-":
            return cls(name or path, None)
        limits = Limits.current()
        # Standard input can be read only once, and a message about a bad line needs a second look.
        data = sys.stdin.buffer.read(limits.bytes + 1)
        if len(data) > limits.bytes:
            raise InputError(
                Place("<stdin>"), f"more than {limits.bytes} bytes", "less (FAIREVALS_MAX_BYTES)"
            )
        return cls("<stdin>", data, limits)

    @property
    def suffixes(self) -> list[str]:
        """The endings of the name, such as ['.csv', '.gz'], in lower case."""
        return [suffix.lower() for suffix in Path(self.name).suffixes[-2:]]

    @property
    def table_suffix(self) -> str:
        """The ending that tells the format, below any compression."""
        known = [s for s in self.suffixes if s not in (".gz", ".bz2", ".xz", ".zst")]
        return known[-1] if known else ""

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The decompressed bytes; every way in which reading can fail becomes an `InputError`."""
        errors: tuple[type[Exception], ...] = (OSError, EOFError, ValueError)
        suffix = self.suffixes[-1] if self.suffixes else ""
        if suffix == ".xz":
            import lzma

            errors = (*errors, lzma.LZMAError)
        elif suffix == ".gz":
            import zlib

            errors = (*errors, zlib.error)
        elif suffix == ".zst":
            errors = (*errors, Exception)  # the two libraries share no base class for a broken file
        try:
            with io.BytesIO(self._data) if self._data is not None else Path(self.name).open("rb") as raw:
                yield _decompressed(cast(BinaryIO, raw), suffix)
        except (InputError, UsageError):
            raise
        except errors as error:
            if isinstance(error, OSError) and error.strerror:
                raise InputError(Place(self.name), f"cannot be read ({error.strerror})") from None
            raise InputError(
                Place(self.name), f"cannot be read ({shown(str(error)) or 'cut short'})"
            ) from None

    def chunks(self, size: int = 1 << 22) -> Iterator[bytes]:
        """The file in pieces of about `size` bytes, cut behind a line end; no byte-order mark, last line ended."""
        limit = self.limits
        with self.open() as file:
            rest, total, lines = b"", 0, 0
            first = True
            while data := file.read(size):
                if first:
                    data = data.removeprefix(BOM)
                    first = False
                total += len(data)
                if total > limit.bytes:
                    raise InputError(
                        Place(self.name), f"more than {limit.bytes} bytes", "less (FAIREVALS_MAX_BYTES)"
                    )
                cut = data.rfind(b"\n") + 1
                if cut:
                    piece = rest + data[:cut] if rest else data[:cut]
                    lines += piece.count(b"\n")
                    rest = data[cut:]
                    yield piece
                else:
                    rest += data
                if len(rest) > limit.line:
                    raise InputError(
                        Place(self.name, lines + 1),
                        f"a line of more than {limit.line} bytes",
                        "less (FAIREVALS_MAX_LINE)",
                    )
            if rest:
                yield rest + b"\n"

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """The lines, numbered from 1, without their ends: the slow and careful way."""
        number = 0
        for chunk in self.chunks(1 << 20):
            for line in chunk.split(b"\n")[:-1]:
                number += 1
                yield number, line.removesuffix(b"\r")

    def head(self) -> list[bytes]:
        """The first few lines, for finding out the format."""
        found = []
        for _, line in self.lines():
            if line.strip():
                found.append(line)
            if len(found) == 5:
                break
        return found


@contextmanager
def written(path: Path, *, overwrite: bool = True) -> Iterator[TextIO]:
    """A text file that appears under its name whole, when everything was written, or not at all."""
    if not overwrite and path.exists():
        raise UsageError(f"{shown(str(path))} is there already; choose another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=".part")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files that only their owner may read; results are meant to be shared.
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
