"""The annotation tool under load: how fast the next page comes, and whether anything is lost or given out twice.

    python benchmarks/annotate.py [--pages 50000] [--topics 50] [--assessors 20] [--judged 40000] [--seconds 60]

It writes a pool with its pages to a temporary folder, with entries for most of them, starts `fairevals annotate` on
this machine, and lets simulated assessors save the other pages: first with a random pause after each page, then
without. Meanwhile the organiser opens the overview again and again. Then the server is killed, and what was
confirmed is compared with what is stored. The time of the next page is from sending an entry until the next page is
there, with its form and its document.
"""

from __future__ import annotations

import argparse
import http.client
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from itertools import combinations
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import numpy as np

from fairevals.annotate.server import AnnotationInputs, open_site
from fairevals.annotate.store import Store

GOAL = 0.2
"""Seconds until the next page is shown."""
TASK = """name = "Load"
[attributes.HINDEX]
kind = "ordinal"
groups = ["<10", "10-29", ">=30"]
bins = [10, 30]
[attributes.REGION]
groups = ["Africa", "Asia", "Europe"]
[annotation.fields]
"*" = ["biography URL"]
"""


class Client:
    """A browser without a screen: one connection that is kept open, and one cookie."""

    def __init__(self, link: str) -> None:
        address = urlsplit(link)
        self.connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
        self.cookie = ""
        headers, _ = self.send("GET", address.path, expect=303)
        self.cookie = headers["set-cookie"].partition(";")[0]

    def send(
        self, method: str, path: str, body: str | None = None, expect: int = 200
    ) -> tuple[dict[str, str], str]:
        """The headers, with names in lower case, and the text of an answer; another code than expected is an error."""
        headers = {"Cookie": self.cookie}
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        self.connection.request(method, path, body, headers)
        answer = self.connection.getresponse()
        text = answer.read().decode()
        if answer.status != expect:
            raise RuntimeError(f"{method} {path}: {answer.status} instead of {expect}")
        return {name.lower(): value for name, value in answer.getheaders()}, text


class Assessor(threading.Thread):
    """Saves one page after the other until the time is over; every third has no entity."""

    def __init__(self, name: str, link: str) -> None:
        super().__init__(daemon=True)
        self.who, self.link = name, link
        self.pause, self.end = 0.0, 0.0
        self.random = random.Random(name)
        self.given: Counter[str] = Counter()
        """Pages that the server gave out."""
        self.confirmed: dict[str, str] = {}
        """Pages that it has confirmed, with the entity."""
        self.times: list[float] = []
        self.errors: list[str] = []

    def run(self) -> None:
        try:
            client = Client(self.link)
            address = client.send("GET", "/a", expect=303)[0]["location"]
            shown = self._open(client, address)
            while time.monotonic() < self.end and address != "/a/mine":
                page = address.rsplit("/", 1)[1]
                token = re.search(r'name="token" value="(\w+)"', shown)
                name = f"{self.who} {page}" if int(page) % 3 else ""
                body = {"token": token[1] if token else "", "version": "0", "do": "save" if name else "none"}
                if name:
                    body |= {"e0": name, "e0f0": page, "e0f1": "Asia", "e0f2": "https://example.org/x"}
                start = time.perf_counter()
                answer = client.send("POST", address, urlencode(body))[1]
                self.confirmed[page] = name
                found = re.search(r'"next":"([^"]+)"', answer)
                address = found[1] if found else ""
                shown = self._open(client, address)
                self.times.append(time.perf_counter() - start)
                time.sleep(self.pause * 2 * self.random.random())
        except (OSError, RuntimeError, http.client.HTTPException) as error:
            self.errors.append(f"{self.who}: {error!r}")

    def _open(self, client: Client, address: str) -> str:
        shown = client.send("GET", address)[1]
        frame = re.search(r'src="(/page/[^"]+)"', shown)
        if frame:
            client.send("GET", frame[1])
            self.given[address.rsplit("/", 1)[1]] += 1
        return shown


def write_inputs(folder: Path, pages: int, topics: int, assessors: int) -> None:
    """A task, a pool, its pages, and the list of assessors."""
    (folder / "pages").mkdir()
    (folder / "task.toml").write_text(TASK)
    docs = [(f"T{number % topics:03}", f"doc-{number:06}") for number in range(pages)]
    (folder / "pool.txt").write_text("".join(f"{topic} {doc}\n" for topic, doc in docs))
    page = folder / "page.html"
    page.write_text("<h1>A page</h1>" + "<p>Some words about people.</p>" * 100)
    for _, doc in docs:
        (folder / "pages" / f"{doc}.html").hardlink_to(page)
    names = "".join(f"a{number:02}\n" for number in range(assessors))
    (folder / "assessors.csv").write_text(f"assessor\n{names}")


