"""Names that platforms and file systems accept, each once."""

import re
from collections.abc import Callable, Iterable

from fairevals.io.folders import safe_name


def unique(
    texts: Iterable[str], clean: Callable[[str], str], taken: Iterable[str] = (), longest: int | None = None
) -> list[str]:
    """The cleaned texts, numbered where one equals another, or one that is `taken`, apart from upper and lower case.

    Names of more than `longest` characters are cut.

    >>> unique(["a b", "A-B", "c"], column_key, ["c"])
    ['a_b', 'A_B_2', 'c_2']
    >>> unique(["abcde", "abcdf"], column_key, longest=4)
    ['abcd', 'ab_2']
    """
    seen, names = {text.casefold() for text in taken}, []
    for text in texts:
        stem = clean(text)
        name = stem[:longest]
        number = 1
        while name.casefold() in seen:
            number += 1
            ending = f"_{number}"
            name = stem[: longest and longest - len(ending)] + ending
        seen.add(name.casefold())
        names.append(name)
    return names


def column_key(text: str) -> str:
    """A key of letters, digits and underscores.

    >>> column_key("GFR(util='ERR')@20"), column_key("†")
    ('GFR_util_ERR_20', 'value')
    """
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_") or "value"


def measure_file(text: str) -> str:
    """A safe file name for the label of a measure.

    >>> measure_file("GFR(util='ERR')@20"), measure_file("精度@10")
    ('GFR_util_ERR_20', '精度_10')
    """
    return safe_name(re.sub(r"\W+", "_", text).strip("_"))


def measure_key(text: str) -> str:
    """A key that reads like the measure, without colons, spaces, double quotes and backslashes.

    >>> measure_key("my run: nDCG@10"), measure_key("GFR(util='ERR')@20")
    ('my_run_nDCG@10', "GFR(util='ERR')@20")
    """
    return re.sub(r"[^\w.,@=()'+-]+", "_", text).strip("_") or "value"


def safe_file_name(text: str) -> str:
    """A safe file name for that of another file, with the same ending.

    >>> safe_file_name("a b.csv"), safe_file_name("task.toml")
    ('a_b-c8687a08.csv', 'task.toml')
    """
    ending = re.search(r"(\.[a-zA-Z0-9]{1,10})?\Z", text)[0]  # type: ignore[index]
    return safe_name(text.removesuffix(ending)) + ending
