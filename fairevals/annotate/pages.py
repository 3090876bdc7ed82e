"""The pages of the pool: where they are, and how strangers' text is served without doing anything."""

import re
from dataclasses import dataclass
from html import escape as html_escape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

from fairevals.errors import InputError, Place, UsageError, escape
from fairevals.io.folders import safe_name
from fairevals.io.streams import Source
from fairevals.io.tables import table

MAX_PAGE = 50 << 20
"""Bytes of a page that is shown."""
KINDS = {".html": "html", ".htm": "html", ".txt": "text", ".pdf": "pdf"}
SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""No scripts, forms, frames, fonts or requests of any kind, and an origin that is nobody's."""
CONNECTING = re.compile(r"<(?=(?:link|i?frame|object|embed|portal|fencedframe)[\s/>])", re.IGNORECASE)
"""Elements whose address browsers connect to before they find out that the policy forbids it."""
ANCHOR = re.compile(r"<(a|area)(?=[\s/>])", re.IGNORECASE)
"""Where links begin. They get a target that the sandbox forbids (of two, browsers take the first), because a link to
another page in the frame is connected to before the policy forbids that. Its address can still be copied."""


@dataclass(frozen=True)
class PageFile:
    """A page: `html`, `text` or `pdf` in a file, a `link` to another place, or `missing`."""

    kind: str
    path: Path = Path()
    url: str = ""


MISSING_PAGE = PageFile("missing")


class PageFiles:
    """Finds pages by document: files `<doc>.html`, `.txt` or `.pdf` in a folder, or a csv with columns doc and url."""

    def __init__(self, where: str | Path) -> None:
        self.folder = Path(where)
        self.links: dict[str, str] = {}
        if self.folder.is_file():
            self.links = _read_links(self.folder)
        elif not self.folder.is_dir():
            shown = escape(str(where), 200)
            raise UsageError(f"{shown} is neither a folder with pages nor a table with columns doc, url")

    def find(self, doc: str) -> PageFile:
        """The page of a document. Nothing outside the folder is ever found, whatever the document is called."""
        if self.links:
            return PageFile("link", url=self.links[doc]) if doc in self.links else MISSING_PAGE
        root = self.folder.resolve()
        for name in dict.fromkeys((doc, safe_name(doc))):
            for suffix, kind in KINDS.items():
                try:
                    path = (root / f"{name}{suffix}").resolve()
                    fits = path.is_relative_to(root) and path.is_file() and path.stat().st_size <= MAX_PAGE
                except (OSError, ValueError):  # a name that no file can have
                    continue
                if fits:
                    return PageFile(kind, path)
        return MISSING_PAGE


def _read_links(path: Path) -> dict[str, str]:
    source = Source.of(path)
    _, header, rows = table(source, ("doc", "url"))
    links: dict[str, str] = {}
    for line, row in rows:
        doc, url = (row[header.index(column)] for column in ("doc", "url"))
        if not url.startswith(("http://", "https://")):
            raise InputError(
                Place(source.name, line), f"url {escape(url)!r}", "an address with http:// or https://"
            )
        if doc in links:
            raise InputError(
                Place(source.name, line), f"the document {escape(doc)!r} a second time", "it once"
            )
        links[doc] = url
    return links


def serve_page(page: PageFile, find: str = "") -> tuple[bytes, dict[str, str]]:
    """The content of a page and its headers; with `find`, each place of the text is marked as `find-1`, `find-2`, …

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.html"
    ...     _ = path.write_text("<p>An ant & an <b>ANT</b></p>", encoding="utf-8")
    ...     content, headers = serve_page(PageFile("html", path), "ant")
    >>> content.decode(), headers["X-Matches"]
    ('<p>An <mark id=find-1>ant</mark> & an <b><mark id=find-2>ANT</mark></b></p>', '2')
    """
    data = page.path.read_bytes()
    if page.kind == "pdf" and data.startswith(b"%PDF-"):
        # A browser's own viewer does not work in a sandbox; it runs nothing of the page's origin.
        return data, {"Content-Type": "application/pdf"}
    kind = "html" if page.kind == "html" or find else "plain"
    headers = {"Content-Security-Policy": SANDBOX, "Content-Type": f"text/{kind}; charset=utf-8"}
    # In one encoding, so that the browser reads what was looked through here.
    text = decoded(data)
    if page.kind == "html":
        text = CONNECTING.sub("<no-", text)
        text = ANCHOR.sub(r"<\1 target=_blank", text)
    if find:
        marker = _Marker(find)
        if page.kind == "html":
            marker.feed(text)
            marker.close()
        else:
            marker.add_text(text)
        text = "".join(marker.parts)
        headers["X-Matches"] = str(marker.count)
    return text.encode("utf-8", "replace"), headers | {"Referrer-Policy": "no-referrer"}


def decoded(data: bytes) -> str:
    """The text of a page in the encoding that it declares; else in UTF-8, or in that of Western Europe."""
    declared = re.search(rb"""charset\s*=\s*["']?\s*([\w-]{1,40})""", data[:2048], re.IGNORECASE)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    try:
        return data.decode(
            declared[1].decode() if declared else "utf-8-sig", "replace" if declared else "strict"
        )
    except (LookupError, UnicodeError):
        return data.decode("cp1252", "replace")


class _Marker(HTMLParser):
    """Repeats a page as it is, but for marks around a text."""

    def __init__(self, find: str) -> None:
        super().__init__(convert_charrefs=False)
        self.pattern = re.compile(r"\s+".join(map(re.escape, find.split())) or r"(?!)", re.IGNORECASE)
        self.parts: list[str] = []
        self.count = 0
        self.raw = ""
        """The element whose content is no text for people."""

    def add_text(self, text: str) -> None:
        """Add text that is no HTML."""
        ends = [0, *(place for match in self.pattern.finditer(text) for place in match.span()), len(text)]
        pieces = [html_escape(text[start:end]) for start, end in pairwise(ends)]
        for at in range(1, len(pieces), 2):
            self.count += 1
            pieces[at] = f"<mark id=find-{self.count}>{pieces[at]}</mark>"
        self.parts += ["<pre style='white-space: pre-wrap'>", *pieces, "</pre>"]

    def handle_data(self, data: str) -> None:
        self.parts.append(data if self.raw else self.pattern.sub(self._mark, data))

    def _mark(self, match: re.Match[str]) -> str:
        self.count += 1
        return f"<mark id=find-{self.count}>{match[0]}</mark>"

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.parts.append(self.get_starttag_text() or "")
        if tag in ("script", "style", "title", "textarea", "template", "noscript"):
            self.raw = self.raw or tag

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self.parts.append(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        self.parts.append(f"</{tag}>")
        self.raw = "" if tag == self.raw else self.raw

    def handle_entityref(self, name: str) -> None:
        self.parts.append(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.parts.append(f"&#{name};")

    def handle_comment(self, data: str) -> None:
        """Comments are left out."""

    def handle_decl(self, decl: str) -> None:
        self.parts.append(f"<!{decl}>")
