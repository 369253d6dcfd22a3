"""The top-k suite covers what was promised, compares like with like, and runs."""

import json

import pytest
import torch

import shortlist.functional as F
from benchmarks import peers, top_k
from shortlist_recipes.published.divide_and_conquer import divide_and_conquer
from shortlist_recipes.published.smooth_topk import smooth_topk_loss as published_smooth_topk_loss

PROMISED = {  # (name, against, shape, k): the largest ratio allowed
    ("smooth_topk", "F.cross_entropy", (256, 100), 5): 1.4,
    ("smooth_topk", "F.cross_entropy", (256, 1000), 5): 1.2,
    ("smooth_topk", "F.cross_entropy", (256, 10_000), 5): 1.0,
    ("smooth_topk", "F.cross_entropy", (256, 1000), 20): 1.8,
    ("smooth_topk", "F.cross_entropy", (256, 1000), 100): 8.0,
    ("lml", "torch.softmax", (256, 1000), 5): 1.25,
    ("lml", "torch.softmax", (256, 10_000), 5): 1.5,
    ("lml", "torch.softmax", (64, 100_000), 5): 1.5,
    ("lml_loss", "F.cross_entropy", (256, 1000), 5): 1.5,
    ("truncated_entropy", "F.cross_entropy", (256, 1000), 5): 2.0,
    ("noised_topk", "torch.randn alone", (256, 1000), 5): 1.5,
}


def inputs(labels: int):
    generator = torch.Generator().manual_seed(1)
    scores = torch.randn(6, labels, generator=generator).requires_grad_()
    return scores, torch.randint(labels, (6,), generator=generator)


def test_every_promise_is_measured_at_its_size():
    found = {
        (case.name, case.against, case.shape, case.k): case.goal
        for case in top_k.cases()
        if case.group == top_k.BUILT_IN and case.goal is not None
    }
    assert found == PROMISED


def test_every_twin_is_held_to_be_faster_than_every_peer():
    twins = [case for case in top_k.cases() if case.group == top_k.TWINS]
    assert {case.against for case in twins} == {"difftopk", "pytopk", "entmax.budget_bisect"}
    assert all(case.goal == 1.0 for case in twins)


def test_every_function_is_held_to_three_times_the_scores():
    memory = [case for case in top_k.cases() if case.group == top_k.MEMORY]
    assert len(memory) >= 8
    assert all((case.shape, case.goal) == ((64, 100_000), 3.0) for case in memory)


def test_the_peer_for_the_smooth_loss_computes_our_number():
    scores, target = inputs(40)
    torch.testing.assert_close(peers.smooth_topk(40, 5)(scores, target), F.smooth_topk_loss(scores, target, 5))


@pytest.mark.parametrize("imbalanced", [False, True])
def test_the_peer_for_the_noised_loss_computes_our_number_where_noise_does_not_matter(imbalanced):
    _, target = inputs(40)
    scores = 1e4 * torch.arange(40.0).flip(0).repeat(6, 1)  # gaps far wider than the noise
    theirs = peers.noised_topk(40, k=5, draws=400, imbalanced=imbalanced)(scores, target)
    options = {"class_counts": torch.arange(1, 41), "scale": 50.0} if imbalanced else {}
    ours = F.noised_topk_loss(scores, target, 5, n_samples=400, **options)
    torch.testing.assert_close(theirs, ours, rtol=1e-4, atol=0)


def test_the_peer_for_lml_projects_onto_the_same_polytope_but_sparsely():
    scores, _ = inputs(40)
    theirs = peers.budget_sparsemax(4 * scores, 5)
    torch.testing.assert_close(theirs.sum(-1), F.lml(scores, 5).sum(-1))
    assert (theirs == 0).any()
    assert not (F.lml(4 * scores, 5) == 0).any()


def test_the_published_algorithm_agrees_with_ours_at_the_size_it_is_timed_at():
    scores, target = inputs(1000)
    theirs = published_smooth_topk_loss(scores, target, 5, algorithm=divide_and_conquer, custom_backward=True)
    ours = F.smooth_topk_loss(scores, target, 5)
    torch.testing.assert_close(theirs, ours, rtol=1e-4, atol=0)


def test_a_quick_run_measures_every_case_and_writes_both_files(tmp_path, capsys):
    top_k.main(["--quick", "--json", str(tmp_path / "rows.json"), "--markdown", str(tmp_path / "rows.md")])
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert [row["name"] for row in rows] == [case.name for case in top_k.cases()]
    assert all(row["ours"] > 0 for row in rows if row["unit"] == "ms")
    assert "python -m benchmarks.top_k" in (tmp_path / "rows.md").read_text()
    assert "No goals apply" in capsys.readouterr().out


def test_only_chooses_cases_by_name_and_says_what_there_is(capsys):
    top_k.main(["--quick", "--only", "truncated_entropy"])
    assert "smooth_topk" not in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"matches no case; there are .*lml"):
        top_k.main(["--quick", "--only", "no such case"])
