"""Who gets which page: exactly as many assessors as asked for, evenly paired, whatever happens in between."""

from __future__ import annotations

import random
import tempfile
import threading
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairevals.annotate.project import HOLD, Project
from fairevals.annotate.store import Store
from fairevals.errors import FairevalsError

SETTINGS = {"seed": 7, "columns": [], "secret": "s"}


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def make(folder, topics, assessors, per_page):
    """A project with so many pages in each topic, on a database that need not outlive the power."""
    Path(folder).mkdir(exist_ok=True)
    store = Store(folder, create=True)
    store._db.execute("PRAGMA synchronous = OFF")
    with store.writing():
        store.add_pages((f"t{t}", f"d{t}-{n}") for t, count in enumerate(topics) for n in range(count))
        store.append("configure", per_page=per_page, **SETTINGS)
        for name in assessors:
            store.add_assessor(name, ["*"])
    return Project(store, clock=Clock())


def holders(project):
    return {page: set(places) for page, places in project.store.state.places.items() if places}


def counted(project):
    """How many pages each pair has in common, counted from the places alone."""
    pairs = Counter()
    for names in holders(project).values():
        pairs.update(frozenset(pair) for pair in combinations(sorted(names), 2))
    return pairs


def finish(project, assessors):
    """Everybody saves and takes, in turns, until nobody gets a page."""
    for _ in range(10_000):
        pages = [(who, project.take_next(who)) for who in assessors]
        if not any(page for _, page in pages):
            return
        for who, page in pages:
            if page is not None:
                assert project.save(who, page, [], 0) == "saved"
    raise AssertionError("it does not end")


ORGANISERS = ["revoke", "unassign", "withdraw"]
ACTS = st.lists(
    st.tuples(
        st.sampled_from(["take", "save", "skip", "ask", "answer", "late", "expire", *ORGANISERS, "restart"]),
        st.integers(0, 4),
    ),
    max_size=60,
)


@given(acts=ACTS, per_page=st.integers(1, 3), topics=st.lists(st.integers(1, 6), min_size=1, max_size=3))
def test_any_order_of_acts_ends_with_exactly_so_many_assessors_on_every_page(acts, per_page, topics):
    assessors = ["a", "b", "c", "d", "e"]
    with tempfile.TemporaryDirectory() as folder:
        project = make(folder, topics, assessors, per_page)
        for act, at in acts:
            who, state = assessors[at], project.store.state
            if act == "take":
                _check_choice(project, who)
            elif act == "restart":
                _restart(project)
                state = project.store.state
            elif act == "answer":
                for question in [
                    q.id for q in state.questions.values() if q.assessor == who and not q.answer
                ]:
                    project.answer(question, "!")
            elif act == "expire":
                project.clock.now += HOLD + 1
            elif act == "revoke":
                project.revoke(who)
                assert not state.assessors[who].open
            elif act in ("unassign", "withdraw"):
                project.unassign(who, saved=act == "withdraw")
                assert not state.assessors[who].open and (act == "unassign" or not state.assessors[who].saved)
            else:
                page = next(iter(sorted(state.assessors[who].open)), None)
                if act == "late":  # a page that somebody else may have by now
                    page = min(state.pages)
                    version = state.places.get(page, {}).get(who)
                    outcome = project.save(who, page, [], version.saved if version else 0)
                    assert (outcome == "saved") == (who in state.places.get(page, {}))
                elif page is not None and act == "save":
                    assert project.save(who, page, [], 0) == "saved"
                elif page is not None and act == "skip":
                    project.skip(who, page)
                elif page is not None:
                    project.ask(who, page, "?")
            assert all(len(names) <= per_page for names in holders(project).values())
            assert +state.shared == counted(project)
        state = project.store.state
        for question in [q.id for q in state.questions.values() if not q.answer]:
            project.answer(question, "!")
        project.clock.now += HOLD + 1
        finish(project, assessors)
        assert {len(names) for names in holders(project).values()} == {per_page}
        assert len(holders(project)) == sum(topics)
        assert all(place.saved for places in state.places.values() for place in places.values())
        _restart(project)
        project.store.close()


