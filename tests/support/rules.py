"""Rules about source text and pages: one test per rule, whose message lists all offenders."""


def assert_no_offenders(offenders):
    """Fail with one line for each offender: a text, or a pair of where and what."""
    lines = [
        offender if isinstance(offender, str) else ": ".join(map(str, offender))
        for offender in offenders
    ]
    assert not lines, "\n".join(["", *lines])
