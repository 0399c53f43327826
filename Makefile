# make serve and make test are all that one needs to know. Setting up is remembered by stamps: .venv/.site and .venv/.dev
# (pyproject.toml), site/node_modules/.stamp (package-lock.json). Sources: PyPI, npm and, for Chromium, Debian or Playwright.

PYTHON ?= python3
PORT ?= 8000
PY := .venv/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check

.PHONY: help serve test build check bench chromium clean distclean
.NOTPARALLEL:

help:
	@echo "make serve      set up, build and serve on http://localhost:$(PORT)   (PORT=8001 make serve)"
	@echo "make test       set up and run everything that CI runs"
	@echo "make build      write dist/"
	@echo "make check      verify receipts, claims, versions and budgets"
	@echo "make bench      print the benchmarks"
	@echo "make clean      remove what builds and tests wrote; make distclean: the environments too"

serve: .venv/.site
	@$(PY) build.py serve --port $(PORT) --check
	@$(MAKE) --no-print-directory build
	@$(PY) build.py serve --port $(PORT)

build: .venv/.site site/node_modules/.stamp
	@$(PY) build.py build

check: .venv/.site site/node_modules/.stamp
	@$(PY) build.py check

test: .venv/.dev site/node_modules/.stamp chromium
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(PY) build.py check
	$(PY) -m pytest
	$(PY) -m pytest tests/build

bench: .venv/.dev site/node_modules/.stamp chromium
	@$(PY) build.py build
	$(PY) generate/bench_kv.py
	$(PY) generate/bench_sched.py
	$(PY) generate/bench_plan.py
	$(PY) generate/bench_site.py
	$(PY) generate/bench_gantt.py

# Debian's package where that can be installed, Playwright's own build elsewhere; tests use CHROMIUM where it is set.
chromium: .venv/.dev
	@if [ -n "$$CHROMIUM" ] || command -v chromium >/dev/null || command -v chromium-browser >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium; \
	else $(PY) -m playwright install chromium; fi

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed, this is " + sys.version.split()[0])'
	@$(PYTHON) -m venv .venv || { rm -rf .venv; echo "venv is missing; on Debian: apt-get install python3-venv" >&2; exit 1; }

.venv/.site: pyproject.toml | .venv/bin/python
	$(PIP) -e '.[site]'
	@touch $@

.venv/.dev: pyproject.toml | .venv/bin/python
	$(PIP) -e '.[site,bench,dev]'
	@touch $@ .venv/.site

site/node_modules/.stamp: site/package-lock.json site/package.json site/.npmrc
	@command -v npm >/dev/null || { echo "npm is missing; install Node 20 or later with npm (Debian: apt-get install nodejs npm)" >&2; exit 1; }
	cd site && npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

clean:
	rm -rf dist .dist.new .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find build.py core generate studios tests site/runtime -name __pycache__ -prune -exec rm -rf {} +

distclean: clean
	rm -rf .venv site/node_modules
