"""CSV, TSV and parquet tables in, as pandas frames of text."""

from __future__ import annotations

import io
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fairevals.errors import InputError, Place, UsageError, escape
from fairevals.ids import Ids
from fairevals.io.streams import Source

if TYPE_CHECKING:
    import pandas as pd

MOST_COLUMNS = 1000


def identifiers(frame: pd.DataFrame, column: str, name: str, lines: Sequence[int]) -> Ids:
    """A column of names as ids; an `InputError` where one is empty or cannot be written as text."""
    missing = frame[column].isna().tolist()
    texts = ["" if no else str(value) for value, no in zip(frame[column].tolist(), missing, strict=True)]
    for line, text in zip(lines, texts, strict=True):
        if not text:
            raise InputError(Place(name, int(line)), f"an empty {column}", f"a {column}")
        if "\0" in text or not (text.isascii() or _encodes(text)):
            found = f"a {column} with a character that is none: {escape(ascii(text))}"
            raise InputError(Place(name, int(line)), found, "text")
    return Ids.of(texts)


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a pair of UTF-16
        return False
    return True


def check_parquet(what: Any, name: str, most: int) -> None:
    """Raise where a parquet file is more than `most` bytes once it is unpacked, or has columns of lists or tables.

    A text that stands in a million rows takes a few bytes of the file: what matters is the sum over rows.
    """
    pa, pc, pq = (import_module(f"pyarrow{part}") for part in ("", ".compute", ".parquet"))
    too_large = InputError(Place(name), f"more than {most} bytes", "less (FAIREVALS_MAX_BYTES)")
    with pq.ParquetFile(what) as file:
        metadata, schema = file.metadata, file.schema_arrow
    nested = [column.name for column in schema if pa.types.is_nested(column.type)]
    if nested:
        raise InputError(
            Place(name), f"the column {escape(nested[0])!r} of lists or tables", "texts and numbers"
        )
    stored = sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))
    total = max(stored, 8 * metadata.num_rows * len(schema.names))
    if total > most:
        raise too_large
    if metadata.num_rows * stored <= most:  # even if every row had all of it
        return
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    texts = [
        column.name
        for column in schema
        if any(is_kind(getattr(column.type, "value_type", column.type)) for is_kind in kinds)
    ]
    with pq.ParquetFile(what, read_dictionary=texts) as file:
        for batch in file.iter_batches(1 << 16, columns=texts) if texts else ():
            for column in batch.columns:
                lengths = pc.binary_length(column.dictionary)
                total += pc.sum(lengths.take(column.indices)).as_py() or 0
            if total > most:
                raise too_large


def read_table(source: Source) -> pd.DataFrame:
    """A table with a header, every column as text (parquet keeps its types)."""
    import pandas as pd

    try:
        if source.table_suffix == ".parquet":
            raw = io.BytesIO(source.read())
            check_parquet(raw, source.name, source.limits.bytes)
            return pd.read_parquet(raw).reset_index(drop=True)
        data = b"".join(source.chunks())
        header = data.split(b"\n", 1)[0]
        if max(header.count(b","), header.count(b"\t")) >= MOST_COLUMNS:
            raise InputError(Place(source.name, 1), f"more than {MOST_COLUMNS} columns", "a few")
        frame = pd.read_csv(
            io.BytesIO(data),
            sep="\t" if b"\t" in header else ",",
            dtype=str,
            keep_default_na=False,
            encoding="utf-8",
            skip_blank_lines=False,
        )
        if not isinstance(frame.index, pd.RangeIndex):  # pandas takes columns without a name as row labels
            found, names = "more columns than names in the header", ", ".join(map(str, frame.columns))
            expected = f"as many as there are names ({escape(names, 120)})"
            raise InputError(Place(source.name, 2), found, expected)
        # The index stays, so that blank lines count where a line is named.
        return frame[(frame.notna() & (frame != "")).any(axis=1)]
    except ImportError:
        raise UsageError("reading parquet needs: pip install 'fairevals[parquet]'") from None
    except (InputError, UsageError):
        raise
    except (
        Exception
    ) as error:  # pandas and pyarrow raise many kinds for a broken table; all mean the same here
        first = str(error).strip().split("\n")[0]
        raise InputError(Place(source.name), f"not a readable table ({escape(first, 120)})") from None
