"""Text of others in Markdown: as code, which no Markdown, HTML or link can be made of.

Temporal's UI shows the HTML that is in Markdown as HTML, and makes links of addresses.
"""

from __future__ import annotations

import re

_UNSEEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb]+"
)
"""What ends a line, is not seen, or turns the direction of what follows."""
_TICKS = re.compile("`+")


def code(text: str, most: int = 80) -> str:
    """The text as it is, on one line, of no more than `most` characters and an ellipsis."""
    plain = " ".join(_UNSEEN.sub(" ", text[: most * 4 + 1]).split())
    if len(plain) > most or len(text) > most * 4 + 1:
        plain = plain[:most].rstrip() + "…"
    if not plain:
        return "(empty)"
    fence = "`" * (1 + max((len(ticks) for ticks in _TICKS.findall(plain)), default=0))
    edge = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{fence}{edge}{plain}{edge}{fence}"


def codes(texts: list[str], most: int, *, length: int = 60) -> str:
    """The first `most` of them, and how many more there are."""
    shown = [code(text, length) for text in texts[:most]]
    more = len(texts) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def size(count: int) -> str:
    """Bytes as a person reads them."""
    if count < 1_000:
        return f"{count} B"
    return f"{count / 1_000:.1f} KB" if count < 1_000_000 else f"{count / 1_000_000:.2f} MB"


def number(count: int, one: str, many: str = "") -> str:
    """`1 checkpoint`, `2 checkpoints`."""
    return f"{count} {one if count == 1 else many or one + 's'}"
