import pytest

from benchmarks import metrics


def test_the_metrics_benchmark_runs_and_prints_the_required_ratio(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["metrics.py", "--examples", "60", "--labels", "12"])
    metrics.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("60 examples, 12 labels")
    assert sum("x argsort (required: 2x)" in line for line in lines) == 4