def _restart(project):
    """Open the database again: the events alone give the same state, but for the times of open pages."""
    before = project.store.state
    project.store.close()
    project.store = Store(project.store.folder)
    project.store._db.execute("PRAGMA synchronous = OFF")
    after = project.store.state
    for page, places in after.places.items():
        for who, place in places.items():
            place.since = before.places[page][who].since
    before.shared = +before.shared
    after.shared = +after.shared
    assert vars(after) == vars(before)


def _check_choice(project, who):
    """A page that is newly taken is one on which the assessor meets those with whom it shares fewest pages."""
    state = project.store.state
    before, shared = holders(project), counted(project)
    held = {page for page, names in before.items() if who in names}
    page = project.take_next(who)
    if page is None or page in held:
        return
    released = {p for p in before if before[p] - holders(project).get(p, set())}
    if released:  # the choice was made after pages had returned to the queue
        return

    def most(number):
        return max((shared[frozenset((who, other))] for other in before.get(number, ())), default=-1)

    topic, skipped = state.pages[page].topic, page in state.assessors[who].skipped
    room = [
        p
        for p in state.pages
        if state.pages[p].topic == topic
        and p not in held
        and len(before.get(p, ())) < state.per_page
        and (skipped or p not in state.assessors[who].skipped)
    ]
    working = [n for n, one in state.assessors.items() if n != who and (one.open or one.saved)]
    fewest = min((shared[frozenset((who, other))] for other in working), default=0)
    assert most(page) <= max(fewest, min(most(p) for p in room))


@pytest.mark.parametrize(
    ("assessors", "topics", "per_page"), [(3, [60], 2), (5, [50] * 4, 2), (6, [30] * 5, 3)]
)
def test_pairs_share_equally_many_pages_where_all_work_at_one_pace(tmp_path, assessors, topics, per_page):
    names = [f"a{number}" for number in range(assessors)]
    project = make(tmp_path / "data", topics, names, per_page)
    finish(project, names)
    pairs = counted(project)
    assert len(pairs) == assessors * (assessors - 1) // 2
    assert max(pairs.values()) - min(pairs.values()) <= 2
    project.store.close()


@pytest.mark.parametrize(
    ("seed", "assessors", "topics", "per_page"), [(0, 5, [40] * 3, 2), (1, 4, [100], 2), (2, 6, [20] * 4, 3)]
)
def test_pairs_share_as_evenly_as_amounts_of_work_allow(tmp_path, seed, assessors, topics, per_page):
    """Whoever comes next is drawn at random, so some do more. The expected numbers of shared pages x_i·x_j have as
    many pages of each assessor as there are, found by iterative proportional fitting."""
    draws, names = random.Random(seed), [f"a{number}" for number in range(assessors)]
    project = make(tmp_path / "data", topics, names, per_page)
    idle = 0
    while idle < 50:
        who = draws.choice(names)
        page = project.take_next(who)
        idle = idle + 1 if page is None else 0
        if page is not None and draws.random() < 0.05:
            project.skip(who, page)
        elif page is not None:
            project.save(who, page, [], 0)
    finish(project, names)
    partners = np.array([sum(n in of for of in holders(project).values()) for n in names]) * (per_page - 1.0)
    x = np.sqrt(partners)
    for _ in range(200):
        x = np.sqrt(partners * x / (x.sum() - x))
    for (i, one), (j, other) in combinations(enumerate(names), 2):
        assert abs(project.store.state.in_common(one, other) - x[i] * x[j]) < 4
    project.store.close()


def test_nobody_waits_for_an_assessor_who_has_left(tmp_path):
    """The others do not have to share as few pages as with the one who has left before they complete pages."""
    project = make(tmp_path / "data", [60], ["a", "b", "c"], 2)
    for who in "abc":
        project.new_link(who)
    project.save("c", project.take_next("c"), [], 0)
    project.revoke("c")
    for _ in range(10):
        for who in "ab":
            project.save(who, project.take_next(who), [], 0)
    assert counted(project)[frozenset("ab")] >= 9
    project.store.close()


def test_orders_of_pages_are_random_and_differ(tmp_path):
    project = make(tmp_path / "data", [40], ["a", "b"], 2)
    orders = {}
    for who in ("a", "b"):
        orders[who] = []
        while (page := project.take_next(who)) is not None:
            orders[who].append(page)
            project.save(who, page, [], 0)
    assert sorted(orders["a"]) == sorted(orders["b"]) == list(range(1, 41))
    assert orders["a"] != orders["b"] and orders["a"] != sorted(orders["a"])
    project.store.close()


