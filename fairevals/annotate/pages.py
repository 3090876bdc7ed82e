"""The pages of the pool: where they are, and how strangers' text is served without doing anything."""

import codecs
import re
from contextlib import suppress
from dataclasses import dataclass
from html import escape as html_escape
from html.entities import codepoint2name
from pathlib import Path

from fairevals.errors import InputError, Place, UsageError, escape
from fairevals.io.folders import safe_name
from fairevals.io.streams import Source
from fairevals.io.tables import table

KINDS = {".html": "html", ".htm": "html", ".txt": "text", ".pdf": "pdf"}
MAX_PAGE = {"html": 10 << 20, "text": 10 << 20, "pdf": 100 << 20}
"""Bytes of a page that is shown."""
MAX_MARKS = 1000
"""Places of a text that are marked."""
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
        self.folder = Path(where).resolve()
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
        root = self.folder
        for name in dict.fromkeys((doc, safe_name(doc))):
            for suffix, kind in KINDS.items():
                try:
                    path = (root / f"{name}{suffix}").resolve()
                    fits = (
                        path.is_relative_to(root) and path.is_file() and path.stat().st_size <= MAX_PAGE[kind]
                    )
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


def is_pdf(page: PageFile) -> bool:
    """Whether a page is a PDF by its content too; else it is shown as text."""
    if page.kind != "pdf":
        return False
    with page.path.open("rb") as file:
        return file.read(5) == b"%PDF-"


def page_text(page: PageFile, find: str = "") -> tuple[bytes, dict[str, str]]:
    """A page of HTML or text in UTF-8, and its headers; with `find`, places of it are marked as `find-1`, `find-2`, …

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.html"
    ...     _ = path.write_text("<p title=ant>R&amp;D of an <b>ANT</b></p>", encoding="utf-8")
    ...     marked = [page_text(PageFile("html", path), text) for text in ("ant", "r&d")]
    >>> marked[0][0].decode(), marked[0][1]["X-Matches"]
    ('<p title=ant>R&amp;D of an <b><mark id=find-1>ANT</mark></b></p>', '1')
    >>> marked[1][0].decode()
    '<p title=ant><mark id=find-1>R&amp;D</mark> of an <b>ANT</b></p>'
    """
    # In one encoding, so that the browser reads what was looked through here.
    text = decoded(page.path.read_bytes())
    kind = "html" if page.kind == "html" or find else "plain"
    headers = {"Content-Security-Policy": SANDBOX, "Content-Type": f"text/{kind}; charset=utf-8"}
    if page.kind == "html":
        text = CONNECTING.sub("<no-", text)
        text = ANCHOR.sub(r"<\1 target=_blank", text)
    elif find:
        text = f"<pre style='white-space: pre-wrap'>{html_escape(text, quote=False)}</pre>"
    if find:
        text, count = _marked(text, find)
        headers["X-Matches"] = str(count)
    return text.encode("utf-8", "replace"), headers | {"Referrer-Policy": "no-referrer"}


def decoded(data: bytes) -> str:
    """The text of a page in the encoding that it declares; else in UTF-8, or in that of Western Europe."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    declared = re.search(rb"""charset\s*=\s*["']?\s*([\w-]{1,40})""", data[:2048], re.IGNORECASE)
    with suppress(LookupError, UnicodeError):
        name = codecs.lookup(declared[1].decode()).name if declared else "utf-8-sig"
        if name not in ("idna", "punycode"):  # no encodings of pages, and slow
            return data.decode(name, "replace" if declared else "strict")
    return data.decode("cp1252", "replace")


# An unclosed tag, comment or quotation goes on to the end, so that no pattern looks at a text twice.
_MARKUP = re.compile(
    r"""<!--.*?(?:-->|\Z)|<([a-z][^\s/>]*+)(?:=\s*"[^"]*"|=\s*'[^']*'|[^>])*+(?:>|\Z)|<[/!?][^>]*>?""",
    re.IGNORECASE | re.DOTALL,
)
_NO_TEXT = {"script", "style", "title", "textarea", "template"}
"""Elements whose content is not shown as text."""


def _marked(text: str, find: str) -> tuple[str, int]:
    """HTML with marks around the first places of a text outside of tags, and how many."""
    space = r"(?:\s|&nbsp;|&#160;)++"
    words = [r"".join(map(_spellings, word)) for word in find.split()]
    pattern = re.compile(space.join(words) or "(?!)", re.IGNORECASE)
    parts: list[str] = []
    count = at = 0

    def mark(match: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return f"<mark id=find-{count}>{match[0]}</mark>"

    while at < len(text):
        markup = _MARKUP.search(text, at)
        start, end = markup.span() if markup else (len(text), len(text))
        if markup and (name := (markup[1] or "").lower()) in _NO_TEXT:
            closing = re.compile(f"</{name}|\\Z", re.IGNORECASE).search(text, end)
            end = closing.start() if closing else end
        between = text[at:start]
        if count < MAX_MARKS:
            between = pattern.sub(mark, between, count=MAX_MARKS - count)
        parts += (between, text[start:end])
        at = end
    return "".join(parts), count


def _spellings(char: str) -> str:
    """A pattern of the ways to write a character in HTML."""
    if char.isascii() and char.isalnum():
        return char
    name = codepoint2name.get(ord(char))
    return f"(?:{re.escape(char)}|&#{ord(char)};|&#x{ord(char):x};{f'|&{name};' if name else ''})"
