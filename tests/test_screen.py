"""Tables fit the terminal: its width, its characters, its colours."""

import io
import os
import re

import pytest

import fairevals as fe
from fairevals.cli.main import main
from fairevals.io.cells import Table, ValueCell
from fairevals.io.screen import SCREEN, Screen, fold, text_table, width

MEASURES = [f"{name}(attr='ORIGIN')@20 ↑" for name in ("GF", "AWRF", "D_group", "EE_L", "EUR")]


def board(runs, measures, **more):
    rows = tuple((f"run-{r}", *(0.1 * r + 0.01 * m for m in range(len(measures)))) for r in range(runs))
    footer = (("topics", *[40] * len(measures)),)
    return Table(("run", *measures), rows, frozenset({(runs - 1, len(measures))}), footer, **more)


def numbers(text):
    return sorted(re.findall(r"\d\.\d{4}", text))


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
@pytest.mark.parametrize("turns", [False, True])
@pytest.mark.parametrize("runs", [1, 2, 8, 30])
def test_every_width_shows_every_number_once(columns, turns, runs):
    table = board(runs, MEASURES, turns=turns)
    text = text_table(table, 4, Screen(columns))
    assert max(map(width, text.splitlines())) <= columns
    assert numbers(text) == numbers(text_table(table, 4, Screen(10_000)))
    assert text.count("*") == 1


def test_a_table_that_fits_stays_as_it_is():
    assert text_table(board(2, ["P ↑"]), 4).splitlines() == [
        "run         P ↑",
        "───────────────",
        "run-0    0.0000",
        "run-1    0.1000 *",
        "───────────────",
        "topics       40",
    ]


def test_heads_are_folded_first():
    text = text_table(board(2, ["nDCG@10 ↑", "AWRF(attr='SEX')@20 ↑"]), 4, Screen(40))
    assert text.splitlines()[:2] == [
        "           nDCG   AWRF(attr='SEX')",
        "run       @10 ↑              @20 ↑",
    ]


@pytest.mark.parametrize(
    ("head", "lines", "expected"),
    [
        ("nDCG@10 ↑", 2, ["nDCG", "@10 ↑"]),
        ("nDCG@10 ↑", 1, ["nDCG@10 ↑"]),
        ("won/tied/lost", 3, ["won/", "tied/", "lost"]),
        ("GF(attr='A',div='RNOD')@20", 3, ["GF(attr='A',", "div='RNOD')", "@20"]),
        ("word", 3, ["word"]),
        ("", 2, [""]),
    ],
)
def test_folding(head, lines, expected):
    assert fold(head, lines) == expected


def test_few_runs_and_many_measures_are_exchanged():
    lines = text_table(board(1, MEASURES, turns=True), 4).splitlines()
    assert lines[0].split() == ["run-0", "topics"]
    assert lines[2].split() == ["GF(attr='ORIGIN')@20", "↑", "0.0000", "40"]
    assert len(lines) == 2 + len(MEASURES)


def test_columns_that_do_not_fit_come_in_tables_of_their_own():
    blocks = text_table(board(30, MEASURES), 4).split("\n\n")
    assert len(blocks) > 1
    for block in blocks:
        rows = [line.split()[0] for line in block.splitlines() if line.startswith("run")]
        assert rows == ["run", *(f"run-{r}" for r in range(30))]


def test_the_first_key_becomes_a_line_before_its_rows():
    rows = [(m * (r == 0), f"run-{r}", *[0.5] * 7) for m in ("nDCG@10", "ERR@20") for r in range(2)]
    table = Table(("measure", "run", *["difference"] * 7), tuple(rows), keys=2)
    text = text_table(table, 4, Screen(70))
    lines = [line for line in text.splitlines() if line in ("nDCG@10", "ERR@20")]
    assert lines == ["nDCG@10", "ERR@20"] * text.count("run ")
    assert "measure" not in text
    table = Table(table.columns, table.rows, footer=(("topics", "", *[40] * 7),), keys=2)
    assert re.search("^topics  .* 40$", text_table(table, 4, Screen(70)), re.M)
    assert "measure" in text_table(table, 4, Screen(200))


