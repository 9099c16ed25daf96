"""The code blocks of our pages, in order, with what their fences say of them."""

from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Block:
    """```language name, then the text."""

    page: str
    line: int
    language: str
    """Empty where the fence has none, or there is no fence."""
    name: str
    """A file's, or another word; often empty."""
    text: str

    def __str__(self) -> str:
        return f"{self.page}, line {self.line} ({self.language} {self.name})"


def pages() -> list[Path]:
    """Every page that we write for others."""
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page, indented ones too: those have no language, and so no rule."""
    found: list[Block] = []
    for token in MarkdownIt().parse(page.read_text()):
        if token.type in ("fence", "code_block"):
            language, _, name = token.info.strip().partition(" ")
            line = token.map[0] + 1 if token.map else 0
            found.append(Block(str(page.relative_to(ROOT)), line, language, name.strip(), token.content))
    return found
