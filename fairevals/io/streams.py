"""Bytes in and out: compressed or not, from standard input, within limits; written whole or not at all."""

from __future__ import annotations

import io
import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from fairevals.errors import InputError, Place, UsageError, escape

BOM = b"\xef\xbb\xbf"
_XZ_PIECE = 1 << 18
_XZ_MEMORY = 1 << 28
"""Four times what the strongest setting of xz (-9e) asks for."""


def _setting(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    if text and not (text.isdecimal() and len(text) <= 18 and int(text) > 0):
        raise UsageError(
            f"the environment variable {name} is {escape(text)!r}; expected a whole number above 0 "
            "of at most 18 digits"
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
        import zstandard  # noqa: F401
    except ImportError:
        raise UsageError("reading .zst files needs Python 3.14 or: pip install 'fairevals[zst]'") from None
    return cast(BinaryIO, io.BufferedReader(_Pieces(_zstd_pieces(file))))


def _zstd_pieces(file: BinaryIO) -> Iterator[bytes]:
    """The frames of the file, decompressed. The library's own reader takes a frame cut short for a whole one."""
    from zstandard import ZstdDecompressor

    size = 1 << 10  # a byte can become 32 kilobytes
    data = file.read(size)
    while data:
        frame = ZstdDecompressor().decompressobj()
        while not frame.eof:
            if not data:
                raise EOFError("cut short")
            yield frame.decompress(data)
            data = b"" if frame.eof else file.read(size)
        data = frame.unused_data or file.read(size)


def _xz_pieces(file: BinaryIO) -> Iterator[bytes]:
    """The streams of the file, decompressed. `LZMAFile` has no limit: a header can ask for gigabytes."""
    from lzma import LZMADecompressor

    data = file.read(_XZ_PIECE)
    while data:
        stream = LZMADecompressor(memlimit=_XZ_MEMORY)
        while not stream.eof:
            if stream.needs_input and not data:
                raise EOFError("cut short")
            yield stream.decompress(data, _XZ_PIECE)
            data = file.read(_XZ_PIECE) if stream.needs_input and not stream.eof else b""
        data = stream.unused_data.lstrip(b"\0")  # zeros may stand between streams
        while not data and (more := file.read(_XZ_PIECE)):
            data = more.lstrip(b"\0")


class _Pieces(io.RawIOBase):
    """Pieces of bytes as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._rest = pieces, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest and (piece := next(self._pieces, None)) is not None:
            self._rest = piece
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


def _decompressed(file: BinaryIO, suffix: str) -> BinaryIO:
    if suffix == ".gz":
        import gzip

        return cast(BinaryIO, gzip.GzipFile(fileobj=file))
    if suffix == ".bz2":
        import bz2

        return cast(BinaryIO, bz2.BZ2File(file))
    if suffix == ".xz":
        return cast(BinaryIO, io.BufferedReader(_Pieces(_xz_pieces(file))))
    return _zstd(file) if suffix == ".zst" else file


def reads_once(path: str | os.PathLike[str]) -> bool:
    """Whether what stands there is gone once it was read: standard input, a pipe, a device."""
    try:
        mode = 0 if os.fspath(path) == "-" else Path(path).stat().st_mode
    except (OSError, ValueError):  # whoever opens it says what is wrong
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


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
        source = cls(name or ("<stdin>" if path == "-" else path), None)
        if reads_once(path):
            # A message about a bad line needs a second look, and even finding out the format does.
            source._data = source._read_once(path)
        return source

    def _read_once(self, path: str) -> bytes:
        try:
            with nullcontext(sys.stdin.buffer) if path == "-" else Path(path).open("rb") as file:
                return self._all(file)
        except OSError as error:
            raise InputError(Place(self.name), f"cannot be read ({error.strerror or error})") from None

    def _all(self, file: BinaryIO) -> bytes:
        found = bytearray()
        # One system call at a time, where that can be had: Python sees a signal only between two of them.
        read: Callable[[int], bytes] = getattr(file, "read1", file.read)
        while data := read(1 << 20):
            found += data
            if len(found) > self.limits.bytes:
                raise self._too_large()
        return bytes(found)

    def _too_large(self) -> InputError:
        return InputError(
            Place(self.name), f"more than {self.limits.bytes} bytes", "less (FAIREVALS_MAX_BYTES)"
        )

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
                Place(self.name), f"cannot be read ({escape(str(error)) or 'cut short'})"
            ) from None

    def read(self) -> bytes:
        """The whole of it, for formats that do not come in lines."""
        with self.open() as file:
            return self._all(file)

    def chunks(self, size: int = 1 << 22) -> Iterator[bytes]:
        """The file in pieces of about `size` bytes, cut behind a line end; no byte-order mark, last line ended."""
        limit = self.limits
        with self.open() as file:
            rest, total, done = b"", 0, 0
            first = True
            while data := file.read(size):
                if first:
                    data = data.removeprefix(BOM)
                    first = False
                total += len(data)
                if total > limit.bytes:
                    raise self._too_large()
                cut = data.rfind(b"\n") + 1
                if cut:
                    piece = rest + data[:cut] if rest else data[:cut]
                    self._check_lines(piece, done)
                    done += len(piece)
                    rest = data[cut:]
                    yield piece
                else:
                    rest += data
                self._check_lines(rest, done)
            if rest:
                yield rest + b"\n"

    def _check_lines(self, piece: bytes, before: int) -> None:
        """Raise where a line of the piece, which has `before` bytes before it, is longer than the limit."""
        longest, at = self.limits.line, 0
        while len(piece) - at > longest:
            end = piece.rfind(b"\n", at, at + longest + 1)
            if end < 0:
                place = Place(self.name, self._line_ends(before) + piece.count(b"\n", 0, at) + 1)
                raise InputError(place, f"a line of more than {longest} bytes", "less (FAIREVALS_MAX_LINE)")
            at = end + 1

    def _line_ends(self, count: int) -> int:
        """How many lines end within the first bytes: read again, since it is asked only for a message."""
        with self.open() as file:
            start = file.read(len(BOM)).removeprefix(BOM)
            found, count = start.count(b"\n", 0, count), count - len(start)
            while count > 0 and (data := file.read(min(count, 1 << 22))):
                found, count = found + data.count(b"\n"), count - len(data)
        return found

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """The lines, numbered from 1, without their ends: the slow and careful way."""
        number = 0
        for chunk in self.chunks(1 << 20):
            for line in chunk.split(b"\n")[:-1]:
                number += 1
                yield number, line.removesuffix(b"\r")

    def head(self) -> list[bytes]:
        """The first few lines, for finding out the format."""
        found: list[bytes] = []
        for chunk in self.chunks(1 << 14):
            found += [line for line in chunk.split(b"\n") if line.strip()]
            if len(found) >= 5:
                break
        return found[:5]


@contextmanager
def written_bytes(path: Path) -> Iterator[BinaryIO]:
    """A file that appears under its name whole, when everything was written, or not at all."""
    if path.exists() and reads_once(path):  # a pipe or device must stay what it is
        with path.open("wb") as device:
            yield device
        return
    path = Path(
        os.path.realpath(path)
    )  # a link stays a link (`/dev/stdout` is one): what it points to is replaced
    path.parent.mkdir(parents=True, exist_ok=True)
    # The name is known before the file is there: an interruption at any point finds what to take away.
    unfinished = path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}.part")
    try:
        with unfinished.open("xb") as file:
            yield cast(BinaryIO, file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


@contextmanager
def written(path: Path, *, overwrite: bool = True) -> Iterator[TextIO]:
    """A text file in UTF-8, written as `written_bytes` does."""
    if not overwrite and path.exists():
        raise UsageError(f"{escape(str(path))} is there already; choose another name")
    with written_bytes(path) as file:
        # Names of files may hold what is no text at all (half of a UTF-16 pair): better escaped than lost.
        text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="")
        yield text
        text.flush()
        text.detach()
