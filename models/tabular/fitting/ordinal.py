"""Order of ordinal levels, such as answers on scales, numbered levels and ranges."""

import re
from collections.abc import Collection

# answers on ordered scales; words separated by "/" are synonyms
_SCALES = (
    "very low|low|medium/moderate/mid/middle/normal/average|high|very high",
    "tiny/very small|small|medium/mid|large/big|very large/huge",
    "xxs|xs|s|m|l|xl|xxl|xxxl",
    "very short|short|medium|long|very long",
    (
        "never|rarely/seldom/almost never|sometimes/occasionally|often/frequently/usually|"
        "always/almost always"
    ),
    "very poor/very bad/terrible|poor/bad|fair/average/ok|good|very good|premium/excellent|ideal",
    "strongly disagree|disagree|neutral/undecided/neither agree nor disagree|agree|strongly agree",
    "very dissatisfied|dissatisfied|neutral|satisfied|very satisfied",
    "none|minor/mild/slight|moderate|major/severe|critical",
    "first/1st|second/2nd|third/3rd|fourth/4th|fifth/5th",
    "primary|secondary|tertiary",
    "beginner|intermediate|advanced|expert",
    "bronze|silver|gold|platinum",
    "freshman|sophomore|junior|senior",
)
_MIN_RANKS, _MAX_RANKS = 3, 15  # levels of an ordinal column; two make a binary column
# numbers with words such as "1 - poor" and "2: fair"; ranges such as 18-25, <18 and 65+
_NUMBERED = re.compile(r"(\d+)\s*[-–:.)=]\s*[^\W\d].*")
_RANGE = re.compile(
    r"(?:(under|below|less than|<)\s*)?(?:(?:over|above|more than|>=?)\s*)?"
    r"(\d+(?:\.\d+)?)(\s*(?:-|–|to)\s*\d+(?:\.\d+)?|\s*\+)?"
)


def order_of(levels: Collection[str]) -> tuple[str, ...]:
    """Sort distinct words if they have a natural order.

    Words have a natural order if they are answers on a known scale, numbers followed by words, or
    ranges of numbers. For other words, the result is an empty tuple.

    Examples
    --------
    >>> order_of(["high", "low", "medium"]), order_of(["red", "green", "blue"])
    (('low', 'medium', 'high'), ())
    >>> order_of(["2 - fair", "1 - poor", "3 - good"]), order_of(["65+", "18-64", "<18"])
    (('1 - poor', '2 - fair', '3 - good'), ('<18', '18-64', '65+'))
    """
    if not _MIN_RANKS <= len(levels) <= _MAX_RANKS:
        return ()
    plain = [re.sub(r"[\s_-]+", " ", level.casefold()) for level in levels]
    for scale in _SCALES:
        place = {word: i for i, words in enumerate(scale.split("|")) for word in words.split("/")}
        if all(word in place for word in plain):
            return _sorted(levels, [(place[word], 0) for word in plain])
    numbered = [_NUMBERED.fullmatch(level) for level in levels]
    ranges = [_RANGE.fullmatch(level.casefold()) for level in levels]
    if all(numbered):
        return _sorted(levels, [(float(m[1]), 0) for m in numbered if m])
    if all(ranges) and sum(bool(m[3]) for m in ranges if m) > 1:
        return _sorted(levels, [(float(m[2]), -1 if m[1] else 0) for m in ranges if m])
    return ()


def _sorted(levels: Collection[str], places: list[tuple[float, int]]) -> tuple[str, ...]:
    """Return levels sorted by position, or an empty tuple if two levels have the same position."""
    return (
        tuple(level for _, level in sorted(zip(places, levels)))
        if len(set(places)) == len(places)
        else ()
    )