def judge(folder: Path, judged: int, assessors: int) -> set[tuple[str, int]]:
    """Write the entries of two assessors for each of so many pages; returns who judged what."""
    (folder / "data").mkdir()
    names = [f"a{number:02}" for number in range(assessors)]
    pairs = list(combinations(names, 2))
    places = [(number, who) for number in range(1, judged + 1) for who in pairs[number % len(pairs)]]
    facts = {"REGION": "Asia", "biography URL": "https://example.org/x"}
    with Store(folder / "data", create=True) as store:
        open_site(
            AnnotationInputs(*(folder / name for name in ("task.toml", "pool.txt", "pages"))), store, ""
        )
        with store.writing():
            for who in names:
                store.add_assessor(who, ["*"])
            for number, who in places:
                entity = {"entity": f"Person {number % 40}", "HINDEX": str(number % 50), **facts}
                store.append("take", who, number)
                store.append("save", who, number, entities=[entity] if number % 3 else [])
    return {(who, number) for number, who in places}


def start_server(folder: Path, assessors: int) -> tuple[subprocess.Popen[str], dict[str, str]]:
    """The server, and the links that it prints."""
    words = "--task task.toml --pool pool.txt --pages pages --assessors assessors.csv --data data --port 0"
    process = subprocess.Popen(
        [sys.executable, "-m", "fairevals", "annotate", *words.split()],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])},
    )
    links = {}
    for _ in range(assessors + 1):
        who, _, link = (process.stdout or sys.stdin).readline().strip().partition("\t")
        links[who] = link
    return process, links


def phase(label: str, workers: list[Assessor], organiser: Client, seconds: float, pause: float) -> None:
    """Let the assessors work, and print how it went."""
    end, opened = time.monotonic() + seconds, []
    for worker in workers:
        worker.pause, worker.end = pause, end
        worker.start()
    while time.monotonic() < end:
        start = time.perf_counter()
        organiser.send("GET", "/o")
        opened.append(time.perf_counter() - start)
        organiser.connection.close()  # the server would, before the next time
        time.sleep(min(5.0, max(0.0, end - time.monotonic())))
    for worker in workers:
        worker.join()
    times = np.concatenate([worker.times for worker in workers])
    half, most, longest = np.quantile(times, [0.5, 0.95, 1.0])
    print(
        f"{label:<22} {times.size:7,} pages saved, {times.size / seconds:6.1f}/s   next page: median "
        f"{half * 1000:.0f} ms, 95 % {most * 1000:.0f} ms, longest {longest * 1000:.0f} ms, "
        f"{(times > GOAL).sum()} above {GOAL * 1000:.0f} ms   overview: {max(opened):.2f} s"
    )


def check(folder: Path, workers: list[Assessor], judged: set[tuple[str, int]], per_page: int = 2) -> bool:
    """Compare what was given out and confirmed with what is stored, and print it."""
    errors = [error for worker in workers for error in worker.errors]
    confirmed = {
        (worker.who, int(page)): name for worker in workers for page, name in worker.confirmed.items()
    }
    with Store(folder / "data") as store:
        places = store.state.places
        stored = {
            (who, page): "|".join(entity["entity"] for entity in place.entities)
            for page, of in places.items()
            for who, place in of.items()
            if place.saved and (who, page) not in judged
        }
        crowded = sum(len(of) > per_page for of in places.values())
        shared = [count for pair, count in store.state.shared.items() if count]
    again = sum(count - 1 for worker in workers for count in worker.given.values())
    counts = {
        "errors": len(errors),
        "confirmed but not stored": len(confirmed.keys() - stored.keys()),
        "stored but not confirmed": len(stored.keys() - confirmed.keys()),
        "stored otherwise": sum(stored[key] != name for key, name in confirmed.items() if key in stored),
        f"pages with more than {per_page} assessors": crowded,
        "pages given twice to one assessor": again,
    }
    for name, count in counts.items():
        print(f"{name:<36} {count:6,}")
    print(f"pages that two assessors share: {min(shared)} to {max(shared)} for each of {len(shared)} pairs")
    for error in errors[:5]:
        print(error)
    return not any(counts.values())


def main() -> int:
    """Run it; the exit code is 1 if anything was lost or given out twice."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, kind, default in (
        ("pages", int, 50_000),
        ("topics", int, 50),
        ("assessors", int, 20),
        ("judged", int, 40_000),
        ("seconds", float, 60),
        ("pause", float, 1),
    ):
        parser.add_argument(f"--{name}", type=kind, default=default, help=f"default {default}")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder, args.pages, args.topics, args.assessors)
        judged = judge(folder, args.judged, args.assessors)
        start = time.perf_counter()
        process, links = start_server(folder, args.assessors)
        try:
            print(f"{args.pages:,} pages in {args.topics} topics, {args.assessors} assessors; ", end="")
            print(f"started in {time.perf_counter() - start:.1f} s")
            organiser = Client(links.pop("(organiser)"))
            workers = []
            for label, pause in ((f"pauses of {args.pause:g} s", args.pause), ("as fast as they can", 0.0)):
                now = [Assessor(who, link) for who, link in links.items()]
                phase(label, now, organiser, args.seconds, pause)
                workers += now
        finally:
            process.kill()
            process.wait()
        return 0 if check(folder, workers, judged) else 1


if __name__ == "__main__":
    sys.exit(main())
