"""Run every suite and write the record: docs/benchmarks.md and benchmarks/results.json."""

import pkgutil
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import benchmarks
from benchmarks.harness import Case
from benchmarks.run import parser, run

ROOT = Path(__file__).parents[1]
COMMAND = "make bench"


def all_cases(quick: bool = False) -> list[Case]:
    """The cases of every module of this package that has ``cases(quick)``, module by module."""
    names = sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name != "__main__")
    suites = [import_module(f"benchmarks.{name}") for name in names]
    return [case for suite in suites if hasattr(suite, "cases") for case in suite.cases(quick)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all suites; only a full run replaces the record by itself."""
    options = parser("benchmarks", "Run every benchmark; a full run rewrites the record.").parse_args(arguments)
    if not options.quick and not options.only:
        options.markdown = options.markdown or ROOT / "docs" / "benchmarks.md"
        options.json = options.json or ROOT / "benchmarks" / "results.json"
    run(all_cases(options.quick), options, COMMAND)


if __name__ == "__main__":
    main()
