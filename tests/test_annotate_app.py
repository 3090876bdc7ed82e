"""The annotation server without a browser: forms, what they refuse, forged requests, export, status, commands."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import warnings
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from annotate_cases import EXAMPLE, GOLD, PAGES, fields_of, opened, write_inputs

pytest.importorskip("starlette")
pytest.importorskip("httpx")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # newer versions of Starlette want another client
    from starlette.testclient import TestClient

from starlette.exceptions import HTTPException
from starlette.requests import Request

import fairevals
from fairevals.annotate import export_annotations, status
from fairevals.annotate.app import make_app
from fairevals.annotate.form import FormField, form_fields, read_form
from fairevals.annotate.pages import MAX_PAGE, STEP, PageFiles, decoded, is_pdf, page_text
from fairevals.annotate.server import AnnotationInputs, open_site, read_assessors, read_pool, serve
from fairevals.annotate.site import read_form_body
from fairevals.annotate.store import DATABASE_FORMAT, Store
from fairevals.cli.main import main
from fairevals.errors import FairevalsError, InputError, InputWarning, UsageError
from fairevals.io.specs import AttributeSpec

URL = "http://localhost:8765"


@pytest.fixture
def site(tmp_path):
    site, tokens = opened(tmp_path, URL)
    yield site, tokens
    site.project.store.close()


def client_of(site, token="", **given):
    client = TestClient(make_app(site), base_url=URL, **given)
    if token:
        assert client.get(f"/sign-in/{token}").status_code == 200
    return client


def token_in(text):
    return re.search(r'name="token" value="(\w+)"', text)[1]


def judge(client, entities, page=None, **more):
    """Save the page that the assessor has now, or another one."""
    shown = client.get(page or "/a")
    body = {
        "token": token_in(shown.text),
        "version": re.search(r'name="version" value="(\d+)"', shown.text)[1],
    }
    body |= {"do": "save" if entities else "none", **fields_of(entities), **more}
    return client.post(shown.url, data=body)


def work(site, tokens):
    """Both assessors enter the worked example."""
    for who, found in EXAMPLE.items():
        client = client_of(site, tokens[who])
        for _ in PAGES:
            doc = re.search(r'class="doc">(\w+)<', client.get("/a").text)[1]
            answer = judge(client, found[doc])
            assert answer.status_code == 200, answer.text
        assert answer.json() == {"next": "/a/mine"}


def test_the_worked_example_from_the_form_to_the_scores(site, tmp_path, capsys):
    work(*site)
    text = export_annotations(tmp_path / "data")
    assert client_of(site[0], site[1][""]).get("/o/annotations.csv").text == text
    assert main(["annotate", "export", str(tmp_path / "data"), "-o", str(tmp_path / "annotations.csv")]) == 0
    assert (tmp_path / "annotations.csv").read_text(encoding="utf-8") == text
    assert text.splitlines()[0] == "topic,doc,entity,annotator,HINDEX,REGION,SUBSCRIBERS,h-index URL"
    assert "R01,p2,,ann,,,,\n" in text and "R01,p3,Wanda Ant,ann,90,Asia,,https://example.org/h\n" in text
    task, table = str(tmp_path / "task.toml"), str(tmp_path / "annotations.csv")
    assert main(["derive", "--task", task, "--annotations", table, "--out", str(tmp_path)]) == 0
    scores = fairevals.evaluate([tmp_path / "mine.run"], task=task).frame()
    values = dict(zip(scores["measure"], scores["value"], strict=True))
    assert values == {name: pytest.approx(value, abs=5e-5) for name, value in GOLD.items()}
    capsys.readouterr()
    assert main(["annotate", "status", str(tmp_path / "data")]) == 0
    shown = capsys.readouterr().out
    assert shown == status(tmp_path / "data")
    assert re.search(r"R01\s+3\s+3\s+6\s+3\s+0\.\d{3}", shown) and re.search(r"all\s+3\s+3\s+6\s+3", shown)


def test_the_organiser_sees_agreement_as_derive_computes_it(site, tmp_path):
    from fairevals.derive import derive, read_annotations
    from fairevals.derive.agreement import AnnotationTally
    from fairevals.io.task import read_task

    work(*site)
    (tmp_path / "a.csv").write_text(export_annotations(tmp_path / "data"), encoding="utf-8")
    summary = AnnotationTally.of(
        derive(read_task(tmp_path / "task.toml"), read_annotations(tmp_path / "a.csv")).pages
    ).summary()
    shown = client_of(site[0], site[1][""]).get("/o").text
    total = re.search(r'<tr id="all">.*?</tr>', shown, re.S)[0]
    expected = [summary.positive, summary.entities.alpha, summary.relevance.alpha]
    assert re.findall(r"<td>([-−.\d–]+)</td>", total) == [
        *("3", "3", "6", "3"),
        *(f"{value:.3f}".replace("-", "−") for value in expected),
    ]
    captions = re.findall(r'<caption>(.*?)<a href="(/page/[^"]+)"[^>]*>(\w+)</a></caption>', shown)
    assert [(topic, doc) for topic, _, doc in captions] == [("R01 · ", "p1"), ("R01 · ", "p3")]  # none on p2
    assert client_of(site[0]).get(captions[0][1]).status_code == 200
    assert "not named" in shown


def test_the_overview_follows_every_change(site, tmp_path):
    organiser, ann = client_of(site[0], site[1][""]), client_of(site[0], site[1]["ann"])
    work(*site)
    seen = []

    def look():
        """The row of all topics, which must be what a program that has computed nothing before finds."""
        row = re.search(r'<tr id="all">.*?</tr>', organiser.get("/o").text, re.S)[0]
        seen.append(re.findall(r"<td>([^<]+)</td>", row))
        assert re.search(r"\nall +" + r" +".join(map(re.escape, seen[-1])), status(tmp_path / "data"))

    look()
    assert judge(ann, {"Somebody Else": "1"}, page="/a/page/1").status_code == 200
    look()
    listed = re.findall(r'"/a/page/(\d)"', ann.get("/a/mine").text)
    assert listed[0] == "1" and sorted(listed) == ["1", "2", "3"]  # the latest first
    assert 'href="/a/page/1" id="back"' in ann.get("/a/page/2").text
    assert judge(ann, {"SOMEBODY  Else": "2"}, page="/a/page/2").status_code == 200
    assert judge(ann, {"Somebody Else": "1"}, page="/a/page/1").status_code == 200
    # Offered once, as it is now.
    assert [entity["entity"] for entity in site[0].state.names_used("ann", "R01")] == [
        "Somebody Else",
        "Wanda Ant",
    ]
    assert judge(ann, {}, page="/a/page/2").status_code == 200
    token = token_in(organiser.get("/o").text)
    organiser.post("/o", data={"token": token, "do": "unassign", "assessor": "bob", "saved": "yes"})
    look()
    assert [row[:4] for row in seen] == [["3", "3", "6", "3"], ["3", "3", "6", "3"], ["3", "0", "3", "0"]]
    assert seen[0] != seen[1]


@pytest.mark.parametrize(
    ("inputs", "wrong"),
    [
        ({"e0": "X"}, {"e0f0", "e0f1"}),
        ({"e0f0": "5"}, {"e0", "e0f1"}),
        ({"e0": "X", "e0f0": "many", "e0f1": "Asia"}, {"e0f0"}),
        ({"e0": "X", "e0f0": "nan", "e0f1": "Asia"}, {"e0f0"}),
        ({"e0": "X", "e0f0": "5", "e0f1": "Atlantis"}, {"e0f1"}),
        ({"e0": "X", "e0f0": "5", "e0f1": ["Asia", "NA"]}, {"e0f1"}),
        ({"e0": "X", "e0f0": "5", "e0f1": "Asia", "e0f2": "javascript:alert(1)"}, {"e0f2"}),
        ({"e0": "X" * 501, "e0f0": "5", "e0f1": "Asia"}, {"e0"}),
        ({"e0": "X\x00Y", "e0f0": "5", "e0f1": "Asia"}, {"e0"}),
        ({**fields_of({"X": "5"}), "e1": " x ", "e1f0": "NA", "e1f1": "NA"}, {"e1"}),
    ],
)
def test_the_server_checks_what_the_browser_should_have(site, inputs, wrong):
    client = client_of(site[0], site[1]["ann"])
    answer = judge(client, {}, do="save", **inputs)
    assert answer.status_code == 422
    assert set(answer.json()["errors"]) == wrong
    assert not site[0].state.assessors["ann"].saved


def test_values_are_those_that_derive_reads(site, tmp_path):
    client = client_of(site[0], site[1]["ann"])
    entered = {"e0": '=1+1, "x"', "e0f0": "NA", "e0f1": ["Asia", "Europe"], "e0f2": ""}
    assert judge(client, {}, do="save", **entered).status_code == 200
    text = export_annotations(tmp_path / "data")
    assert '"=1+1, ""x""",ann,NA,Asia|Europe,,\n' in text
    assert "\"'=1+1" in export_annotations(tmp_path / "data", spreadsheet=True)
    assert judge(client, {}, do="save").json()["message"].startswith("Name an entity")
    assert judge(client, {}, do="nonsense").status_code == 400


