"""Shared code of the trials: damaging bytes, and judging an attempt.

An attempt passes if the result is valid, or the input is rejected by a one-line ValueError that
names the file. Anything else is a failure: another exception, a line that is too long, a result
that is not finite, a result from a file that must be rejected.
"""

import json
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from annealed.models.messages import MAX_MESSAGE


class Tally:
    """Trials and failures by class."""

    def __init__(self):
        self.trials = defaultdict(int)
        self.failures = defaultdict(list)
        self.seconds = defaultdict(float)
        self._checked = defaultdict(int)

    def note(self, kind, name, failure):
        """Count a trial; ``failure`` is None or a description."""
        self.trials[kind] += 1
        if failure:
            self.failures[kind].append(f"{name}: {failure}")

    def attempt(self, kind, name, use, path=None):
        """Judge ``use()``, which returns None or a description of a wrong result."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                failure = use()
        except ValueError as error:
            line = str(error)
            # Without a file it is a call in Python, where scikit-learn's own messages have several
            # lines.
            good = path is None or (
                Path(path).name in line
                and len(line) <= MAX_MESSAGE + len(str(path))
                and "\n" not in line
            )
            failure = None if good else f"a poor line: {line[:400]!r}"
        except Exception as error:
            failure = f"{type(error).__name__}: {str(error)[:300]}"
        self.note(kind, name, failure)

    def check(self, kind):
        """Fail the test that calls this if a trial of the class failed since the last call."""
        assert self.trials[kind], f"no trial of {kind}"
        failures = self.failures[kind][self._checked[kind] :]
        self._checked[kind] = len(self.failures[kind])
        assert not failures, "\n".join(
            [f"{len(failures)} failures of {self.trials[kind]} trials", *failures[:10]]
        )

    def rows(self):
        """Lines of the table: class, trials, failures."""
        return [(kind, n, len(self.failures[kind])) for kind, n in self.trials.items()]


def judged(code, stdout, stderr):
    """Return None, or a description of a wrong result of a command called with --json."""
    if code not in (0, 2):
        return f"exit code {code}: {stderr[-300:]}"
    if "Traceback" in stderr or "site-packages" in stderr:
        return stderr[-300:]
    if any(len(line) > 320 for line in stderr.splitlines()):
        return f"a long line: {stderr[:400]}"
    try:
        records = [json.loads(line) for line in stdout.splitlines()]
    except ValueError:
        return f"no JSON: {stdout[:200]}"
    failed = [record for record in records if isinstance(record, dict) and "error" in record]
    return None if bool(failed) == (code == 2) else f"exit code {code} with {len(failed)} errors"


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """Damage bytes: flipped bits, a block overwritten, cut short, something inserted or removed,
    blocks exchanged."""
    way, n = rng.integers(7), len(data)
    at = int(rng.integers(n)) if rng.random() < 0.5 else int(rng.integers(min(n, 256)))
    if way == 0:
        return data[:at] + bytes([data[at] ^ (1 << int(rng.integers(8)))]) + data[at + 1 :]
    if way == 1:
        block = rng.bytes(int(rng.integers(1, 64)))
        return data[:at] + block + data[at + len(block) :]
    if way == 2:
        return data[:at]
    if way == 3:
        return data[:at] + rng.bytes(int(rng.integers(1, 32))) + data[at:]
    if way == 4:
        return data[:at] + data[at + int(rng.integers(1, 32)) :]
    if way == 5:
        return data[:at] + bytes([rng.choice([0, 255])]) * int(rng.integers(1, 64)) + data[at:]
    other, size = int(rng.integers(n)), int(rng.integers(1, 64))
    return data[:at] + data[other : other + size] + data[at + size :]


SENSELESS = [
    None,
    True,
    -1,
    0,
    3.7,
    1e300,
    -1e300,
    10**30,
    "",
    "x",
    [],
    ["x"],
    [[]],
    {},
    {"x": 1},
    "nan",
    "1e999",
]


def altered(value, rng: np.random.Generator):
    """A JSON value with one entry, somewhere inside, replaced or removed."""
    if isinstance(value, dict | list) and value and rng.random() < 0.9:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = keys[int(rng.integers(len(keys)))]
        changed = value.copy()
        if rng.random() < 0.15:
            del changed[key]
        else:
            changed[key] = altered(value[key], rng)
        return changed
    return SENSELESS[int(rng.integers(len(SENSELESS)))]
