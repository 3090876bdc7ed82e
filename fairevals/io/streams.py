"""Bytes in and out: compressed or not, from standard input, within limits; written completely or not at all."""

import bz2
import io
import json
import lzma
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any, BinaryIO, NoReturn, Self, TextIO, cast

from fairevals.errors import InputError, Place, UsageError, escape
from fairevals.io.archives import member_of, opened_member
from fairevals.io.parts import naming, part_of

BOM = b"\xef\xbb\xbf"
_TEXT = re.compile(rb"[^ \t\r\n][^\n]*")
_DATA = re.compile(rb"^[ \t\r]*+[^ \t\r\n#][^\n]*", re.MULTILINE)
CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""A control character that no text has: any but tab and line ends."""
_HEAD = 1 << 12
_PIECE = 1 << 18
_XZ_MEMORY = 1 << 28
"""Four times what the strongest setting of xz (-9e) asks for."""
_COMPRESSIONS = {
    ".gz": re.compile(rb"\x1f\x8b"),
    ".bz2": re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"),
    ".xz": re.compile(rb"\xfd7zXZ\0"),
    ".zst": re.compile(rb"\x28\xb5\x2f\xfd"),
}
"""The first bytes of compressed files, by the suffix that they should have."""
_OTHER_FORMATS = {
    "a zip archive": re.compile(rb"PK(?:\x03\x04|\x05\x06)"),
    "a PDF document": re.compile(rb"%PDF-"),
    "a parquet table (its name must end in .parquet)": re.compile(rb"PAR1[\0-\x1f\x80-\xff]"),
    "an HTML page": re.compile(
        rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html|\?xml[^<]*<(?:!doctype\s+)?html)", re.I
    ),
    "UTF-16 text; save it as UTF-8": re.compile(rb"\xff\xfe|\xfe\xff|(?:[^\0]\0){8}|(?:\0[^\0]){8}"),
}
"""The first bytes of what people hand in by mistake."""


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
    """How large input may be. Set by the environment variables FAIREVALS_MAX_BYTES, _LINE and _CELLS."""

    bytes: int = 64 << 30  # of one file after decompression
    line: int = 1 << 20
    cells: int = 1 << 27  # documents of one topic × groups of one attribute: 1 GiB, about three times

    @classmethod
    def current(cls) -> Self:
        """The limits in force."""
        return cls(
            _setting("FAIREVALS_MAX_BYTES", cls.bytes),
            _setting("FAIREVALS_MAX_LINE", cls.line),
            _setting("FAIREVALS_MAX_CELLS", cls.cells),
        )


def too_large(file: str, limit: int) -> InputError:
    """The error for a file of more bytes than the limit allows."""
    return InputError(Place(file), f"more than {limit} bytes; raise FAIREVALS_MAX_BYTES to allow it")


_DECOMPRESSORS: dict[str, tuple[Callable[[], Any], int]] = {
    ".gz": (partial(zlib.decompressobj, 31), 1 << 14),
    ".bz2": (bz2.BZ2Decompressor, _PIECE),
    ".xz": (partial(lzma.LZMADecompressor, memlimit=_XZ_MEMORY), _PIECE),
}
"""What makes decompressors of single streams, and how many bytes to give them at once. Those of bz2 and xz can limit
their output; for the others the input is kept small."""


def _zstd() -> tuple[Callable[[], Any], int]:
    try:
        if sys.version_info >= (3, 14):
            from compression.zstd import ZstdDecompressor

            return ZstdDecompressor, _PIECE
        from zstandard import ZstdDecompressor
    except ImportError:
        raise UsageError("reading .zst files needs Python 3.14 or: pip install 'fairevals[zst]'") from None
    return lambda: ZstdDecompressor().decompressobj(), 1 << 10


def _decompressed(file: BinaryIO, suffix: str) -> Iterator[bytes]:
    """The decompressed streams of a file. Unlike the readers of the libraries this refuses streams that are cut short
    (zstandard) or ask for gigabytes (xz)."""
    decompressor, size = _DECOMPRESSORS.get(suffix) or _zstd()
    data = file.read(size)
    while data:
        stream = decompressor()
        limit = (_PIECE,) if hasattr(stream, "needs_input") else ()
        while not stream.eof:
            if not data and getattr(stream, "needs_input", True):
                raise EOFError("cut short")
            yield stream.decompress(data, *limit)
            data = file.read(size) if getattr(stream, "needs_input", True) and not stream.eof else b""
        data = stream.unused_data.lstrip(b"\0")  # there may be zeros between streams
        while not data and (more := file.read(size)):
            data = more.lstrip(b"\0")


def is_json(text: bytes) -> bool:
    """Whether a text, perhaps cut off, starts with a JSON object or list that ends at a line end or goes on.

    >>> is_json(b'{"q1": {"d1": 0.5}}'), is_json(b'[\\n  {"id": 1, "ran'), is_json(b"[1] Q0 d1 1 0.5 tag")
    (True, True, False)
    """
    line = text.lstrip().partition(b"\n")[0]
    if not line.startswith((b"{", b"[")):
        return False
    shown = text.lstrip().decode(errors="replace")
    try:
        _, end = json.JSONDecoder().raw_decode(shown)
    except json.JSONDecodeError as error:  # beyond the first line, or where the text was cut off
        return error.pos > len(line) or error.pos > _HEAD - 1000
    except (RecursionError, ValueError):
        return False
    return shown[end:].partition("\n")[0].strip() == ""


def reads_once(path: str | os.PathLike[str]) -> bool:
    """Whether a path can be read only once: standard input, a pipe, a device."""
    try:
        mode = 0 if os.fspath(path) == "-" else Path(path).stat().st_mode
    except (OSError, ValueError):  # its reader reports what is wrong
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextmanager
def reading(name: str, broken: str = "cannot be read", limit: int = 60) -> Iterator[None]:
    """Every way in which reading a file can fail becomes an `InputError`.

    `broken` is what the file is then called unless the system could not read it, and `limit` the length of the reason.
    """
    try:
        yield
    except (InputError, UsageError, MemoryError):
        raise
    except Exception as error:  # the libraries share no base class for a broken file
        if isinstance(error, OSError) and error.strerror:
            raise InputError(Place(name), f"cannot be read ({error.strerror})") from None
        reason = escape(str(error).strip().split("\n")[0], limit) or "cut short"
        raise InputError(Place(name), f"{broken} ({reason})") from None


def checked_path(what: Any) -> str | os.PathLike[str]:
    """The same, if it is a path."""
    if not isinstance(what, (str, os.PathLike)) or "\0" in os.fspath(what):
        raise UsageError(f"{escape(repr(what))} is not a path; expected the path of a file")
    return what


def _is_utf8(data: bytes) -> bool:
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False


class Source:
    """A file that can be read several times: given by path, `-` for standard input, or as bytes.

    >>> source = Source.of(b"1 0 a 1", "example.qrels")
    >>> [bytes(chunk) for chunk in source.chunks(4)]
    [b'1 0 a 1\\n']
    """

    start, end = 0, sys.maxsize
    """The bytes that are read, of a file that is not compressed."""
    ends_in_newline = True
    """Whether the last line has a line end, as far as `chunks` has seen."""

    def __init__(self, name: str, data: bytes | None) -> None:
        self.name, self._data, self.limits = name, data, Limits.current()

    @classmethod
    def of(cls, what: str | os.PathLike[str] | bytes, name: str | None = None) -> Self:
        """A source for a path, `-`, or bytes (which need a name for messages)."""
        if isinstance(what, bytes):
            return cls(name or "<bytes>", what)
        path = os.fspath(checked_path(what))
        source = cls(name or ("<stdin>" if path == "-" else path), None)
        if reads_once(path):
            # Finding the format and the line of an error both need a second look.
            with (
                reading(source.name),
                nullcontext(sys.stdin.buffer) if path == "-" else source._open() as file,
            ):
                # One system call at a time where possible: Python handles signals only between two of them.
                read: Callable[[int], bytes] = getattr(file, "read1", file.read)
                source._data = b"".join(source._endless(iter(lambda: read(1 << 20), b"")))
        return source

    def part(self, start: int, end: int) -> Self:
        """Some lines of a file that `is_plain`: its bytes from `start` to `end`."""
        part = copy(self)
        part.start, part.end = start, end
        return part

    @property
    def whole(self) -> Self:
        """The file that this is a part of."""
        return self.part(0, sys.maxsize)

    @property
    def is_plain(self) -> bool:
        """Whether the bytes of the file are its text: it is on a disk, and not compressed."""
        with self._open() as file:
            return self._data is None and not self._suffix_of(file) and not member_of(self.name)

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        """The bytes as they are."""
        member = member_of(self.name) if self._data is None else None
        with (
            reading(self.name),
            io.BytesIO(self._data)
            if self._data is not None
            else opened_member(*member)
            if member
            else Path(self.name).open("rb") as file,
        ):
            yield cast(BinaryIO, file)

    def _limited(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        total = 0
        for piece in pieces:
            total += len(piece)
            if total > self.limits.bytes:
                raise too_large(self.name, self.limits.bytes)
            yield piece

    def _endless(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """The pieces of a stream that may have no end. They are held in memory, so a text with too long a line is
        refused before the rest is read."""
        first = next(pieces, b"")
        is_text = not (self.table_suffix == ".parquet" or self._suffix_of(io.BytesIO(first)))
        lines = length = 0
        for piece in self._limited(chain([first], pieces)):
            cut = piece.rfind(b"\n") + 1
            lines, length = lines + piece.count(b"\n"), len(piece) - cut + (0 if cut else length)
            if is_text and length > self.limits.line:
                raise self._long_line(lines + 1)
            yield piece

    @property
    def table_suffix(self) -> str:
        """The last suffix in lower case, leaving out that of a compression."""
        suffixes = [suffix.lower() for suffix in Path(self.name).suffixes[-2:]]
        return next((suffix for suffix in suffixes[::-1] if suffix not in _COMPRESSIONS), "")

    def pieces(self, size: int) -> Iterator[bytes]:
        """The decompressed bytes, about `size` at a time.

        The first bytes of the file decide on the compression, and its suffix where they are not known.
        """
        with self._open() as file:
            suffix = self._suffix_of(file)
            for piece in self._limited(_decompressed(file, suffix) if suffix else self._plain(file, size)):
                for at in range(0, len(piece), size):  # a few compressed bytes may be megabytes
                    yield piece[at : at + size]

    def _suffix_of(self, file: IO[bytes]) -> str:
        """The suffix of the compression, "" if there is none. The file is then at its start."""
        first = file.read(10)
        file.seek(0)
        suffixes = [suffix for suffix, magic in _COMPRESSIONS.items() if magic.match(first)]
        suffixes += _COMPRESSIONS.keys() & {Path(self.name).suffix.lower()}
        return suffixes[0] if suffixes else ""

    def _plain(self, file: BinaryIO, size: int) -> Iterator[bytes]:
        file.seek(self.start)
        while data := file.read(min(size, self.end - file.tell())):
            yield data

    def read(self) -> bytes:
        """The whole content, for formats that do not come in lines."""
        return b"".join(self.pieces(1 << 20))

    def other_format(self) -> str:
        """What the file is instead of lines of UTF-8 text, such as "a zip archive"; empty if that is not clear."""
        first = b""
        for piece in self.pieces(_HEAD):
            first += piece[:_HEAD]
            if len(first) >= _HEAD:
                break
        kinds = [kind for kind, magic in _OTHER_FORMATS.items() if magic.match(first)]
        return kinds[0] if kinds else "JSON" if is_json(first[:_HEAD].removeprefix(BOM)) else ""

    def refuse(self, error: InputError, expected: str) -> NoReturn:
        """Raise the error; if the file is recognisably something else than `expected`, one that names it."""
        if kind := self.other_format():
            raise InputError(Place(self.name), f"this is {kind}", expected) from None
        raise error from None

    def chunks(self, size: int = 1 << 20) -> Iterator[bytes]:
        """The file in pieces of about `size` bytes that end at a line end, without byte-order mark."""
        rest, first = b"", not self.start
        for data in self.pieces(size):
            data, first = data.removeprefix(BOM) if first else rest + data, False
            cut = data.rfind(b"\n") + 1
            piece, rest = data[:cut], data[cut:]
            self._check_lines(piece)
            if piece:
                yield piece
            self._check_lines(rest)
        if rest:
            self.ends_in_newline = False
            yield rest + b"\n"

    def _check_lines(self, piece: bytes) -> None:
        """Raise if a line of the piece is longer than the limit."""
        longest, at = self.limits.line, 0
        while len(piece) - at > longest:
            end = piece.rfind(b"\n", at, at + longest + 1)
            if end < 0:
                raise self._long_line(self._find_long_line())
            at = end + 1

    def _long_line(self, number: int) -> InputError:
        found = f"a line of more than {self.limits.line} bytes; raise FAIREVALS_MAX_LINE to allow it"
        return InputError(Place(self.name, number), found)

    def _find_long_line(self) -> int:
        """The number of the first line that is too long, from a second reading."""
        number, rest = 0, b""
        for data in self.pieces(1 << 20):
            *ended, rest = (rest + data).split(b"\n")
            lengths = [len(line) > self.limits.line for line in (*ended, rest)]
            if any(lengths):
                return number + lengths.index(True) + 1
            number += len(ended)
        return number

    def lines(self, size: int = 1 << 20, *, comments: bool = True) -> Iterator[tuple[int, bytes]]:
        """The lines that are not blank, without their ends, numbered from 1. Slower than `chunks`.

        Without `comments`, most lines that start with `#` are left out too: those of chunks in which all is text.
        """
        number = 1
        for chunk in self.chunks(size):
            at = 0
            wanted = _TEXT if comments or CONTROL.search(chunk) or not _is_utf8(chunk) else _DATA
            for text in wanted.finditer(chunk):  # skips megabytes of other lines at once
                start = chunk.rfind(b"\n", at, text.start()) + 1 or at
                number += chunk.count(b"\n", at, start)
                yield number, chunk[start : text.end()].removesuffix(b"\r")
                at = text.end()
            number += chunk.count(b"\n", at)


@contextmanager
def written_bytes(path: Path) -> Iterator[BinaryIO]:
    """A file that appears under its name once everything is written, or not at all."""
    if path.exists() and reads_once(path):  # pipes and devices are not replaced
        with naming(path, path, unnamed=True), path.open("wb") as device:
            yield device
        return
    real = Path(os.path.realpath(path))  # replace what a link (such as `/dev/stdout`) points to, not the link
    with naming(path, real, unnamed=True), part_of(real, lambda part: part.touch(exist_ok=False)) as part:
        with part.open("wb") as file:
            yield cast(BinaryIO, file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(real)


@contextmanager
def written(path: Path) -> Iterator[TextIO]:
    """A UTF-8 text file, written as by `written_bytes`."""
    with written_bytes(path) as file:
        # Names of files may hold characters that UTF-8 cannot encode (half of a UTF-16 pair): escape them.
        text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="")
        yield text
        text.flush()
        text.detach()