def test_pages_elsewhere_are_linked_and_signing_out_ends_the_session(tmp_path):
    inputs = write_inputs(tmp_path)
    (tmp_path / "links.csv").write_text("doc,url\np1,https://example.org/?a=1&b=2\n")
    (tmp_path / "data").mkdir()
    with (
        Store(tmp_path / "data", create=True) as store,
        pytest.warns(InputWarning, match="no file for 2 pages of 3"),
    ):
        site, tokens = open_site(replace(inputs, pages=tmp_path / "links.csv"), store, URL)
        client = client_of(site, tokens["ann"])
        shown = {}
        for _ in PAGES:
            text = client.get("/a").text
            shown[re.search(r'class="doc">(\w+)<', text)[1]] = text
            assert judge(client, {}).status_code == 200
        link = 'href="https://example.org/?a=1&amp;b=2" target="_blank" rel="noopener noreferrer"'
        assert link in shown["p1"] and "<iframe" not in shown["p1"]
        assert "There is no file for this page" in shown["p2"]
        assert client.get(site.page_address(1)).status_code == 404
        cookie = dict(client.cookies)
        assert "personal link" in client.post("/a/sign-out", data={"token": token_in(text)}).text
        client.cookies = cookie
        assert client.get("/a").status_code == 401


def test_assessors_never_see_what_others_entered(site):
    pages = {}
    for who in ("ann", "bob"):
        client = client_of(site[0], site[1][who])
        shown = client.get("/a")
        assert judge(client, {f"Entity of {who}": "7"}, page=shown.url).status_code == 200
        pages[who] = client, str(shown.url)
    for who, other in (("ann", "bob"), ("bob", "ann")):
        client = pages[who][0]
        for address in ("/a", "/a/mine", pages[who][1], pages[other][1]):
            assert f"Entity of {other}" not in client.get(address).text
        assert f"Entity of {who}" in client.get("/a").text  # the own one is offered
        assert client.get("/o").status_code == 401
        assert client.get("/o/annotations.csv").status_code == 401
    assert client_of(site[0], site[1][""]).get("/a").status_code == 401


