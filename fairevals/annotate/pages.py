"""The pages of the pool: where they are, and how strangers' text is served without doing anything."""

import codecs
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from html import escape as html_escape
from html.entities import codepoint2name
from itertools import islice
from pathlib import Path

from fairevals.errors import InputError, Place, UsageError, escape
from fairevals.io.folders import safe_name
from fairevals.io.streams import Source
from fairevals.io.tables import table

PAGE_KINDS = {".html": "html", ".htm": "html", ".txt": "text", ".pdf": "pdf"}
MAX_PAGE = {"html": 10 << 20, "text": 10 << 20, "pdf": 100 << 20}
"""Bytes of a page that is shown."""
MAX_MARKS = 1000
"""Places of a text that are marked."""
MAX_FIND = 100
"""Characters of a text that is searched for."""
STEP, REACH = 1 << 14, 1 << 12
"""Characters that are searched at once, and how far beyond them a place may end."""
SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""No scripts, forms, frames, fonts or requests of any kind, and an origin that is nobody's."""
HARMLESS = {
    # Elements whose address browsers connect to before they find out that the policy forbids it.
    re.compile(r"<(?=(?:link|i?frame|object|embed|portal|fencedframe)[\s/>])", re.IGNORECASE): "<no-",
    # Animations can take away from a link the target that it gets below.
    re.compile(r"<(?=(?:set|animate)[\s/>])", re.IGNORECASE): "<no-",
    # A link to another page in the frame is connected to before the policy forbids that. So links get a target that the
    # sandbox forbids; of two targets, browsers take the first. The address can still be copied.
    re.compile(r"<a(?=[\s/>])", re.IGNORECASE): "<a target=_blank ",
    re.compile(r"<area(?=[\s/>])", re.IGNORECASE): "<area target=_blank ",
}
"""What is replaced in HTML, by what."""


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
            for suffix, kind in PAGE_KINDS.items():
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
    text = decoded(page.path.read_bytes(), html=page.kind == "html")
    kind = "html" if page.kind == "html" or find else "plain"
    headers = {"Content-Security-Policy": SANDBOX, "Content-Type": f"text/{kind}; charset=utf-8"}
    if page.kind == "html":
        for pattern, harmless in HARMLESS.items():
            text = pattern.sub(harmless, text)
    elif find:
        text = f"<pre style='white-space: pre-wrap'>{html_escape(text, quote=False)}</pre>"
    if find:
        text, count = _marked(text, find)
        headers["X-Matches"] = str(count)
    return text.encode("utf-8", "replace"), headers | {"Referrer-Policy": "no-referrer"}


DECLARED = (
    re.compile(rb"""<meta\s[^>]*?charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE),
    re.compile(rb"""\A<\?xml\s[^>]*?encoding\s*=\s*["']([\w.:-]{1,40})""", re.IGNORECASE),
)
"""How HTML declares its encoding; the first counts."""
MEANT = {
    **dict.fromkeys(("ascii", "iso8859-1"), "cp1252"),
    "iso8859-9": "cp1254",
    **dict.fromkeys(("iso8859-11", "tis-620", "windows-874"), "cp874"),
    **dict.fromkeys(("gb2312", "gbk", "gb_2312-80"), "gb18030"),
    **dict.fromkeys(("big5", "cn-big5"), "big5hkscs"),
    **dict.fromkeys(("shift_jis", "windows-31j"), "cp932"),
    **dict.fromkeys(("euc_kr", "windows-949"), "cp949"),
    "koi8": "koi8-r",
    "koi8-ru": "koi8-u",
    "iso-8859-8-i": "iso8859-8",
}
"""Names that Python does not know, and encodings that browsers read as one with more characters
(encoding.spec.whatwg.org)."""
ENCODINGS = {
    *("utf-8", "gb18030", "big5hkscs", "cp932", "euc_jp", "iso2022_jp", "cp949", "koi8-r", "koi8-u"),
    *("mac-roman", "mac-cyrillic", "cp866", "cp874", *(f"cp{number}" for number in range(1250, 1259))),
    *(f"iso8859-{number}" for number in (*range(2, 9), 10, *range(13, 17))),
}
"""Python's names of the encodings that browsers know. Others, such as UTF-7, are as good as not declared."""


def decoded(data: bytes, *, html: bool) -> str:
    """The text of a page by its byte order mark; else in the encoding that HTML declares, as browsers understand it;
    else in UTF-8 if it is, or in that of Western Europe."""
    for mark, name in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig")):
        if data.startswith(mark):
            return data.decode(name, "replace")
    for pattern in DECLARED if html else ():
        if declared := pattern.search(data[:2048]):
            with suppress(LookupError):
                label = declared[1].decode().lower().removeprefix("x-")
                name = codecs.lookup(MEANT.get(label, label)).name
                if (name := MEANT.get(name, name)) in ENCODINGS:
                    return data.decode(name, "replace")
            break
    try:
        return data.decode()
    except UnicodeError:
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
    words = [r"".join(map(_spellings, word)) for word in find[:MAX_FIND].split()]
    pattern = re.compile(space.join(words) or "(?!)", re.IGNORECASE)
    parts: list[str] = []
    count = at = 0
    while at < len(text) and count < MAX_MARKS:
        markup = _MARKUP.search(text, at)
        start, end = markup.span() if markup else (len(text), len(text))
        if markup and (name := (markup[1] or "").lower()) in _NO_TEXT:
            closing = re.compile(f"</{name}|\\Z", re.IGNORECASE).search(text, end)
            end = closing.start() if closing else end
        for match in islice(_matches(pattern, text, at, start), MAX_MARKS - count):
            count += 1
            parts += (text[at : match.start()], f"<mark id=find-{count}>{match[0]}</mark>")
            at = match.end()
        parts.append(text[at:end])
        at = end
    return "".join([*parts, text[at:]]), count


def _matches(pattern: re.Pattern[str], text: str, at: int, end: int) -> Iterator[re.Match[str]]:
    """Where the pattern matches in a part of a text, step by step: others can work only between two steps."""
    while at < end:
        match = pattern.search(text, at, min(end, at + STEP + REACH))
        if match and match.start() < at + STEP:
            yield match
            at = match.end()
        else:
            at += STEP


def _spellings(char: str) -> str:
    """A pattern of the ways to write a character in HTML."""
    if char.isascii() and char.isalnum():
        return char
    name = codepoint2name.get(ord(char))
    return f"(?:{re.escape(char)}|&#{ord(char)};|&#x{ord(char):x};{f'|&{name};' if name else ''})"
