"""Safe file names for tags, topics and attributes. No other code puts such names into a path."""

from __future__ import annotations

import hashlib
import re
import unicodedata

_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?", re.IGNORECASE | re.DOTALL)
_HASHED = re.compile(r".*-[0-9a-f]{8}", re.DOTALL)


def safe_name(text: str, most: int = 60) -> str:
    r"""A readable name that any file system accepts: not a path, hidden, reserved or empty.

    A harmless text is returned as it is. Any other is changed and gets a hash of the text, so that two texts never
    have the same name (except for upper and lower case).

    >>> safe_name("HINDEX"), safe_name("bm25+rm3 v1.2")
    ('HINDEX', 'bm25_rm3_v1.2-78c4c91d')
    >>> safe_name("../../x"), safe_name("CON"), safe_name("\u200b")
    ('x-9cdf6a50', 'CON-a3dbc4b6', 'name-f4e48e66')
    """
    clean = re.sub(r"[^\w.-]+", "_", unicodedata.normalize("NFC", text)).strip("._-")
    # 200 bytes leave room for endings: most file systems allow 255 in a name.
    clean = clean[:most].encode()[:200].decode(errors="ignore").rstrip("._-")
    if clean == text and clean and not _RESERVED.fullmatch(clean) and not _HASHED.fullmatch(clean):
        return clean
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    if _RESERVED.fullmatch(clean):
        clean = clean.replace(".", "_")  # `con.x-1` would still name the device
    return f"{clean or 'name'}-{digest}"
