"""Public text uses the field's words: docstrings and messages of the package, its pages and
cards."""

import ast
import io
import re
import tokenize
from pathlib import Path

from rules import assert_no_offenders

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md")]
PAGES += [
    page
    for folder in ("docs", "experiments", "models")
    for page in sorted((ROOT / folder).rglob("*.md"))
]
SOURCES = sorted(
    path
    for package in ("learners", "vision", "models", "pipelines", "experiments/annealed_experiments")
    for path in (ROOT / package).rglob("*.py")
)
# The word to write -> the words that only we would understand.
TERMS = {
    "package, module, layer": r"\b(rooms?|houses?)\b",
    "predicted from, estimated by": r"\btold (from|by|apart by)\b",
    "evaluated, searched": r"\blook(ed|s|ing)? (at|for)\b",
    "annotation, landmark": r"\b(un)?marks\b|\bmarked (by|points?|faces?)\b",
    "dropped, remaining": r"\b(fallen|fell|survivors?|survives?)\b",
    "out of core": r"\boutside memory\b",
    "competitor, baseline": r"\bpeers?\b",
    "custom": r"\b(a user|one)'s own\b|\bof your own\b",
    "synthetic": r"\bmade[- ]up\b",
    "author and year": r"\b(PAMI text|arXiv text|the thesis)\b",
    "similarity transform": r"\bturn and shift\b",
    "0.05": r"(?<![\w.:%*)\]}\\/])\.\d+\b(?!\w)",
    "held out": r"\b(kept|keeps?|held|put|puts?) (back|aside)\b",
    "requested, selected": r"\bask(s|ed|ing)? for\b",
    "maximum, minimum, largest, smallest": r"\bgreatest\b|(?<!at )(?<!At )\bleast\b(?![- ](squares|angle|absolute))",
    "synthetic, simulated": r"\bmade (pictures?|scenes?|tables?|sets?|videos?|images?|photographs?|tracks|data|text)\b",
    "is not a valid X": r"\b(is|are|was) no (number|date|time|class|direction|column|table|"
    r"picture|image|video|file|folder|"
    r"text|name|model|group|integer|keypoint|instance|option|size|weight|annotation|archive|address|word|probability)s?\b",
    "resume, continue": r"\b(go(es)?|going|went|gone) on\b",
    "detect, determine": r"\b(find|finds|found|finding) out\b",
    "has a higher error, is less accurate": r"\b(errs?|erred|erring)\b",
    "again, rebuilt": r"\banew\b",
    "overconfident, calibrated": r"\b(too|how|so|as|less|more) sure\b",
    "plain statement": r"\b(becomes?|became|come) of\b|\bof what\b|\bwhoever\b|\bfor ever\b",
    "is slower, needs more steps": r"\b(takes?|taking|took) (its|their) time\b",
    "excluded": r"\bmay not come\b",
    "costly, slow": r"\b(too|less|more|as|so) dear(er|est)?\b",
    "dominate": r"\bloud(er|est)?\b",
    "one-hot encoded": r"\bone 0 / 1\b|\b0 / 1 columns?\b",
    "n": r"\bso[- ]many[- ]th\b|\bby so many\b|\bof so many\b",
    "missing, lost": r"\bha(s|ve) gone\b",
    "is optimistic": r"\bflatter(s|ed|y|ing)?\b",
    "curved": r"\bbent\b",
    "on average": r"\bin the mean\b",
    "from scratch": r"\bfrom nothing\b",
    "fix, repair": r"\bmend(s|ed|ing)?\b",
    "user, another program": r"\bstrangers?('s)?\b",
    "distinguish": r"\b(tell|tells|told|telling)\b[^.;:]{0,40}\bapart\b",
    "baseline": r"\byardsticks?\b",
    "expects": r"\b(loss|estimator|command|reader|solver|program)s? wants?\b",
    "error, failure": r"\btroubles?\b",
    "substitute, surrogate": r"\bst(and|ands|ood|anding)[- ]ins?\b|\b(stand|stands|stood) in for\b",
    "stratified": r"\bdrawn along\b",
    "quiet": r"\b(without a word|no word of|no word)\b",
    "optimistic by": r"\bgives? each column\b.*\btime to prove\b",
}
# Names of variables that say nothing -> what to write instead.
NAMES = {
    "result, or the noun": {"found", "finds"},
    "missing, present": {"gone", "there"},
    "message, text": {"said", "unsaid", "words_said"},
    "losses": {"lost"},
    "per_fold, axis": {"along"},
    "columns, the noun": {"own", "others_own"},
    "again, rebuilt": {"anew"},
    "distance, dissimilarity": {"away", "unlike"},
}


def texts(path):
    """Pieces of public text: a page without its code, or strings and comments of a source."""
    if path.suffix == ".md":
        yield re.sub(
            r"`[^`\n]*`|\]\([^)]*\)|^```.*?^```$",
            "",
            path.read_text(),
            flags=re.MULTILINE | re.DOTALL,
        )
        return
    source = path.read_text()
    skipped = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            skipped |= {id(part) for part in ast.walk(node.format_spec)}
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in skipped
            and " " in node.value  # one word is a key of a file or of a language
        ):
            yield node.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def private_words(path):
    return [f"{m[0]!r} -> {word}" for text in texts(path) for word, pattern in TERMS.items()
            for m in re.finditer(pattern, re.sub(r"\s+", " ", text), re.IGNORECASE)]  # fmt: skip


def private_names(path):
    """Variables and parameters of a source that a reader cannot guess."""
    for node in ast.walk(ast.parse(path.read_text())):
        name = (
            node.id
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            else getattr(node, "arg", None)
        )
        yield from (
            f"{name!r}, line {node.lineno} -> {better}"
            for better, names in NAMES.items()
            if name in names
        )


def test_words_of_the_field():
    assert_no_offenders(
        (path.relative_to(ROOT), word)
        for path in (*SOURCES, *PAGES)
        for word in private_words(path)
    )


def test_names_of_the_field():
    assert_no_offenders(
        (path.relative_to(ROOT), name) for path in SOURCES for name in private_names(path)
    )


def test_private_words_are_found(tmp_path):
    (tmp_path / "a.md").write_text(
        "The survivors are told from .05 of the room, kept back by whoever errs."
    )
    assert len(private_words(tmp_path / "a.md")) == 7
    (tmp_path / "a.py").write_text("found = 1  # what was asked for\n")
    assert (
        len(private_words(tmp_path / "a.py")) == 1 and len([*private_names(tmp_path / "a.py")]) == 1
    )
