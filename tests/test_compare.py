"""The command `compare` on the sample task: its summary table and its full tables."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats as scipy_stats

from fairevals.api import evaluate
from fairevals.cli.main import make_parser
from fairevals.errors import UsageError
from fairevals.statistics.compare import COMPARISON_COLUMNS

pytestmark = pytest.mark.usefixtures("wide_screen")
TOP = Path(__file__).resolve().parents[1]
TASK = str(TOP / "qrels" / "task.toml")
SYSTEMS = ("bm25", "dense", "fair-rerank", "popularity", "random", "round-robin")
RUNS = [str(TOP / "runs" / f"{name}.run") for name in SYSTEMS]
NDCG, GROUP = "nDCG@10", "D_group(attr='REGION')@20"
DP = "DP(attr='ORIGIN',protected='Africa')@20"


def called(*words: str) -> int:
    args = make_parser("compare").parse_args(list(words))
    return args.run(args)


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_agrees_with_scipy_on_the_scores(capsys):
    assert (
        called("--task", TASK, *RUNS, "--baseline", "bm25", "-m", NDCG, "-m", GROUP, "--format", "csv") == 0
    )
    rows = rows_of(capsys.readouterr().out)
    assert tuple(rows[0]) == COMPARISON_COLUMNS
    assert len(rows) == 2 * (len(RUNS) - 1)
    frame = evaluate(RUNS, task=TASK, measures=[NDCG, GROUP]).frame(per_topic=True)
    frame = frame[frame.topic != "all"]
    for row in rows:
        values = frame[frame.measure == row["measure"]].pivot(index="topic", columns="run", values="value")
        both = values[[row["run"], "bm25"]].dropna()
        expected = scipy_stats.ttest_rel(both[row["run"]], both["bm25"])
        assert float(row["p"]) == pytest.approx(expected.pvalue)
        assert float(row["difference"]) == pytest.approx((both[row["run"]] - both["bm25"]).mean())
        interval = expected.confidence_interval()
        assert (float(row["low"]), float(row["high"])) == pytest.approx((interval.low, interval.high))
        assert int(row["topics"]) == len(both)
        missing = sorted(set(values.index) - set(both.index))
        assert row["undefined_topics"].split() == missing
        assert int(row["undefined"]) == len(missing)
        better = (
            both[row["run"]] > both["bm25"]
            if row["direction"] == "higher"
            else both[row["run"]] < both["bm25"]
        )
        assert int(row["wins"]) == better.sum()
        assert int(row["wins"]) + int(row["ties"]) + int(row["losses"]) == len(both)
    verdicts = {(row["measure"], row["run"]): row["verdict"] for row in rows}
    assert verdicts[NDCG, "dense"] == "better"
    assert verdicts[NDCG, "random"] == "worse"
    assert verdicts[GROUP, "popularity"] == "worse"  # its disparity is higher, and lower is better


def test_the_summary_table(capsys):
    assert called("--task", TASK, *RUNS, "--baseline", "bm25", "-m", NDCG, "-m", DP, "-m", "iRBU@20") == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert "p Holm" in lines[0]
    assert [word in out for word in ("nDCG@10 ↑", f"{DP} →0", "baseline")] == [True] * 3
    dense = next(line for line in lines if " dense " in line)
    assert re.search(
        r"\+0\.2020 .*\[\+0\.1410, \+0\.2629\] .*<0\.0001 \*.* \+1\.06 .*37/0/3 .*40 .*better$", dense
    )
    notes = out[out.index("paired t-test") :]
    assert "Holm over the 5 runs of each measure" in notes
    assert "* corrected p < 0.05" in notes
    # Significant by itself, and not after the correction over five runs.
    close = [line for line in lines if " popularity " in line][2]
    assert re.search(r" 0\.0282 +0\.1130 ", close)
    assert "*" not in close
    assert "distances" in notes
    assert f"{DP}: left out as undefined for dense (1 topic), fair-rerank" in notes


def test_latex_is_a_booktabs_table_with_bold_significance(capsys):
    assert (
        called(
            "--task", TASK, *RUNS, "--baseline", "bm25", "-m", GROUP, "--test", "tukey", "--format", "latex"
        )
        == 0
    )
    out = capsys.readouterr().out
    assert out.startswith(r"\begin{tabular}{")
    body, notes = out.split("\\end{tabular}\n")
    rows = [line for line in body.splitlines() if line.endswith(r"\\")]
    columns = re.search(r"\{tabular\}\{([lr]+)\}", out)
    assert columns is not None
    assert {line.count(" & ") + 1 for line in rows} == {len(columns[1])}
    assert all(command in body for command in (r"\toprule", r"\midrule", r"\bottomrule", r"D\_group"))
    bold = [line for line in rows if r"\textbf{" in line]
    assert len(bold) == 1
    assert "popularity" in bold[0]
    assert all(line.startswith("% ") for line in notes.splitlines())
    assert "bold: p < 0.05" in notes
    assert "by the test itself" in notes


@pytest.mark.parametrize("test", ["ttest", "wilcoxon", "tukey", "bootstrap"])
def test_json_of_every_test(test, capsys):
    assert (
        called(
            "--task", TASK, *RUNS[:3], "--baseline", "bm25", "-m", NDCG, "--test", test, "--format", "json"
        )
        == 0
    )
    rows = json.loads(capsys.readouterr().out)
    assert [row["run"] for row in rows] == ["dense", "fair-rerank"]
    assert {row["test"] for row in rows} == {test}
    for row in rows:
        assert row["low"] < row["difference"] < row["high"]
        assert 0 < row["p"] <= row["corrected_p"] <= 1
        assert row["sampling_se"] is None
        assert row["verdict"] == "better"


def test_a_seed_makes_the_bootstrap_repeatable(capsys):
    words = [
        "--task",
        TASK,
        *RUNS[:2],
        "--baseline",
        "bm25",
        "-m",
        GROUP,
        "--test",
        "bootstrap",
        "--format",
        "csv",
    ]
    outputs = []
    for seed in ("1", "1", "2"):
        called(*words, "--seed", seed)
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] != outputs[2]


def test_the_baseline_may_be_a_file_among_the_runs_or_not_or_a_tag(capsys):
    options = ["--task", TASK, "-m", NDCG, "--format", "csv"]
    outputs = []
    bm25, dense = RUNS[0], RUNS[1]
    around = str(Path(bm25).parent / ".." / "runs" / Path(bm25).name)
    for runs, baseline in (
        ([dense], bm25),
        ([bm25, dense], bm25),
        ([dense, bm25], around),
        ([dense, bm25], "bm25"),
    ):
        called(*options, *runs, "--baseline", baseline)
        outputs.append(capsys.readouterr().out)
    assert len(set(outputs)) == 1
    (row,) = rows_of(outputs[0])
    assert (row["run"], row["baseline"]) == ("dense", "bm25")


def test_wrong_options(tmp_path, capsys):
    with pytest.raises(UsageError, match=r"unknown run or file 'lost\.run'; expected one of bm25, dense"):
        called("--task", TASK, *RUNS[:2], "--baseline", "lost.run")
    with pytest.raises(UsageError, match="nothing to compare"):
        called("--task", TASK, RUNS[0], "--baseline", RUNS[0])
    with pytest.raises(UsageError, match="omit --correct"):
        called("--task", TASK, *RUNS[:2], "--baseline", "bm25", "--test", "tukey", "--correct", "bh")


def test_two_runs_with_one_tag(tmp_path, capsys):
    for name in ("one", "two"):
        (tmp_path / f"{name}.run").write_text(Path(RUNS[0]).read_text())
    one, two = str(tmp_path / "one.run"), str(tmp_path / "two.run")
    called("--task", TASK, one, "--baseline", two, "-m", NDCG, "--format", "csv")
    (row,) = rows_of(capsys.readouterr().out)
    assert (row["run"], row["baseline"]) == ("bm25 (one.run)", "bm25 (two.run)")
    assert (row["p"], row["difference"], row["ties"], row["verdict"]) == ("1.0", "0.0", "40", "")
    with pytest.raises(UsageError, match="expected one of bm25"):
        called("--task", TASK, one, two, "--baseline", "bm25")


def test_sampling_error_is_reported_separately(capsys):
    words = [
        "--task",
        TASK,
        *RUNS[:2],
        "--baseline",
        "bm25",
        "-m",
        "ERR",
        "-m",
        NDCG,
        "--policy",
        "pl",
        "--samples",
        "5",
    ]
    called(*words)
    out = capsys.readouterr().out
    assert "sampling error above 10 %" in out
    assert "ERR@20 of dense" in out
    assert "nDCG@10 of dense" not in out  # exact, and so without any
    called(*words, "--format", "csv")
    rows = {row["measure"]: row for row in rows_of(capsys.readouterr().out)}
    assert 0 < float(rows["ERR@20"]["sampling_se"]) < float(rows["ERR@20"]["se"])
    assert rows[NDCG]["sampling_se"] == ""


@pytest.mark.parametrize("test", ["ttest", "wilcoxon", "tukey", "bootstrap"])
def test_one_topic_prints_no_p_value(test, tmp_path, capsys):
    (tmp_path / "one.qrels").write_text("1 0 d1 1\n1 0 d2 0\n")
    for name, order in (("good", "d1 d2"), ("bad", "d2 d1")):
        lines = [f"1 Q0 {doc} {rank} {-rank} {name}\n" for rank, doc in enumerate(order.split(), 1)]
        (tmp_path / f"{name}.run").write_text("".join(lines))
    good, bad = str(tmp_path / "good.run"), str(tmp_path / "bad.run")
    words = ["--qrels", str(tmp_path / "one.qrels"), good, bad, "--baseline", "bad", "-m", "nDCG@10"]
    called(*words, "--test", test)
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if " good " in line)
    assert row.endswith("not tested")
    assert row.split()[1:] == [
        "1.0000",
        "+0.3691",
        *(["–"] * (4 if test != "tukey" else 3)),
        "1/0/0",
        "1",
        "not",
        "tested",
    ]
    assert "no p-value, at least two common topics are needed: nDCG@10 of good" in out
    called(*words, "--test", test, "--format", "csv")
    (cells,) = rows_of(capsys.readouterr().out)
    assert (cells["p"], cells["corrected_p"], cells["verdict"]) == ("", "", "")
    assert cells["untested"] == "at least two common topics are needed"


def test_an_incomplete_run_is_marked(tmp_path, capsys):
    # dense without the topics R01 to R09 has no value of D_group there, where bm25 has one.
    lines = [line for line in Path(RUNS[1]).read_text().splitlines(True) if not line.startswith("R0")]
    run = tmp_path / "silent.run"
    run.write_text("".join(lines))
    called("--task", TASK, RUNS[0], str(run), "--baseline", "bm25", "-m", GROUP)
    out = capsys.readouterr().out
    frame = evaluate([RUNS[0], str(run)], task=TASK, measures=[GROUP]).frame(per_topic=True)
    both = frame[frame.topic != "all"].pivot(index="topic", columns="run", values="value").dropna()
    row = next(line for line in out.splitlines() if " dense " in line)
    assert row.endswith("incomplete")
    assert f" {len(both)} " in row
    assert f"{GROUP}: incomplete runs, compared on common topics only: dense" in out
    called("--task", TASK, RUNS[0], str(run), "--baseline", "bm25", "-m", GROUP, "--format", "csv")
    (cells,) = rows_of(capsys.readouterr().out)
    assert cells["incomplete"] == "dense"
    assert "R01" in cells["undefined_topics"].split()
    called("--task", TASK, RUNS[0], str(run), "--baseline", "dense", "-m", GROUP)
    assert "baseline, incomplete" in capsys.readouterr().out


def test_hostile_tags_stay_in_their_cells(tmp_path, capsys):
    lines = [line.rsplit(" ", 1)[0] for line in Path(RUNS[1]).read_text().splitlines()]
    run = tmp_path / "x.run"
    run.write_text("".join(f"{line} \\end{{tabular}}%&<script>\u202e\n" for line in lines))
    called("--task", TASK, RUNS[0], "--baseline", str(run), "-m", NDCG, "--format", "latex")
    out = capsys.readouterr().out
    assert r"& \textbackslash{}end\{tabular\}\%\&\textless{}script" in out
    assert [line for line in out.splitlines() if line[0] != "%"][-1] == r"\end{tabular}"
    called("--task", TASK, RUNS[0], "--baseline", str(run), "-m", NDCG)
    assert "\u202e" not in out + capsys.readouterr().out


def test_output_goes_to_a_file(tmp_path, capsys):
    out = tmp_path / "found.tsv"
    called(
        "--task",
        TASK,
        *RUNS[:2],
        "--baseline",
        "bm25",
        "-m",
        NDCG,
        "--format",
        "tsv",
        "-p",
        "3",
        "-o",
        str(out),
    )
    assert capsys.readouterr().out == ""
    head, row = out.read_text().splitlines()
    assert tuple(head.split("\t")) == COMPARISON_COLUMNS
    assert "0.202" in row.split("\t")


def test_places_are_kept_in_the_table(capsys):
    called("--task", TASK, *RUNS[:2], "--baseline", "bm25", "-m", NDCG, "-p", "2")
    out = capsys.readouterr().out
    assert "[+0.14, +0.26]" in out
    assert "<0.01 *" in out


def test_jobs_do_not_change_the_result(capsys):
    words = ["--task", TASK, *RUNS[:3], "--baseline", "bm25", "-m", GROUP, "--format", "csv"]
    called(*words)
    one = capsys.readouterr().out
    called(*words, "--jobs", "2")
    assert capsys.readouterr().out == one
    assert np.isfinite([float(row["p"]) for row in rows_of(one)]).all()
