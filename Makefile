# Two commands do all set-up: `make demo` and `make test`. Everything lives in .venv.
PYTHON ?= python3
BIN := .venv/bin
ARGS ?=

.PHONY: demo hub test check test-slow bench lock format clean

demo: .venv/.ready
	$(BIN)/python -m hub.web.demo $(ARGS)

hub: .venv/.ready
	$(BIN)/python manage.py serve $(ARGS)

test: .venv/.ready
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow" $(ARGS)

test-slow: .venv/.ready
	$(BIN)/python -m pytest -m slow $(ARGS)

check: export HUB_DATA = $(CURDIR)/.venv/hub
check: .venv/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python manage.py check --fail-level WARNING

bench: .venv/.ready
	$(BIN)/python -m tests.benchmarks.bench_summary

format: .venv/.ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Carries hashes and no addresses; run it after changing pyproject.toml.
lock: .venv/.uv
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-annotate --quiet -o requirements.lock

.venv/.uv:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet uv
	touch $@

.venv/.ready: .venv/.uv pyproject.toml requirements.lock
	$(BIN)/uv pip sync --quiet --require-hashes requirements.lock
	$(BIN)/uv pip install --quiet --no-deps --editable .
	touch $@

clean:
	rm -rf .venv build *.egg-info
