# Everything from a clone and Python, make and a C++ compiler:  make demo   make test
# A CPU or CUDA build of torch is the user's choice:  make install TORCH_PIP_ARGS="--index-url URL"
VENV ?= .venv
PYTHON ?= python3
PY := $(VENV)/bin/python
TORCH_PIP_ARGS ?=
LOG := $(VENV)/pip.log
MODULES := find src -name '*.py' | LC_ALL=C sort
CXX_FOUND := $(shell command -v $${CXX:-c++} 2>/dev/null || command -v g++ 2>/dev/null || command -v clang++ 2>/dev/null)
# quiet unless it fails: then everything that pip said is shown
PIP = $(PY) -m pip --disable-pip-version-check install -c constraints.txt
# without isolation, build/ is kept from one build to the next, and only what changed is compiled
OURS := --no-deps --no-build-isolation
# modules are kept compiled whatever the environment says: the tests start a hundred processes that import the same
unexport PYTHONDONTWRITEBYTECODE
QUIETLY = >$(LOG) 2>&1 || { cat $(LOG); echo "the installation failed; the lines above are also in $(LOG)"; exit 1; }

.PHONY: install demo test fuzz lint types docs bench clean FORCE
install: $(VENV)/installed-dev,docs

$(VENV)/prepared: constraints.txt
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@echo "installing the pinned requirements into $(VENV) (a few minutes the first time)"
	@$(PIP) pip scikit-build-core nanobind cmake ninja $(QUIETLY)
	@$(PIP) $(TORCH_PIP_ARGS) torch $(QUIETLY)
	@touch $@

# An editable installation knows the modules that were there: this list changes when one is added, moved or removed.
# No file between: .ci/run has two makes running at a time.
$(VENV)/modules: FORCE | $(VENV)/prepared
	@$(MODULES) | cmp -s - $@ || $(MODULES) >$@

# .venv/installed-all is the package with the extra all, and so on. The kernels are compiled while everything else is installed,
# the package without them at first; a compilation that fails is tried again by the last line, which tells why.
$(VENV)/installed-%: pyproject.toml constraints.txt CMakeLists.txt $(wildcard csrc/*) $(VENV)/modules $(VENV)/prepared
	@$(if $(CXX_FOUND),$(PY) -m pip wheel $(OURS) -w $(VENV)/compiled . >/dev/null 2>&1 &) \
	{ SHORTLIST_PURE=1 $(PIP) $(OURS) -e . && $(PIP) --build-constraint constraints.txt 'shortlist[$*]'; } $(QUIETLY); wait
	@$(if $(CXX_FOUND),$(PIP) $(OURS) -e . $(QUIETLY),\
	echo "no C++ compiler found: no native kernels are built and the PyTorch twins do the work")
	@touch $@

# the demo needs less than the rest, which will do where it is there
demo: $(firstword $(wildcard $(VENV)/installed-dev,docs) $(VENV)/installed-all)
	@$(PY) -m shortlist.cli demo

test: install
	@OMP_NUM_THREADS=1 $(PY) -m pytest -n 2

# make fuzz CASES=1000000 SEED=7: every function of sl.functional on extreme input, native against twin
CASES ?= 20000
SEED ?= 0
fuzz: install
	@$(PY) -m tests.fuzz --cases $(CASES) --seed $(SEED)

lint: install
	@$(VENV)/bin/ruff check .

types: install
	@$(VENV)/bin/mypy

docs: install
	@$(PY) docs/tools/catalogue.py --check
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict -q

bench: install
	@$(PY) -m benchmarks

clean:
	rm -rf build site .pytest_cache .mypy_cache .ruff_cache
