# Two commands: `make demo` shows the main job, `make test` shows that it works.
PYTHON ?= python3
BIN := .venv/bin
# Tests run in as many processes as there are cores, up to four; the tests of a file stay together and share what they made.
IN_PARALLEL := -n auto --maxprocesses 4 --dist loadfile

.PHONY: demo test test-processors docs test-torch test-integrations coverage test-oldest test-newest campaign pictures check-results release-check
demo: .venv/installed
	$(BIN)/annealed faces detect --overlay demo.png
	@echo "The picture with the keypoints: demo.png"

# BLAS has one thread in each process: threads of several processes on the same cores wait for each other.
test: .venv/installed-test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest $(IN_PARALLEL) --durations=20

# The tests of learners, vision and models under other processors, simulated; with one thread and two. About an hour on two cores.
test-processors: .venv/installed-test
	$(BIN)/python .ci/processors.py

# The documentation site: build/site/index.html. It runs the examples of the gallery.
docs: .venv/installed-docs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -c docs -b html . build/site
	$(BIN)/python .ci/site_links.py build/site
	@echo "The site: build/site/index.html"

# The tests of torch's designs. TORCH names another build, as in: make test-torch TORCH=torch==2.13.0
TORCH ?= torch
test-torch: .venv/installed-test
	$(BIN)/python -m pip install --quiet "$(TORCH)"
	$(BIN)/python -m pytest -k "torch or tensors or cuda"

# The snippets of docs/integrations.md, all of them.
test-integrations: .venv/installed-test
	$(BIN)/python -m pip install --quiet ".[integrations]"
	$(BIN)/python -m pytest tests/test_integrations.py

# Branches that the tests take: build/coverage. The second part runs compiled loops as Python. About 40 minutes on two cores.
coverage: .venv/installed-test
	$(BIN)/python -m pip install --quiet "coverage>=7.10"
	BIN=$(BIN) .ci/coverage.sh

# All tests on the oldest releases that pyproject.toml allows.
test-oldest:
	$(PYTHON) -m venv --clear .venv/oldest
	$(PYTHON) .ci/oldest.py > .venv/oldest/constraints.txt
	.venv/oldest/bin/python -m pip install --quiet --constraint .venv/oldest/constraints.txt ".[test]" ./experiments
	.venv/oldest/bin/python -m pytest $(IN_PARALLEL)

# All tests on the newest releases that pip finds, pre-releases excepted. PYTHON names another Python.
test-newest:
	$(PYTHON) -m venv --clear .venv/newest
	.venv/newest/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager ".[test]" ./experiments
	.venv/newest/bin/python -m pytest $(IN_PARALLEL)

# The trials of docs/reliability.md: damaged files, killed commands, full disks, laws of the estimators. About 20 minutes.
campaign: .venv/installed-test
	$(BIN)/python -m pytest -m slow tests/campaign

# The pictures of the README and the documentation that take seconds or minutes. PICTURES names others, as in:
# make pictures PICTURES=stability.png
pictures: .venv/installed-test
	$(BIN)/python .ci/pictures.py $(PICTURES)

# The stored results against the code of today: cheap cells, and the files whose code has changed.
check-results: .venv/installed-test
	$(BIN)/annealed reproduce --check
	$(BIN)/annealed reproduce --stale

# The release, rehearsed in clean environments: docs/releasing.md. FULL=1 runs all tests in each, which takes hours.
release-check:
	.ci/release.sh

.venv/bin/python:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

# The installation is a copy, not a link, so that what runs is what a user gets; any change of source renews it.
SOURCES := pyproject.toml __init__.py experiments/pyproject.toml $(shell find learners vision models pipelines experiments/annealed_experiments -type f -not -name '*.pyc')
.venv/installed: .venv/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet ".[vision]"
	@touch $@

.venv/installed-test: .venv/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet ".[test]" ./experiments
	@touch $@ .venv/installed

.venv/installed-docs: .venv/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet ".[docs]" ./experiments
	@touch $@ .venv/installed