def test_long_texts_are_wrapped_and_values_with_intervals_are_not():
    found = "a grade that is not a number of any kind whatever"
    text = text_table(Table(("file", "found", "expected"), (("a.run", found, found),)), 4, Screen(60))
    assert max(map(len, text.splitlines())) <= 60
    assert len(text.splitlines()) > 3
    assert [" ".join(text.split()).count(word) for word in ("grade", "whatever")] == [2, 2]
    cells = tuple(ValueCell(0.25, "ab", "[0.100, 0.400]") for _ in range(5))
    assert (
        text_table(Table(("run", *"vwxyz"), (("a", *cells),)), 4, Screen(60)).count(
            "0.2500 [0.100, 0.400] ab"
        )
        == 5
    )


def test_names_are_never_cut_even_if_they_are_wider_than_the_screen():
    name = "THUIR-QD-R" * 6
    assert name in text_table(Table(("run", "P"), ((name, 0.5),)), 4, Screen(40))


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


class Pipe(io.StringIO):
    encoding = "latin-1"


def test_what_a_stream_can_show(monkeypatch):
    for name in ("NO_COLOR", "TERM", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "132")
    assert Screen.of(Terminal()) == Screen(132, True, os.name != "nt")
    monkeypatch.setenv("COLUMNS", "3")
    assert Screen.of(Terminal()).columns == 40
    assert Screen.of(Pipe()) == Screen(80, False, False)
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as patched:
            patched.setenv(name, value)
            assert not Screen.of(Terminal()).color


def test_colours_change_nothing_but_colours():
    table = board(2, ["P ↑", "RR ↑"])
    coloured = text_table(table, 4, Screen(color=True))
    assert "\033[32m0.1100 *\033[0m" in coloured  # the star stays: the colour is not alone
    assert re.sub(r"\033\[\d+m", "", coloured) == text_table(table, 4, Screen())


def test_where_the_encoding_has_no_box_characters():
    rows = (("a", "0.50 ±0.01"), ("b", "0.25 †"), ("c", None))
    table = Table(("run", "P ↑"), rows, footer=(("topics", "2–3"),))
    plain, boxes = (text_table(table, 4, Screen(unicode=u)) for u in (False, True))
    assert plain.isascii()
    assert [len(line) for line in plain.splitlines()] == [len(line) for line in boxes.splitlines()]
    assert "P ^" in plain


def test_the_program_takes_its_standard_output_and_files_have_80_columns(tmp_path, monkeypatch, capsys):
    (tmp_path / "q").write_text("t 0 a 1\nt 0 b 0\n")
    (tmp_path / "r").write_text("t Q0 b 1 2 mine\nt Q0 a 2 1 mine\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fairevals.cli.main.sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "300")
    words = ["score", "--qrels", "q", "r", *(w for k in range(1, 13) for w in ("-m", f"nDCG@{k}"))]
    assert main(words) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) > 120
    assert main([*words, "-o", "out.txt"]) == 0
    assert max(map(len, (tmp_path / "out.txt").read_text().splitlines())) <= 80
    assert "\033" not in (tmp_path / "out.txt").read_text()
    assert SCREEN.get() == Screen()
    result = fe.evaluate("r", "q", [f"nDCG@{k}" for k in range(1, 13)])
    assert str(result) + "\n" == (tmp_path / "out.txt").read_text()


def test_names_of_measures_are_wrapped():
    """They have no spaces, and one alone may nearly fill a line."""
    options = "attr='BOTH',target='task',relevant_only=True,attention='trecfair'"
    rows = tuple((f"EE_{which}({options})@20", 0.5, 12, 105, 7) for which in "LDR")
    text = text_table(Table(("measure", "D", "t-test", "ANOVA", "interval"), rows))
    assert max(map(width, text.splitlines())) <= 80
    assert text.count("t-test") == 1
    assert text.splitlines()[2].split() == ["EE_L(attr='BOTH',target='task',", "0.5000", "12", "105", "7"]
