"""CSV, TSV and parquet tables in, as pandas frames of text."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from fairevals.errors import InputError, Place, UsageError, shown
from fairevals.io.streams import Source

if TYPE_CHECKING:
    import pandas as pd


def read_table(source: Source) -> pd.DataFrame:
    """A table with a header, every column as text (parquet keeps its types)."""
    import pandas as pd

    try:
        if source.table_suffix == ".parquet":
            return pd.read_parquet(io.BytesIO(source.read()))
        data = b"".join(source.chunks())
        header = data.split(b"\n", 1)[0]
        frame = pd.read_csv(
            io.BytesIO(data),
            sep="\t" if b"\t" in header else ",",
            dtype=str,
            keep_default_na=False,
            encoding="utf-8",
        )
        if not isinstance(frame.index, pd.RangeIndex):  # pandas takes columns without a name as row labels
            found, names = "more columns than names in the header", ", ".join(map(str, frame.columns))
            expected = f"as many as there are names ({shown(names, 120)})"
            raise InputError(Place(source.name, 2), found, expected)
        return frame
    except ImportError:
        raise UsageError("reading parquet needs: pip install 'fairevals[parquet]'") from None
    except (InputError, UsageError):
        raise
    except (
        Exception
    ) as error:  # pandas and pyarrow raise many kinds for a broken table; all mean the same here
        first = str(error).strip().split("\n")[0]
        raise InputError(Place(source.name), f"not a readable table ({shown(first, 120)})") from None