def test_forged_requests_achieve_nothing(site):
    state = site[0].state
    ann, bob = (client_of(site[0], site[1][who]) for who in ("ann", "bob"))
    page = ann.get("/a")
    token, address = token_in(page.text), str(page.url)
    other = token_in(bob.get("/a").text)
    body = {"do": "none", "version": "0"}
    before = state.last
    assert ann.post(address, data=body).status_code == 403  # no token
    assert ann.post(address, data={**body, "token": other}).status_code == 403  # of another session
    assert (
        ann.post(
            address, data={**body, "token": token}, headers={"Origin": "http://evil.example"}
        ).status_code
        == 403
    )
    assert ann.post(address, data={**body, "token": token}, headers={"Origin": "null"}).status_code == 403
    assert client_of(site[0]).post(address, data={**body, "token": token}).status_code == 401  # no cookie
    assert bob.post(address, data={**body, "token": token}).status_code == 403  # another assessor's token
    assert ann.post(address, json={**body, "token": token}).status_code == 415
    assert ann.post(address, data={**body, "token": token, "e0": "x" * 70_000}).status_code == 413
    assert ann.post(address, data={f"x{n}": "" for n in range(600)}).status_code == 400
    assert ann.post("/o", data={"do": "link", "assessor": "bob", "token": token}).status_code == 401
    assert ann.post("/a/page/99", data={**body, "token": token}).status_code == 404
    free = next(number for number in state.pages if number not in state.places)
    assert ann.post(f"/a/page/{free}", data={**body, "token": token}).status_code == 404  # not given to ann
    lost = ann.get(f"/a/page/{'9' * 1900}")
    assert lost.status_code == 404 and 'href="/a"' in lost.text  # no dead end
    assert ann.get(f"/a/page/{'9' * 5000}").status_code == 414
    assert ann.post(address, data={**body, "token": token}, headers={"Origin": "http://["}).status_code == 403
    for host in (
        "evil.example",
        "evil.example:8765",
        "",
        "localhost.evil.example",
        "x@localhost",
        "localhost/x",
    ):
        assert ann.get(address, headers={"Host": host}).status_code == 400
    for host in ("127.0.0.1:8765", "[::1]:8765", "localhost:1"):
        assert client_of(site[0]).get("/", headers={"Host": host}).status_code == 200
    assert state.last == before
    body["version"] = "9" * 9999
    assert ann.post(address, data={**body, "token": token}, headers={"Origin": URL}).status_code == 200


def test_a_full_disk_is_told_and_a_browser_that_goes_away_is_no_mistake(site, caplog):
    store = site[0].project.store
    ann, organiser = (client_of(site[0], site[1][who]) for who in ("ann", ""))
    page, token = ann.get("/a"), token_in(organiser.get("/o").text)
    store._db.execute("PRAGMA max_page_count = 1")  # as full as it is now
    full = {"do": "ask", "question": "x" * 2000, "token": token_in(page.text)}
    answers = [ann.post(page.url, data=full) for _ in range(60)]
    assert answers[-1].status_code == 503 and "cannot write to its disk" in answers[-1].json()["message"]
    assert "annotate.sqlite: cannot be written" in caplog.text
    asked = len(site[0].state.questions)
    assert asked == sum(answer.status_code == 200 for answer in answers)
    more = {"do": "add", "assessor": "x" * 99, "topics": "y" * 9000, "token": token}
    assert organiser.post("/o", data=more).status_code == 503
    store._db.execute("PRAGMA max_page_count = 1000000")
    assert ann.post(page.url, data=full).status_code == 200 and len(site[0].state.questions) == asked + 1
    messages = iter(
        [{"type": "http.request", "body": b"do=", "more_body": True}, {"type": "http.disconnect"}]
    )
    scope = {"type": "http", "headers": [(b"content-type", b"application/x-www-form-urlencoded")]}

    async def receive():
        return next(messages)

    with pytest.raises(HTTPException, match="400"):
        asyncio.run(read_form_body(Request(scope, receive)))


def test_a_form_that_does_not_arrive_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("fairevals.annotate.site.BODY_SECONDS", 0.01)
    scope = {"type": "http", "headers": [(b"content-type", b"application/x-www-form-urlencoded")]}

    async def never():
        await asyncio.sleep(60)

    with pytest.raises(HTTPException, match="408"):
        asyncio.run(read_form_body(Request(scope, never)))


