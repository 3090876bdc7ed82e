"""CSV, TSV and parquet tables in, as pandas frames of text."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairevals.errors import InputError, Place, UsageError, shown
from fairevals.ids import Ids
from fairevals.io.streams import Source

if TYPE_CHECKING:
    import pandas as pd


def identifiers(frame: pd.DataFrame, column: str, name: str, lines: Sequence[int]) -> Ids:
    """A column of names as ids; an `InputError` where one is empty or cannot be written as text."""
    missing = frame[column].isna().tolist()
    texts = ["" if no else str(value) for value, no in zip(frame[column].tolist(), missing, strict=True)]
    for line, text in zip(lines, texts, strict=True):
        if not text:
            raise InputError(Place(name, int(line)), f"an empty {column}", f"a {column}")
        if "\0" in text or not (text.isascii() or _encodes(text)):
            found = f"a {column} with a character that is none: {shown(ascii(text))}"
            raise InputError(Place(name, int(line)), found, "text")
    return Ids.of(texts)


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a pair of UTF-16
        return False
    return True


def read_table(source: Source) -> pd.DataFrame:
    """A table with a header, every column as text (parquet keeps its types)."""
    import pandas as pd

    try:
        if source.table_suffix == ".parquet":
            return pd.read_parquet(io.BytesIO(source.read())).reset_index(drop=True)
        data = b"".join(source.chunks())
        header = data.split(b"\n", 1)[0]
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
            expected = f"as many as there are names ({shown(names, 120)})"
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
        raise InputError(Place(source.name), f"not a readable table ({shown(first, 120)})") from None
