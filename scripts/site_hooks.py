"""What the site does beyond mkdocs: pages are written for a code host too, and link to tests, examples and each other.

- A link to a file outside docs/ leads to a page of the site that shows the file, so that the site is whole without a
  network; `file.py#test_name` leads to that test.
- A fence's second word, a file's name, is shown as the block's title.
- A page that stands in the nav and is not there is left out, and `decisions/` stands for all pages of that folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SHOWN = "files"
"""The site's folder for what is shown of files outside docs/."""

_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")
_FENCE = re.compile(r"^( *)(`{3,}|~{3,})(\w*) *(.*)$")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The nav as it is in this tree."""
    config.nav = _present(config.nav or [])
    return config


def _present(nav: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for entry in nav:
        ((title, place),) = entry.items()
        if isinstance(place, list):
            below = _present(place)
            kept += [{title: below}] if below else []
        elif place.endswith("/"):
            numbered = sorted(page.name for page in (DOCS / place).glob("[0-9]*.md"))
            kept.append({title: [f"{place}README.md", *(place + name for name in numbered)]})
        elif (DOCS / place).exists():
            kept.append(entry)
    return kept


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each file outside docs/ that a page links to, or that such a file links to."""
    anchors: dict[Path, set[str]] = {}
    todo = [DOCS / file.src_uri for file in files.documentation_pages()]
    while todo:
        for target, anchor in _linked(todo.pop()):
            if target.is_relative_to(ROOT) and not target.is_relative_to(DOCS) and target.exists():
                if target not in anchors:
                    todo.append(target)
                anchors.setdefault(target, set()).add(anchor)
    for file, wanted in anchors.items():
        added = File.generated(
            config, _address(file), content=_shown(file, wanted), inclusion=InclusionLevel.NOT_IN_NAV
        )
        files.append(added)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The text of a page, for where it stands in the site."""
    del config, files
    address = page.file.src_uri
    place = ROOT / address.removeprefix(f"{SHOWN}/").removesuffix(".md") if _is_shown(address) else DOCS / address
    return _each_line(markdown, text=partial(_with_links, place=place, address=address), fence=_titled)


def _is_shown(address: str) -> bool:
    return address.startswith(f"{SHOWN}/")


def _address(target: Path) -> str:
    """Where a file stands in the site."""
    if target.is_relative_to(DOCS):
        return target.relative_to(DOCS).as_posix()
    return f"{SHOWN}/{target.relative_to(ROOT).as_posix()}.md"


def _linked(page: Path) -> Iterator[tuple[Path, str]]:
    """What a page links to, with the anchor; a folder, to what is in it."""
    if page.is_dir():
        yield from ((file, "") for file in _in_folder(page))
    elif page.suffix == ".md":
        found: list[re.Match[str]] = []

        def look(line: str) -> str:
            found.extend(_LINK.finditer(line))
            return line

        _each_line(page.read_text(encoding="utf-8"), text=look, fence=lambda line: line)
        for link in found:
            yield (page.parent / link[1]).resolve(), (link[2] or "")[1:]


def _in_folder(folder: Path) -> list[Path]:
    return sorted(
        file
        for file in folder.iterdir()
        if not file.name.startswith((".", "_")) and (file.is_dir() or file.suffix in {".py", ".md", ".yaml", ".json"})
    )


def _with_links(line: str, place: Path, address: str) -> str:
    def moved(link: re.Match[str]) -> str:
        target = (place.parent / link[1]).resolve()
        if not target.exists() or not target.is_relative_to(ROOT):
            return link[0]  # mkdocs says what is wrong with it
        return os.path.relpath(_address(target), Path(address).parent) + (link[2] or "")

    return _LINK.sub(moved, line)


def _titled(line: str) -> str:
    """A file's name as the mark-down extension has it; another word is the tests' own."""

    def title(match: re.Match[str]) -> str:
        indent, fence, language, name = match.groups()
        return f"{indent}{fence}{language}" + (f' title="{name}"' if "." in name else "")

    return _FENCE.sub(title, line)


def _each_line(markdown: str, text: Callable[[str], str], fence: Callable[[str], str]) -> str:
    """Change what stands outside code blocks, and the first lines of those."""
    lines: list[str] = []
    opened = ""
    for line in markdown.split("\n"):
        match = _FENCE.match(line)
        if opened:
            lines.append(line)
            if match and match[2].startswith(opened) and not match[3] and not match[4]:
                opened = ""
        elif match:
            lines.append(fence(line))
            opened = match[2]
        else:
            lines.append(text(line))
    return "\n".join(lines)


def _shown(file: Path, anchors: set[str]) -> str:
    """A page that shows a file. The search leaves it out: it is not about anything."""
    name = file.relative_to(ROOT).as_posix()
    head = f"---\ntitle: {name}\nsearch: {{exclude: true}}\n---\n"
    if file.is_dir():
        listed = "".join(f"- [{one.name}]({file.name}/{one.name})\n" for one in _in_folder(file))
        return f"{head}# {name}\n\n{listed}"
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        return head + text
    parts = _parts(text, anchors - {""}) if file.suffix == ".py" else [("", text)]
    return f"{head}# {name}\n\n" + "\n".join(
        (f'<a id="{anchor}"></a>\n\n' if anchor else "") + f"``````{file.suffix[1:]}\n{part.strip(chr(10))}\n``````\n"
        for anchor, part in parts
    )


def _parts(source: str, functions: set[str]) -> Iterator[tuple[str, str]]:
    """A program cut before each of these functions, with its decorators."""
    place, anchor = 0, ""
    for match in re.finditer(r"^(?:@.*\n(?:[ )\]].*\n)*)*(?:async )?def (\w+)\(", source, re.MULTILINE):
        if match[1] in functions:
            yield anchor, source[place : match.start()]
            place, anchor = match.start(), match[1]
    yield anchor, source[place:]