def test_behind_a_proxy_the_public_address_is_an_origin_of_its_own(tmp_path):
    site, tokens = opened(tmp_path, "https://annotate.example.org")
    client = TestClient(make_app(site), base_url="https://annotate.example.org")
    page = client.get(f"/sign-in/{tokens['ann']}")
    body = {"do": "none", "version": "0", "token": token_in(page.text)}
    inside = {"Host": "127.0.0.1:8765"}  # as a proxy that does not pass the name on
    for origin, code in (("https://evil.example", 403), ("https://annotate.example.org", 200)):
        assert client.post(page.url, data=body, headers={**inside, "Origin": origin}).status_code == code
    site.project.store.close()


def test_cookies_do_not_reach_the_pages_of_strangers(site):
    client = client_of(site[0])
    for who, path in (("ann", "/a"), ("", "/o")):
        cookie = client.get(f"/sign-in/{site[1][who]}", follow_redirects=False).headers["set-cookie"]
        assert re.search(rf"HttpOnly; .*Path={path}; SameSite=lax$", cookie)
    address = re.search(r'src="(/page/[^"]+)"', client.get("/a").text)[1]
    assert client.get(address[:-1] + ("0" if address[-1] != "0" else "1")).status_code == 404
    assert client_of(site[0]).get(address).status_code == 200
    https, tokens = opened(site[0].project.store.folder.parent / "https", "https://annotate.example.org")
    answer = TestClient(make_app(https), base_url=https.url).get(
        f"/sign-in/{tokens['ann']}", follow_redirects=False
    )
    assert "Secure" in answer.headers["set-cookie"]
    https.project.store.close()


def test_two_projects_on_one_host_do_not_sign_each_other_out(site, tmp_path):
    """Browsers send the cookies of a host to all of its ports."""
    other, tokens = opened(tmp_path / "other", "http://localhost:8766")
    ann, also = client_of(site[0], site[1]["ann"]), client_of(other, tokens["ann"])
    also.cookies.update(ann.cookies)
    ann.cookies.update(also.cookies)
    assert (ann.get("/a").status_code, also.get("/a").status_code) == (200, 200)
    assert judge(ann, {}).status_code == judge(also, {}).status_code == 200
    other.project.store.close()


def test_every_answer_has_the_security_headers(site):
    client = client_of(site[0], site[1]["ann"], raise_server_exceptions=False)
    client.get(f"/sign-in/{site[1]['']}")
    page = re.search(r'src="(/page/[^"]+)"', client.get("/a").text)[1]
    site[0].files.find = lambda doc: 1 / 0
    broken = client.get("/a")
    assert broken.status_code == 500 and "mistake" in broken.text
    del site[0].files.__dict__["find"]
    for address in ("/", "/a", "/a/mine", "/o", "/nothing", "/static/annotate.js", "/static/../app.py", page):
        answer = client.get(address)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == ("no-referrer" if address == page else "same-origin")
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("sandbox;" if address == page else "default-src 'none'")
        assert "unsafe" not in policy.replace("style-src 'unsafe-inline'", "")
    assert "content-security-policy" in broken.headers


def test_wrong_links_are_limited_and_revoked_ones_end_at_once(site):
    site, tokens = site
    organiser, ann = client_of(site, tokens[""]), client_of(site, tokens["ann"])
    page = ann.get("/a")
    number = int(str(page.url).rsplit("/", 1)[1])
    form = {"token": token_in(organiser.get("/o").text), "assessor": "ann"}
    assert organiser.post("/o", data={**form, "do": "revoke"}).status_code == 200
    assert ann.get("/a").status_code == 401
    assert ann.get(f"/sign-in/{tokens['ann']}").status_code == 404
    assert "ann" not in site.state.places[number]  # the page is free again
    shown = organiser.post("/o", data={**form, "do": "link"}).text
    new = re.search(r'value="http://localhost:8765(/sign-in/[\w-]{22})"', shown)[1]
    assert new not in organiser.get("/o").text
    assert client_of(site).get(new).status_code == 200
    events = site.project.store._db.execute("SELECT group_concat(data) FROM events").fetchone()[0]
    assert new.rsplit("/", 1)[1] not in events  # only its hash is stored
    guess = client_of(site)
    codes = [guess.get(f"/sign-in/{n:022}").status_code for n in range(12)]
    assert codes == [404] * 10 + [429] * 2
    assert guess.get(new).status_code == 200  # or anyone could keep out all who share an address


