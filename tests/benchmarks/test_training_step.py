from benchmarks.training_step import cases


def test_a_quick_run_measures_what_the_loop_adds() -> None:
    row = cases(quick=True)[0].run(0.0)
    assert row.ours >= row.reference > 0
    assert row.goal is None
