"""The pages: their code runs, their commands parse, their links lead somewhere."""

import doctest
import functools
import re
import shlex
from pathlib import Path

import pytest
import typer
from annealed.pipelines.cli.app import app
from rules import assert_no_offenders

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md")]
PAGES += [
    page
    for folder in ("docs", "experiments", "models")
    for page in sorted((ROOT / folder).rglob("*.md"))
]
# A block below a line "<!-- not run: why -->" is not run: it needs files that only its reader has.
# One below "<!-- needs: package -->" is run by test_integrations.py.
BLOCK = re.compile(
    r"(?P<mark><!-- (?:not run|needs): [^\n]+ -->\n+)?^```python\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(r"\]\((?!https?://|mailto:)([^)\s]*)\)")
COMMAND = re.compile(r"^(?: {4}|\$ )(annealed [^#\n]*)|`(annealed [^`]*)`", re.MULTILINE)


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def blocks(page):
    """Python blocks that are run: line and text."""
    text = page.read_text()
    return [
        (text[: m.start("code")].count("\n"), m["code"])
        for m in BLOCK.finditer(text)
        if not m["mark"]
    ]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=name_of)
def test_code_runs(page, tmp_path, monkeypatch):
    """Blocks of a page are one session: doctests are compared with what they print, other blocks
    run to their end."""
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    names: dict = {}
    for line, code in blocks(page):
        if ">>>" in code:
            session = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), line)
            assert session.examples, f"{page.name}:{line} shows prompts, but no example"
            runner.run(session, clear_globs=False)
            names = session.globs
        else:
            exec(compile("\n" * line + code, str(page), "exec"), names)
    assert runner.summarize().failed == 0


def test_blocks_are_found():
    text = "a\n```python\nx = 1\n```\n<!-- not run: needs your photographs -->\n```python\ny\n```\n"
    assert [bool(m["mark"]) for m in BLOCK.finditer(text)] == [False, True]


def anchors(page):
    """Anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^#+ +(.+?) *#*$", text, re.MULTILINE)
    found: list[str] = []
    for head in heads:
        plain = (
            re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", head).replace("`", "").replace("*", "").lower()
        )
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        n = sum(re.fullmatch(re.escape(slug) + r"(-\d+)?", other) is not None for other in found)
        found.append(f"{slug}-{n}" if n else slug)
    return {*found, *re.findall(r'<a (?:id|name)="([^"]+)"', text)}


def broken_links(page):
    broken = []
    for target in LINK.findall(re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)):
        file, _, anchor = target.partition("#")
        there = page if not file else (page.parent / file)
        if not there.exists() or (
            anchor and there.suffix == ".md" and anchor not in anchors(there)
        ):
            broken.append(target)
    return broken


def test_links():
    assert_no_offenders((name_of(page), link) for page in PAGES for link in broken_links(page))


def test_a_broken_link_is_found(tmp_path):
    (tmp_path / "a.md").write_text("# One\n[here](#one) [gone](#two) [no file](b.md)")
    assert broken_links(tmp_path / "a.md") == ["#two", "b.md"]


def commands(page):
    """Command lines of a page, and whether they are whole; a synopsis with brackets is none."""
    for match in COMMAND.finditer(page.read_text()):
        line = " ".join((match[1] or match[2]).split())
        if not re.search(r"\[|\.\.\.|\||<", line):
            yield line, match[1] is not None


@functools.cache
def commands_of_annealed():
    return typer.main.get_command(app)


def parse(line, whole=True):
    """Parse a command as the shell would hand it over; of one that is only mentioned, look up its
    options."""
    command, words, path = commands_of_annealed(), shlex.split(line)[1:], ["annealed"]
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        assert words[0] in command.commands, f"{line}: no command {words[0]!r}"
        path.append(words[0])
        command = command.commands[words.pop(0)]
    if not whole:
        known = {option for parameter in command.params for option in parameter.opts} | {
            "--help",
            "-h",
        }
        assert not {word for word in words if word.startswith("-")} - known, (
            f"{line}: not one of {sorted(known)}"
        )
    elif words and not hasattr(command, "commands"):
        values = [word for word in words if word not in ("--help", "-h")]
        command.make_context(" ".join(path), values, resilient_parsing=len(values) < len(words))


def wrong_commands(page):
    wrong = []
    for line, whole in commands(page):
        try:
            parse(line, whole)
        # typer brings a click of its own, or not, with its own classes of errors
        except Exception as error:
            wrong.append(f"{line}: {getattr(error, 'format_message', error.__str__)()}")
    return wrong


def test_commands_parse():
    assert_no_offenders((name_of(page), line) for page in PAGES for line in wrong_commands(page))


def test_a_wrong_command_is_found():
    parse("annealed faces detect photo.jpg --json")
    with pytest.raises(AssertionError, match="no command 'detct'"):
        parse("annealed faces detct photo.jpg")
    with pytest.raises(Exception, match="no-such-option"):
        parse("annealed faces detect photo.jpg --no-such-option")