def test_questions_are_answered_on_the_page_and_assessors_are_unassigned(site):
    site, tokens = site
    organiser, ann = client_of(site, tokens[""]), client_of(site, tokens["ann"])
    first = ann.get("/a")
    form = {"token": token_in(first.text), "do": "ask", "question": "Is <b>this</b> one?"}
    assert ann.post(first.url, data={**form, "question": " "}).status_code == 422
    following = ann.post(first.url, data=form).json()["next"]
    assert following != first.url.path
    assert "&lt;b&gt;this&lt;/b&gt;" in organiser.get("/o").text
    token = token_in(organiser.get("/o").text)
    number = re.search(r'name="question" value="(\d+)"', organiser.get("/o").text)[1]
    organiser.post("/o", data={"token": token, "do": "answer", "question": number, "text": "Yes, <it> is."})
    assert "Yes, &lt;it&gt; is." in ann.get(first.url).text
    assert "answered" in ann.get("/a/mine").text
    missing = ann.post(following, data={**form, "do": "missing"}).json()["next"]
    assert "The page cannot be shown." in organiser.get("/o").text
    assert judge(ann, {}, page=missing).status_code == 200
    organiser.post("/o", data={"token": token, "do": "unassign", "assessor": "ann"})
    assert len(site.state.assessors["ann"].saved) == 1 and not site.state.assessors["ann"].open
    organiser.post("/o", data={"token": token, "do": "unassign", "assessor": "ann", "saved": "yes"})
    assert not site.state.assessors["ann"].saved
    assert [e.kind for e in site.project.store.history("ann", int(missing.rsplit("/", 1)[1]))][-2:] == [
        "save",
        "release",
    ]
    # A tab that is still open on a page which the assessor no longer has.
    lost = ann.post(missing, data={**form, "question": "Lost?"})
    assert lost.status_code == 409 and "Not sent" in lost.json()["message"]
    assert "Lost?" not in organiser.get("/o").text
    shown = organiser.post("/o", data={"token": token, "do": "add", "assessor": "cleo", "topics": "R*"}).text
    assert "The link of cleo" in shown and site.state.assessors["cleo"].topics == ("R*",)
    assert organiser.post("/o", data={"token": token, "do": "link", "assessor": ""}).status_code == 400
    for name in ("\x07", "Cleo"):
        assert organiser.post("/o", data={"token": token, "do": "add", "assessor": name}).status_code == 400


def test_fields_follow_the_topic():
    from fairevals import Task

    groups = {"groups": ["x", "y"]}
    task = Task(
        attributes={
            "A": {**groups, "kind": "ordinal", "bins": [3]},
            "B": {**groups, "topics": ["M*"]},
            "C": {**groups, "kind": "ordinal"},
        },
        topic_groups={"TYPE": {"R": ["R*"], "M": ["M*"]}},
        annotation={"fields": {"R": ["biography URL"], "*1": ["note"]}},
    )
    fields = form_fields(task, ["R1", "R2", "M1"])
    shown = {topic: [(field.name, field.kind) for field in of] for topic, of in fields.items()}
    both = [("A", "number"), ("C", "one")]
    assert shown == {
        "R1": [*both, ("biography URL", "text"), ("note", "text")],
        "R2": [*both, ("biography URL", "text")],
        "M1": [("A", "number"), ("B", "several"), ("C", "one"), ("note", "text")],
    }
    with pytest.raises(UsageError, match="no topic of the pool is in 'Z'"):
        form_fields(Task(annotation={"fields": {"Z": ["note"]}}), ["R1"])
    for name, of in (("entity", ["x"]), ("a\nb", ["x"]), ("A", ["NA"]), ("A", ["x|y"]), ("A", ["x  y"])):
        with pytest.raises(InputError, match="plain name"):
            form_fields(Task(attributes={name: {"groups": [*of, "z"]}}), ["R1"])
    two = {"e0": ["X"], "e0f0": ["x", "y"]}
    assert read_form(two, [FormField("C", AttributeSpec("C", ("x", "y"), "ordinal"))], 1)[1] == {
        "e0f0": "one choice only"
    }
    copied = "\ufeffAda\u00ad \u200bLove\u2060lace\u200e"
    assert read_form({"e0": [copied]}, [], 1)[0] == [{"entity": "Ada Lovelace"}]
    assert read_form({"e0": ["\u0639\u200c\u0644"]}, [], 1)[0] == [{"entity": "\u0639\u200c\u0644"}]
    assert read_form({"e0": ["a\u200c" * 251]}, [], 1)[1].keys() == {"e0"}
    assert read_form(two, [FormField("C", AttributeSpec("C", ("x", "y")))], 1)[0] == [
        {"entity": "X", "C": "x|y"}
    ]


def test_pages_are_found_only_in_their_folder(tmp_path):
    folder = tmp_path / "pages"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "a.b.html").write_text("<p>x")
    (folder / "note.pdf").write_bytes(b"<html><script>alert(1)</script>")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    files = PageFiles(folder)
    assert files.find("a.b").kind == "html"
    for doc in ("../secret", "/etc/hostname", "link", "..", "x\0y", "y" * 5000, str(tmp_path / "secret")):
        assert files.find(doc).kind == "missing", doc
    assert not is_pdf(files.find("note"))  # as text
    _, headers = page_text(files.find("note"))
    assert headers["Content-Type"].startswith("text/plain") and headers["Content-Security-Policy"].startswith(
        "sandbox"
    )
    (folder / "note.pdf").write_bytes(b"%PDF-1.4")
    assert is_pdf(files.find("note"))
    with (folder / "large.html").open("wb") as large:
        large.truncate(MAX_PAGE["html"] + 1)  # a hole, which takes no place
    assert files.find("large").kind == "missing"
    links = tmp_path / "links.csv"
    links.write_text("doc,url\na,https://example.org/a\n")
    assert (
        PageFiles(links).find("a").url == "https://example.org/a"
        and PageFiles(links).find("b").kind == "missing"
    )
    for wrong in ("doc,url\na,javascript:alert(1)\n", "doc,url\na,https://x\na,https://y\n"):
        links.write_text(wrong)
        with pytest.raises(InputError, match=r"links.csv:[23]"):
            PageFiles(links)
    with pytest.raises(UsageError):
        PageFiles(tmp_path / "nowhere")


