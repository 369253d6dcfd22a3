"""The commands on the pages: each is one that exists, and those that come with their files are run."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.cli.command import ENVIRONMENT, run_here
from tests.test_docs import DOCS, PAGES

ROOT = DOCS.parent
UsageError: Any = typer.BadParameter.__base__  # typer carries a click of its own


def commands(page: str) -> Iterator[list[str]]:
    """The words of every line in the page's ```bash blocks; a line that ends in a backslash goes on."""
    for block in re.findall(r"^```bash\n(.*?)^```$", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield words


def files(page: str) -> dict[str, str]:
    """name -> content of the blocks that have a title."""
    blocks = r'^```\w+ title="([^"]+)"\n(.*?)^```$'
    return dict(re.findall(blocks, (DOCS / page).read_text(), re.MULTILINE | re.DOTALL))


class NotThereError(AssertionError):
    """A command on a page, or an option of it, that does not exist."""


def check(words: list[str]) -> None:
    """NotThereError where the command, or an option of it, does not exist."""
    while re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words = words[1:]
    program, *arguments = words
    if program == "shortlist":
        check_shortlist(arguments)
    elif program == "torchrun":
        from torch.distributed.run import get_args_parser

        try:
            parsed = get_args_parser().parse_args(arguments)
        except SystemExit:
            raise NotThereError(f"torchrun does not take {arguments}") from None
        if parsed.module:
            assert parsed.training_script == "shortlist.cli"
            check_shortlist(parsed.training_script_args)
    elif program == "make":
        targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        unknown = {word for word in arguments if "=" not in word} - set(targets)
        if unknown:
            raise NotThereError(f"the Makefile has no {unknown}")
    elif program == "python":
        if arguments[0] != "-m" and not (ROOT / arguments[0]).is_file():
            raise NotThereError(f"there is no file {arguments[0]}")
    elif (program, *arguments[:1]) not in {(".", ".venv/bin/activate"), ("pip", "install")}:
        raise NotThereError(f"what is {program}?")


def check_shortlist(arguments: list[str]) -> None:
    from commands_page import commands as known

    found = known()
    name = " ".join(arguments[:2]) if " ".join(arguments[:2]) in found else arguments[0]
    if name not in found:
        raise NotThereError(f"there is no command {name}")
    try:
        found[name].make_context(name, arguments[len(name.split()) :])
    except UsageError as error:
        raise NotThereError(f"shortlist {name}: {error.message}") from None


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_exist_with_their_options(page: str) -> None:
    for words in commands(page):
        check(words)


@pytest.mark.parametrize(
    "line", ["shortlist train x.yaml --outt runs", "shortlist dance", "make coffee", "torchrun --gpus 2 x.py"]
)
def test_a_command_or_an_option_that_does_not_exist_is_noticed(line: str) -> None:
    with pytest.raises(NotThereError):
        check(line.split())


def test_a_command_that_exists_is_fine() -> None:
    check(["shortlist", "data", "check", "features", "path=x.npz"])


CONFIGS = [
    (page, number, text)
    for page in PAGES
    for number, text in enumerate(re.findall(r"^```yaml.*?\n(.*?)^```$", (DOCS / page).read_text(), re.M | re.S))
    if text.startswith("data:") or "\ndata:" in text
]


@pytest.mark.parametrize(("page", "number", "text"), CONFIGS, ids=[f"{page}-{number}" for page, number, _ in CONFIGS])
def test_a_config_on_a_page_has_names_and_options_that_exist(page: str, number: int, text: str) -> None:
    from shortlist.runs.config import parse_config
    from shortlist.runs.setup import resolve

    config = parse_config(text)
    if ":" not in config.objective.name:  # the code of a page runs below
        resolve(config)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def write_files(page: str, folder: Path) -> None:
    for name, content in files(page).items():
        (folder / name).write_text(content)


def test_the_walk_from_files_to_a_report_works(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = "guides/runs.md"
    write_files(page, folder)
    walked = [
        words[1:]
        for words in commands(page)
        if "--scores" not in words and words[1] != "fit" and "leaves-tuned" not in " ".join(words)  # its own tests
    ]
    assert len(walked) == 9
    for arguments in walked:
        result = run_here(capsys, *arguments)
        assert result.code == 0, f"{arguments}: {result.err}"
    assert (folder / "sets.parquet").is_file()
    assert (folder / "runs/numbers/report/index.html").is_file()
    listed = re.findall(r"^\| `([\w./]+)`", (DOCS / page).read_text().split("## What a run is")[1], re.MULTILINE)
    missing = [name for name in listed if not (folder / "runs/numbers" / name).exists()]
    assert missing == ["preprocessing.json", "tensorboard/"]  # which only a run on a table has, or one that logs so


def test_the_walk_from_a_table_with_blanks_to_a_report_works(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = "guides/partial-labels.md"
    write_files(page, folder)
    walked = [words[1:] for words in commands(page) if "fruit" in " ".join(words)]
    assert len(walked) == 6
    for arguments in walked:
        result = run_here(capsys, *arguments)
        assert result.code == 0, f"{arguments}: {result.err}"
    assert (folder / "runs/fruit/report/index.html").is_file()


def test_the_table_with_semicolons_and_several_labels_is_read_as_the_page_says(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = "guides/tables.md"
    write_files(page, folder)
    (guessed, given, *_) = commands(page)
    result = run_here(capsys, *guessed[1:])
    assert (result.code, result.err.splitlines()[-1]) == (0, "no problems, 1 warning"), result.err
    result = run_here(capsys, *given[1:])
    assert (result.code, result.err.splitlines()[-1]) == (0, "no problems"), result.err


def test_the_objective_of_ones_own_trains_and_passes_its_tests(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from shortlist.objectives import OBJECTIVES

    write_files("extend.md", folder)
    try:
        tests: dict[str, Any] = {}
        exec(compile((folder / "test_poly.py").read_text(), "test_poly.py", "exec"), tests)
        called = [test() for name, test in tests.items() if name.startswith("test_")]
        assert len(called) == 2
        [words] = commands("extend.md")
        result = run_here(capsys, *words[2:])
        assert result.code == 0, result.err
    finally:
        OBJECTIVES.pop("poly", None)
        sys.modules.pop("poly", None)
    assert len((folder / "poly.py").read_text().splitlines()) <= 30


# what takes long to import is imported once, then there are two processes
TWO_PROCESSES = """
import os, runpy
import torch, torchmetrics, shortlist
rank = 0 if os.fork() else 1
os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
runpy.run_path("train_ddp.py", run_name="__main__")
if rank == 0:
    raise SystemExit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_the_script_for_torchrun_works_on_two_processes(folder: Path) -> None:
    write_files("guides/many-machines.md", folder)
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, "-c", TWO_PROCESSES],
        env={**ENVIRONMENT, **place},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = re.search(r"2 processes: mAP (0\.\d+)", done.stdout)
    assert found, done.stdout
    assert float(found[1]) > 0.9


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_files_of_pages_are_run_somewhere_above() -> None:
    known = {"guides/runs.md", "guides/partial-labels.md", "guides/tables.md", "extend.md", "guides/many-machines.md"}
    assert {page for page in PAGES if files(page)} == known
