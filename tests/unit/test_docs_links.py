r"""Links in the documentation that lead to a line of code lead to that line.

Such a link is written with a fragment of the line behind it:

    [`functional/losses.py`](../src/surefoot/functional/losses.py#L42): `torch.minimum(ratio * advantages`

In a table, `\|` stands for `|`. Where lines have moved, `python tests/unit/test_docs_links.py --fix` writes
their new numbers.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINE_LINK = re.compile(r"\]\((?P<path>[^)#\s]+)#L(?P<line>\d+)\)")
PINNED_LINK = re.compile(r"\[`(?P<text>[^`]+)`" + LINE_LINK.pattern + r": `(?P<fragment>[^`]+)`")


@dataclass(frozen=True)
class Link:
    """A line that a page links to, and what is to be found there."""

    page: Path
    text: str
    file: Path
    line: int
    fragment: str

    @property
    def lines(self) -> list[int]:
        """Where the fragment is found, counted from 1, the nearest first."""
        code = self.file.read_text(encoding="utf-8").splitlines() if self.file.is_file() else []
        found = [number for number, content in enumerate(code, start=1) if self.fragment in content]
        return sorted(found, key=lambda number: abs(number - self.line))

    def problem(self) -> str | None:
        """What is wrong with it, in one line."""
        where = f"{self.page.name}: {self.text}#L{self.line}: "
        if not self.file.is_file():
            return where + "no such file"
        if not self.file.as_posix().endswith(self.text):
            return where + f"leads to {self.file.name}"
        if not self.lines:
            return where + f"nothing there reads `{self.fragment}`: link to what took its place"
        if self.line not in self.lines:
            return where + f"`{self.fragment}` is on line {self.lines[0]}; run {Path(__file__).name} --fix"
        return None


def pages() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def links_of(page: Path, content: str) -> list[Link]:
    return [
        Link(
            page,
            m["text"],
            (page.parent / m["path"]).resolve(),
            int(m["line"]),
            m["fragment"].replace("\\|", "|"),
        )
        for m in PINNED_LINK.finditer(content)
    ]


def fixed(page: Path, content: str) -> str:
    """The page with the right number in every link whose fragment is found."""

    def with_right_number(match: re.Match[str]) -> str:
        link = links_of(page, match[0])[0]
        right = link.line if not link.lines or link.line in link.lines else link.lines[0]
        return match[0].replace(f"#L{link.line})", f"#L{right})", 1)

    return PINNED_LINK.sub(with_right_number, content)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_lines_lead_to_what_they_say(page):
    content = page.read_text(encoding="utf-8")
    problems = [problem for link in links_of(page, content) if (problem := link.problem())]
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_no_link_to_a_line_goes_without_its_fragment(page):
    content = page.read_text(encoding="utf-8")
    loose = LINE_LINK.findall(PINNED_LINK.sub("", content))
    assert not loose, f"{page.name}: say what is on the line, behind the link: {loose}"


def test_the_page_about_the_notes_is_dense_with_links():
    page = ROOT / "docs" / "notes.md"
    assert len(links_of(page, page.read_text(encoding="utf-8"))) > 80


class TestTheCheckItself:
    @pytest.fixture
    def page(self, tmp_path):
        (tmp_path / "code.py").write_text("a = 1\nb = 2\na = 1\n", encoding="utf-8")
        return tmp_path / "page.md"

    def link(self, page, line, fragment, name="code.py", path="code.py"):
        return links_of(page, f"see [`{name}`]({path}#L{line}): `{fragment}`")[0]

    def test_a_right_link_passes(self, page):
        assert self.link(page, 2, "b = 2").problem() is None
        assert self.link(page, 3, "a = 1").problem() is None
        (page.parent / "code.py").write_text("c: int | None\n", encoding="utf-8")
        assert self.link(page, 1, r"c: int \| None").problem() is None

    def test_the_message_names_the_right_line(self, page):
        assert "`b = 2` is on line 2" in (self.link(page, 1, "b = 2").problem() or "")
        assert "`b = 2` is on line 2" in (self.link(page, 99, "b = 2").problem() or "")

    def test_vanished_code_and_files_are_noticed(self, page):
        assert "nothing there reads `c = 3`" in (self.link(page, 1, "c = 3").problem() or "")
        assert "no such file" in (self.link(page, 1, "a", path="gone.py").problem() or "")
        assert "leads to code.py" in (self.link(page, 1, "a", name="other.py").problem() or "")

    def test_fixing_moves_to_the_nearest_line_and_touches_nothing_else(self, page):
        page_of = "| [`code.py`](code.py#L{}): `a = 1` | [`code.py`](code.py#L{}): `b = 2`<br>`#L1` |".format
        before, after = page_of(9, 1), page_of(3, 2)
        assert fixed(page, before) == after
        assert fixed(page, after) == after


if __name__ == "__main__":
    if sys.argv[1:] != ["--fix"]:
        sys.exit(f"usage: {Path(__file__).name} --fix")
    for each in pages():
        old = each.read_text(encoding="utf-8")
        each.write_text(fixed(each, old), encoding="utf-8")