def test_searching_marks_text_and_nothing_else(tmp_path):
    path = tmp_path / "p.html"
    path.write_text(
        "<title>ant</title><p class=ant>An ant&amp;ANT<script>ant</script> a <i>n</i>t\nant ant</p>"
    )
    page = PageFiles(tmp_path).find("p")
    content, headers = page_text(page, "ant")
    assert headers["X-Matches"] == "4" and content.count(b"<mark") == 4
    assert page_text(page, ">")[1]["X-Matches"] == "0" and page_text(page, " ")[1]["X-Matches"] == "0"
    assert b"<title>ant</title><p class=ant>" in content and b"<script>ant</script>" in content
    assert (
        page_text(page, "ant  ant")[1]["X-Matches"] == "1" and page_text(page, "t&a")[1]["X-Matches"] == "1"
    )
    assert page_text(page, "<script>")[1]["X-Matches"] == "0"
    (tmp_path / "t.txt").write_text("a <b> ant")
    content, headers = page_text(PageFiles(tmp_path).find("t"), "<b>")
    assert headers["X-Matches"] == "1" and b"<mark id=find-1>&lt;b&gt;</mark>" in content
    path.write_text("<a title='>é'>caf&eacute;&nbsp;x caf&#xE9; x<!-- café x --><template>café x")
    assert page_text(page, "café x")[1]["X-Matches"] == "2"
    path.write_text("ant <b>ant</b> " * 5000)
    content, headers = page_text(page, "ant")
    assert headers["X-Matches"] == "1000" == str(content.count(b"<mark"))
    path.write_text(("x" * (STEP - 2) + "an   ant") * 3)  # across the steps
    content, headers = page_text(page, "an ant")
    assert headers["X-Matches"] == "3" and content.count(b"<mark id=find-3>an   ant</mark>") == 1
    path.write_text(
        "<LINK rel=x><svg><style><p><link\nrel=x></svg><linked><A target=_self href=/><abbr><iframe/src=x><a/id=x>"
    )
    expected = (
        "<no-LINK rel=x><svg><style><p><no-link\nrel=x></svg><linked><a target=_blank  target=_self href=/>"
    )
    assert page_text(page)[0].decode() == f"{expected}<abbr><no-iframe/src=x><a target=_blank /id=x>"


@pytest.mark.parametrize(
    ("label", "data", "text"),
    [
        ("iso-8859-1", b"\x80 \x93a\x94 \xe9", "€ “a” é"),
        ("US-ASCII", b"\x85\xfc", "…ü"),
        ("iso-8859-9", b"\x80\xfd", "€ı"),
        ("tis-620", b"\x80\xa1", "€ก"),
        ("gb2312", "镕€".encode("gbk", "ignore") + "㐂".encode("gb18030"), "镕㐂"),
        ("shift_jis", "①髙".encode("cp932"), "①髙"),
        ("x-sjis", "①".encode("cp932"), "①"),
        ("Windows-31J", "髙".encode("cp932"), "髙"),
        ("windows-874", b"\xa1", "ก"),
        ("ks_c_5601-1987", "똠".encode("cp949"), "똠"),
        ("big5", "嘅".encode("big5hkscs"), "嘅"),
        ("windows-1251", "Ж".encode("cp1251"), "Ж"),
        ("utf-16", "é".encode(), "é"),  # it was readable up to here, so it is not
        ("utf-7", b"+ADw-", "+ADw-"),
        ("x-user-defined", b"\xe9", "é"),
        ("punycode", b"a-9", "a-9"),
        ("unicode_escape", b"\\x41", "\\x41"),
        ("nonsense", b"\xff", "ÿ"),
    ],
)
def test_encodings_are_what_browsers_take_them_for(label, data, text):
    for head in (f"<meta charset='{label}'>", f"<meta http-equiv=x content='text/html; charset={label}'>"):
        assert decoded(head.encode() + data, html=True) == head + text
    head = f'<?xml version="1.0" encoding="{label}"?>'
    assert decoded(head.encode() + data, html=True) == head + text
    # A mark at the beginning counts more; no other place counts, and plain text declares nothing.
    assert decoded(b"\xef\xbb\xbf<meta charset=koi8-r>\xc3\xa9", html=True) == "<meta charset=koi8-r>é"
    assert decoded("ü".encode("utf-16"), html=False) == "ü"
    for head in ("<script charset=koi8-r>", "<p>charset=koi8-r"):
        assert decoded(head.encode() + b"\xc3\xa9", html=True) == f"{head}é"
    assert decoded(b"<meta charset=koi8-r>\xe9", html=False) == "<meta charset=koi8-r>é"


@pytest.mark.parametrize(
    ("read", "text", "problem"),
    [
        (read_pool, "", "no page"),
        (read_pool, "R01\n", ":1: 1 columns"),
        (read_pool, "R01 a 1\nR01 a 2\n", ":2: document 'a' a second time"),
        (read_pool, "R01 a\nR01 b\xa0c\n", ":2: doc 'b\\xa0c'; expected a name without white space"),
        (read_pool, "R\u20281 a\n", ":1: topic 'R\\u20281'; expected a name without white space"),
        (read_assessors, "name\nann\n", "assessor"),
        (read_assessors, "assessor\n", "no assessor"),
        (read_assessors, "assessor\nann\nann\n", ":3: the assessor 'ann' a second time"),
        (read_assessors, "assessor\nann\nAnn\n", ":3: the assessor 'Ann' a second time"),
        (read_assessors, 'assessor,topics\n"",x\n', ":2: an assessor cannot be called"),
    ],
)
def test_wrong_inputs_are_named_with_their_line(tmp_path, read, text, problem):
    (tmp_path / "file").write_text(text, encoding="utf-8")
    with pytest.raises(FairevalsError, match=re.escape(problem)):
        read(tmp_path / "file")


