#!/usr/bin/env bash
# Coverage of branches: all tests as they are, then those of the learners' and the pyramid's loops with the loops run as Python.
set -euo pipefail
cd "$(dirname "$0")/.."
OUT=build/coverage
rm -rf $OUT && mkdir -p $OUT
"$BIN/python" -m coverage run -m pytest -n auto --maxprocesses 4 --dist loadfile
NUMBA_DISABLE_JIT=1 "$BIN/python" -m coverage run -m pytest -n auto --maxprocesses 4 --dist loadfile \
  tests/learners/solvers tests/learners/objective tests/learners/designs tests/vision -k "not out_of_core"
"$BIN/python" -m coverage combine --quiet $OUT
"$BIN/python" -m coverage report --sort=cover > $OUT/report.txt
"$BIN/python" -m coverage html --quiet --directory $OUT/html
tail -n 1 $OUT/report.txt
