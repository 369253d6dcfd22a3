"""``python -m tests.fuzz``: the attack in child processes, so that a crash is a line of the report and not its end."""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

BATCHES_PER_CHILD = 1500
SECONDS_WITHOUT_PROGRESS = 60


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000, help="rows of scores to try (at least)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", metavar="NAME", help="one function of shortlist.functional")
    parser.add_argument("--batch", type=int, help="run one batch again, in this process, and print its input")
    parser.add_argument("--first", type=int, default=0, help="the first batch")
    parser.add_argument("--child", metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.batch is not None:
        return again(options)
    return child(options) if options.child else parent(options)


def function_of(number: int, only: str | None) -> str:
    from tests.fuzz.functions import FUNCTIONS

    if only is not None and only not in FUNCTIONS:
        raise SystemExit(f"--only {only}: the functions are {', '.join(FUNCTIONS)}")
    return only or list(FUNCTIONS)[number % len(FUNCTIONS)]


def again(options: argparse.Namespace) -> int:
    from tests.fuzz.compare import failures
    from tests.fuzz.functions import draw_batch

    batch = draw_batch(function_of(options.batch, options.only), options.seed, options.batch)
    print(batch.described())
    print(batch.scores)
    print(*batch.tensors.items(), sep="\n")
    found = failures(batch)
    print(*(found or ["nothing to report"]), sep="\n")
    return 1 if found else 0


def child(options: argparse.Namespace) -> int:
    """Batches from ``--first`` on; a line each in FILE, begun before the call, so that a crash has its batch."""
    import torch

    from tests.fuzz.compare import failures
    from tests.fuzz.functions import draw_batch

    torch.set_num_threads(1)
    with Path(options.child).open("w") as report:
        rows = 0
        for number in range(options.first, options.first + BATCHES_PER_CHILD):
            name = function_of(number, options.only)
            batch = draw_batch(name, options.seed, number)
            report.write(json.dumps([number, name, max(1, batch.scores.shape[0])]) + "\t")
            report.flush()
            report.write(json.dumps([f"{line}; {batch.described()}" for line in failures(batch)]) + "\n")
            rows += max(1, batch.scores.shape[0])
            if rows >= options.cases:
                break
    return 0


def parent(options: argparse.Namespace) -> int:
    start, cases, batches, failed = time.monotonic(), Counter[str](), Counter[str](), Counter[str]()
    number = options.first
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        while (left := options.cases - cases.total()) > 0:
            crash = watch(options, number, left, report)
            for line in report.read_text().splitlines():
                about, _, found = line.partition("\t")
                number, name, rows = json.loads(about)
                problems = json.loads(found) if found else [crash]
                batches[name] += 1
                cases[name] += rows
                failed[name] += bool(problems)
                again = f"python -m tests.fuzz --seed {options.seed} --only {name} --batch {number}"
                for problem in problems:
                    print(f"FAILED {again}: {problem}", flush=True)
            number += 1
            if crash and not report.read_text():
                raise SystemExit(f"no batch could be run: {crash}")
    seconds = time.monotonic() - start
    print(f"{'function':28}{'batches':>10}{'cases':>10}{'failed':>8}")
    for name in sorted(batches):
        print(f"{name:28}{batches[name]:10}{cases[name]:10}{failed[name]:8}")
    rate = cases.total() / seconds
    print(f"{'all':28}{batches.total():10}{cases.total():10}{failed.total():8}   {seconds:.0f} s, {rate:.0f} cases/s")
    return 1 if failed.total() else 0


def watch(options: argparse.Namespace, first: int, cases: int, report: Path) -> str:
    """Run a child to its end; how it ended where that was not in order."""
    report.write_text("")
    command = [sys.executable, "-m", "tests.fuzz", "--child", str(report), "--cases", str(cases)]
    command += ["--first", str(first), "--seed", str(options.seed), *(["--only", options.only] if options.only else [])]
    process = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"})
    size, since = -1, time.monotonic()
    while True:
        try:
            code = process.wait(timeout=1)
            break
        except subprocess.TimeoutExpired:
            if report.stat().st_size != size:
                size, since = report.stat().st_size, time.monotonic()
            elif time.monotonic() - since > SECONDS_WITHOUT_PROGRESS:
                process.kill()
                process.wait()
                return f"no answer in {SECONDS_WITHOUT_PROGRESS} s"
    if code < 0:
        return f"crashed with {signal.Signals(-code).name}"
    return f"ended with exit code {code}" if code else ""


if __name__ == "__main__":
    sys.exit(main())