def test_pools_with_and_without_a_header_and_assessors_with_topics(tmp_path):
    (tmp_path / "p").write_text("topic\tdoc\nR01\ta\nR01\tb\n")
    assert read_pool(tmp_path / "p") == [("R01", "a"), ("R01", "b")]
    (tmp_path / "a").write_text("assessor,topics\nann,R* M1\nbob,\n")
    assert read_assessors(tmp_path / "a") == {"ann": ("R*", "M1"), "bob": ("*",)}


def test_a_restart_keeps_links_and_adds_what_is_new(tmp_path):
    site, tokens = opened(tmp_path)
    assert set(tokens) == {"ann", "bob", ""}
    session = site.project.sign_in(tokens["ann"])[1]
    secret = site.secret
    site.project.store.close()
    (tmp_path / "pool.txt").write_text("R01 p1\nR01 p9\nR02 q\n")
    (tmp_path / "assessors.csv").write_text("assessor,topics\nann,\ncleo,R02\ndan,Z*\n")
    names = ("task.toml", "pool.txt", "pages", "assessors.csv")
    with Store(tmp_path / "data", create=True) as store:
        with pytest.warns() as caught:
            again, new = open_site(
                AnnotationInputs(*(tmp_path / name for name in names)), store, "http://localhost"
            )
        assert "no file for 2 pages of 5, such as 'p9'" in str(caught[0].message)
        assert "lacks 1 topic, such as 'R02'" in str(caught[1].message)
        assert "no topic of the pool is assigned to dan" in str(caught[2].message)
        assert (
            set(new) == {"cleo", "dan"} and again.project.session(session) == "ann" and again.secret == secret
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            inputs = AnnotationInputs(*(tmp_path / name for name in names))
            open_site(replace(inputs, assessors={"eve": "R* M1", "fay": ["Z*"]}), store, URL)
        assert [store.state.assessors[name].topics for name in ("eve", "fay")] == [("R*", "M1"), ("Z*",)]
        assert len(store.state.pages) == 5 and again.project.take_next("cleo") == 5
        with pytest.raises(UsageError, match="there is an assessor 'ann' already"):
            open_site(
                replace(AnnotationInputs(*(tmp_path / n for n in names)), assessors={"Ann": "*"}), store, URL
            )
        assert {path.stat().st_mode & 0o77 for path in (tmp_path / "data").glob("annotate.sqlite*")} == {0}


def test_the_sample_has_a_page_for_each_pooled_document_that_says_what_its_memberships_say(
    tmp_path, monkeypatch
):
    served = []
    monkeypatch.setattr("fairevals.annotate.serve", lambda *args, **given: served.append((args, given)))
    for _ in range(2):
        assert main(["demo", "--annotate", "-o", str(tmp_path), "--port", "0"]) == 0
    ((inputs, data), given), again = served
    assert again[0] == (inputs, data) and given["port"] == 0
    data.mkdir()
    with Store(data, create=True) as store:
        site, tokens = open_site(inputs, store, URL)  # a page without a file would be a warning
        assert set(tokens) == {"ann", "bob"} and len(store.state.pages) > 30
        task = site.task
        hindex = {p.stem: p.read_text(encoding="utf-8") for p in (tmp_path / "annotate/pages").iterdir()}
        rows = [line.split() for line in task.attributes["HINDEX"].memberships.read_text().splitlines()]
        told = 0
        for _, doc, *weights in rows:
            numbers = [float(n) for n in re.findall(r"h-index of (\d+)", hindex.get(doc, ""))]
            if numbers:
                bins = [sum(n >= edge for edge in task.attributes["HINDEX"].bins) for n in numbers]
                shares = [bins.count(group) / len(bins) for group in range(len(weights))]
                assert shares == pytest.approx([float(weight) for weight in weights], abs=1e-6)
                told += 1
        assert told > 20
        client = client_of(site, tokens["ann"])
        assert "biography URL" in client.get("/a").text


def test_wrong_folders_and_databases_are_refused(tmp_path, capsys):
    (tmp_path / "annotate.sqlite").write_bytes(
        b"no database at all, but long enough to be taken for one" * 20
    )
    (tmp_path / "newer").mkdir()
    with sqlite3.connect(tmp_path / "newer" / "annotate.sqlite") as newer:
        newer.executescript(f"CREATE TABLE events (id); PRAGMA application_id = {DATABASE_FORMAT + 1}")
    newer.close()
    assert main(["annotate", "export", str(tmp_path / "newer")]) == 1
    assert "cannot be used (a database of another program or version)" in capsys.readouterr().err
    assert main(["annotate", "status", str(tmp_path)]) == 1
    assert main(["annotate", "export", str(tmp_path / "nothing")]) == 1
    assert main(["annotate", "export"]) == 2
    assert main(["annotate", "--task", "t.toml"]) == 2
    inputs = ["--task", "t.toml", "--pool", "p.txt", "--pages", "."]
    for url in (
        "ftp://x",
        "https://example.org/prefix",
        "https://example.org//prefix",
        "https://",
        "//x",
        "http://a:b",
        "http://:80",
        "http://[x]",
    ):
        assert main(["annotate", *inputs, "--url", url]) == 2
    for host in ("0.0.0.0", "0", "::", "0:0::0", ""):
        with pytest.raises(UsageError, match="listens on all addresses; expected url"):
            serve(AnnotationInputs("t.toml", "p.txt", "."), tmp_path / "nothing", host=host)
    lines = capsys.readouterr().err.splitlines()
    assert "annotate.sqlite: cannot be used (file is not a database)" in lines[0]
    assert "there is no annotate.sqlite" in lines[1]
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("host", ["a\0b", "\udcff", "a..b"])
def test_a_host_that_no_address_can_have_is_refused(tmp_path, host):
    with pytest.raises(UsageError, match=r"cannot listen on .*; choose another address"):
        serve(AnnotationInputs("t.toml", "p.txt", "."), tmp_path / "data", host=host)


WORDS = ("--task", "task.toml", "--pool", "pool.txt", "--pages", "pages", "--data", "data", "--port", "0")


def start(folder, **given):
    """A server in a process of its own, and the links that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "fairevals", "annotate", *WORDS, "--assessors", "assessors.csv"],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        **given,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    links = {}
    for _ in range(3):
        who, _, link = process.stdout.readline().strip().partition("\t")
        links[who] = link
    return process, links


@pytest.mark.slow
def test_a_server_killed_during_a_stream_of_saves_has_everything_that_it_confirmed(tmp_path):
    httpx = pytest.importorskip("httpx")
    write_inputs(tmp_path, {f"p{n}.txt": "x" for n in range(300)})
    process, links = start(tmp_path)
    sent, confirmed, enough = {}, {}, threading.Event()

    def work(who):
        """Save as fast as possible until the server is gone."""
        with httpx.Client(follow_redirects=True) as client, suppress(httpx.TransportError):
            shown = client.get(links[who])
            while True:
                number = int(str(shown.url).rsplit("/", 1)[1])
                body = {"token": token_in(shown.text), "version": "0", "do": "save"}
                sent[who, number] = f"{who} {number} {len(sent)}"
                answer = client.post(shown.url, data={**body, **fields_of({sent[who, number]: "5"})})
                assert answer.status_code == 200
                confirmed[who, number] = sent[who, number]
                if len(confirmed) >= 40:
                    enough.set()
                shown = client.get(shown.url.join(answer.json()["next"]))

    threads = [threading.Thread(target=work, args=(who,)) for who in ("ann", "bob")]
    try:
        for thread in threads:
            thread.start()
        assert enough.wait(60)
    finally:
        os.kill(process.pid, signal.SIGKILL)  # while both are at work
        process.wait()
        process.stdout.close()
        for thread in threads:
            thread.join()
    with Store(tmp_path / "data") as store:
        stored = {
            (who, page): place.entities[0]["entity"]
            for page, places in store.state.places.items()
            for who, place in places.items()
            if place.saved
        }
        assert store._db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert all(len(places) <= 2 for places in store.state.places.values())
    assert len(confirmed) >= 40
    assert confirmed.items() <= stored.items() <= sent.items()
    assert len(stored) - len(confirmed) <= 2  # each may have waited for one confirmation


@pytest.mark.slow
def test_a_request_that_never_ends_does_not_keep_the_server_from_stopping(tmp_path):
    httpx = pytest.importorskip("httpx")
    write_inputs(tmp_path)
    process, links = start(tmp_path, stderr=subprocess.PIPE)
    try:
        with httpx.Client(follow_redirects=True) as client:
            shown = client.get(links["ann"])
            cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        head = (
            f"POST {shown.url.path} HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}\r\nContent-Length: 99\r\n"
        )
        with socket.create_connection((shown.url.host, shown.url.port)) as slow:
            slow.sendall(f"{head}Content-Type: application/x-www-form-urlencoded\r\n\r\ndo=".encode())
            assert httpx.get(shown.url.join("/")).status_code == 200  # by now the server reads the form
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


@pytest.mark.slow
def test_one_server_per_folder_and_a_clean_stop(tmp_path, capsys, monkeypatch):
    write_inputs(tmp_path)
    process, links = start(tmp_path)
    try:
        assert set(links) == {"(organiser)", "ann", "bob"}
        monkeypatch.chdir(tmp_path)
        assert main(["annotate", *WORDS]) == 2
        assert "in use by another server" in capsys.readouterr().err
        port = links["ann"].split(":")[2].partition("/")[0]
        assert main(["annotate", *WORDS, "--data", "other", "--port", port]) == 2
        assert "cannot listen on 127.0.0.1" in capsys.readouterr().err
        assert main(["annotate", "status", "data"]) == 0  # beside the server
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_public_address_with_a_path_is_refused(tmp_path):
    """Host headers have no path, so every request would be one for another host."""
    inputs = AnnotationInputs(tmp_path / "task.toml", tmp_path / "pool.txt", tmp_path)
    with pytest.raises(UsageError, match="without a path"):
        serve(inputs, tmp_path / "data", url="https://example.org/annotate")
    assert not (tmp_path / "data").exists()
