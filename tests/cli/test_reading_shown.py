"""How far a large file is read, shown on a terminal and nowhere else."""

import pytest

from shortlist.cli import _progress
from shortlist.files import reporter


@pytest.mark.parametrize(("terminal", "shown"), [(True, "\rreading a.csv: 50% \r\x1b[K"), (False, "")])
def test_a_terminal_shows_how_far_a_file_is_read_where_that_takes_a_while(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], terminal: bool, shown: str
) -> None:
    clock = iter([0.0, 1.0, 2.0])
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    monkeypatch.setattr(_progress.time, "monotonic", lambda: next(clock))
    with _progress.reading_shown():
        report = reporter()
        for share in (0.1, 0.5, 1.0):
            report("folder/a.csv", share)
    assert capsys.readouterr().err == shown
