# Everything from a clone and Python, make and a C++ compiler:  make demo   make test
# A CPU or CUDA build of torch is the user's choice:  make install TORCH_PIP_ARGS="--index-url URL"
VENV ?= .venv
PYTHON ?= python3
PY := $(VENV)/bin/python
TORCH_PIP_ARGS ?=
PIP := $(PY) -m pip --disable-pip-version-check -q
CXX_FOUND := $(shell command -v $${CXX:-c++} 2>/dev/null || command -v g++ 2>/dev/null || command -v clang++ 2>/dev/null)

.PHONY: install demo test lint types docs bench clean
install: $(VENV)/installed

$(VENV)/installed: pyproject.toml constraints.txt CMakeLists.txt $(wildcard csrc/*)
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@echo "installing the pinned requirements into $(VENV) (a few minutes the first time)"
	@$(PIP) install -c constraints.txt pip
	@$(PIP) install -c constraints.txt $(TORCH_PIP_ARGS) torch
ifeq ($(CXX_FOUND),)
	@echo "no C++ compiler found: installing without native kernels, the PyTorch twins do the work"
	@SHORTLIST_PURE=1 $(PIP) install -c constraints.txt --build-constraint constraints.txt -e '.[dev,docs]'
else
	@$(PIP) install -c constraints.txt --build-constraint constraints.txt -e '.[dev,docs]'
endif
	@touch $@

demo: install
	@$(PY) -m shortlist.cli demo

test: install
	@OMP_NUM_THREADS=1 $(PY) -m pytest -n 2

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