def test_the_last_place_goes_to_one_of_two_stores_that_take_it_at_once(tmp_path):
    """Two connections, as of two servers that a missing lock let start."""
    make(tmp_path / "data", [30], ["a", "b", "c", "d"], 1).store.close()
    taken, stores = [], [Store(tmp_path / "data") for _ in range(4)]

    def work(who, store):
        project = Project(store)
        while (page := project.take_next(who)) is not None:
            assert project.save(who, page, [], 0) == "saved"
            taken.append(page)

    threads = [threading.Thread(target=work, args=pair) for pair in zip("abcd", stores, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(1, 31))
    for store in stores:
        store.close()


def test_a_page_left_alone_returns_to_the_queue_and_a_late_save_is_kept_but_does_not_count(tmp_path):
    project = make(tmp_path / "data", [1], ["a", "b"], 1)
    state = project.store.state
    page = project.take_next("a")
    assert project.take_next("b") is None
    project.clock.now += HOLD - 1
    project.touch("a", page)
    project.clock.now += HOLD - 1
    assert project.take_next("b") is None  # a has just been there
    project.clock.now += 2
    assert project.take_next("b") == page
    assert project.save("a", page, [{"entity": "E"}], 0) == "late"
    assert state.places[page].keys() == {"b"} and state.assessors["a"].late == 1
    assert [event.kind for event in project.store.history("a", page)] == ["take", "release", "late"]
    assert project.store.history("a", page)[-1].data["entities"] == [{"entity": "E"}]
    project.skip("b", page)
    assert project.save("a", page, [{"entity": "E"}], 0) == "saved"  # there is room again
    project.store.close()


def test_a_page_that_waits_for_an_answer_stays_and_comes_back_first(tmp_path):
    project = make(tmp_path / "data", [5], ["a", "b"], 1)
    page = project.take_next("a")
    project.ask("a", page, "which one?")
    project.clock.now += 10 * HOLD
    other = project.take_next("a")
    assert other != page and project.take_next("b") not in (page, other)
    project.save("a", other, [], 0)
    (question,) = project.store.state.questions.values()
    project.answer(question.id, "the first")
    assert project.take_next("a") == page
    project.store.close()


def test_a_second_tab_neither_loses_nor_doubles_a_save(tmp_path):
    project = make(tmp_path / "data", [2], ["a"], 1)
    page = project.take_next("a")
    assert project.take_next("a") == page  # a reload, or a second tab
    assert project.save("a", page, [{"entity": "X"}], 0) == "saved"
    assert (
        project.save("a", page, [{"entity": "X"}], 0) == "saved"
    )  # the confirmation was lost, and it is sent again
    assert project.save("a", page, [{"entity": "Y"}], 0) == "changed"
    place = project.store.state.places[page]["a"]
    assert place.entities == ({"entity": "X"},)
    assert project.save("a", page, [{"entity": "Y"}], place.saved) == "saved"  # a correction
    saves = [event.data["entities"] for event in project.store.history("a", page) if event.kind == "save"]
    assert saves == [[{"entity": "X"}], [{"entity": "Y"}]]
    project.store.close()


def test_a_failed_transaction_leaves_no_trace(tmp_path):
    project = make(tmp_path / "data", [2], ["a"], 1)
    with pytest.raises(RuntimeError), project.store.writing():
        project.store.append("take", "a", 1)
        raise RuntimeError
    assert not holders(project)
    with pytest.MonkeyPatch.context() as broken, pytest.raises(ZeroDivisionError), project.store.writing():
        project.store.append("take", "a", 1)
        broken.setattr(project.store, "_reload", lambda: 1 / 0)  # nor can the disk be read
        raise OSError
    project.take_next("a")
    assert holders(project) == {page: {"a"} for page in (1, 2) if project.store.history("a", page)}
    with pytest.raises(Exception, match="append-only"):
        project.store._db.execute("DELETE FROM events")
    with (
        pytest.raises(FairevalsError, match=r"annotate.sqlite: cannot be written \(FOREIGN KEY"),
        project.store.writing(),
    ):
        project.store._db.execute("INSERT INTO events (time, kind, page, data) VALUES (0, 'take', 99, '{}')")
    project.store.close()
