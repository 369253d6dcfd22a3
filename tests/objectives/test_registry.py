"""Names, options, targets and a user's own objective: what the registry accepts, and how it says no."""

import sys
import textwrap

import pytest
import torch

from shortlist.errors import ShortlistError
from shortlist.objectives import (
    OBJECTIVES,
    LinearObjective,
    LossFunctionObjective,
    build,
    check_target,
    make_config,
    register,
)

OWN_OBJECTIVE = textwrap.dedent('''
    """Squared hinge per label."""

    from dataclasses import dataclass

    import torch
    from shortlist.objectives import LinearObjective, register


    @register
    class SquaredHinge(LinearObjective):
        name = "squared-hinge"
        accepts = ("label-matrix",)
        link = "sigmoid"
        monitor = "mean-average-precision"

        @dataclass(frozen=True)
        class Config:
            margin: float = 1.0

        def score_loss(self, scores, target):
            sign = 2.0 * target - 1.0
            hinge = torch.relu(self.config.margin - sign * scores).square()
            return torch.where(target >= 0, hinge, 0.0).sum() / (target >= 0).sum().clamp(min=1)
''')


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "my_objectives.py").write_text(OWN_OBJECTIVE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("my_objectives", None)
    OBJECTIVES.pop("squared-hinge", None)


def test_an_own_objective_takes_less_than_thirty_lines():
    assert len(OWN_OBJECTIVE.strip().splitlines()) < 30


@pytest.mark.usefixtures("own_module")
def test_an_own_objective_is_registered_by_the_decorator():
    import my_objectives  # noqa: F401

    objective = build("squared-hinge", {"margin": 2.0}, in_features=3, num_labels=2)
    target = torch.tensor([[1, 0], [-1, -1]])
    before = objective.loss(torch.ones(2, 3), target)
    before.backward()
    with torch.no_grad():
        for p in objective.parameters():
            p -= 0.1 * p.grad
    assert objective.loss(torch.ones(2, 3), target) < before


@pytest.mark.usefixtures("own_module")
def test_module_and_class_is_imported_where_the_module_was_allowed():
    objective = build("my_objectives:SquaredHinge", in_features=3, num_labels=2, allow_import=("my_objectives",))
    assert objective.name == "squared-hinge"


@pytest.mark.usefixtures("own_module")
@pytest.mark.parametrize("allowed", [(), ("my",), ("my_objectives.more",)])
def test_a_module_that_was_not_allowed_is_not_imported(allowed):
    with pytest.raises(ValueError, match=r"not allowed.*--allow-import my_objectives"):
        build("my_objectives:SquaredHinge", in_features=3, num_labels=2, allow_import=allowed)
    assert "my_objectives" not in sys.modules


def test_a_class_that_is_no_objective_is_refused():
    with pytest.raises(ValueError, match=r"subclass of shortlist\.objectives\.Objective"):
        OBJECTIVES.find("collections:OrderedDict", allow_import=("collections",))


def test_the_options_of_an_own_loss_function_need_types():
    def half(scores: torch.Tensor, target: torch.Tensor, *, share: float = 0.5, **more: object) -> torch.Tensor:
        return share * scores.sum()

    def untyped(scores, target, *, share=0.5):
        return share * scores.sum()

    class Half(LossFunctionObjective):
        name, function = "half", staticmethod(half)

    assert Half.Config() == Half.Config(share=0.5)
    with pytest.raises(ShortlistError, match="the option 'share' of untyped needs a type, such as share: float"):
        type("Untyped", (LossFunctionObjective,), {"name": "untyped", "function": staticmethod(untyped)})


def test_a_missing_module_is_named():
    with pytest.raises(ValueError, match="No module named 'no_such_module_here'"):
        OBJECTIVES.find("no_such_module_here:Thing", allow_import=("no_such_module_here",))


def test_allow_import_as_one_text_is_an_error_and_not_a_list_of_letters():
    with pytest.raises(ValueError, match="tuple of module names"):
        OBJECTIVES.find("math:sqrt", allow_import="math")


def test_a_taken_name_is_refused():
    class Impostor(LinearObjective):
        name, accepts, link, monitor = "binary", ("label-matrix",), "sigmoid", "mean-average-precision"

    with pytest.raises(ValueError, match="'binary' is taken"):
        register(Impostor)


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"name": None}, "lacks the class attribute 'accepts'"),
        ({"accepts": ("labels",)}, "accepts must hold"),
        ({"accepts": ()}, "accepts must hold"),
        ({"accepts": ("indices",), "link": "logit"}, "link must be"),
        ({"accepts": ("indices",), "Config": dict}, "Config must be a dataclass"),
    ],
)
def test_an_incomplete_class_is_refused_with_what_is_missing(attributes, words):
    rest = {"name": "new", "link": "none", "monitor": "topk-accuracy"} | attributes
    with pytest.raises(ValueError, match=words):
        register(type("New", (LinearObjective,), rest))
    assert "new" not in OBJECTIVES


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match=r"no objective 'smoth-topk'; did you mean 'smooth-topk'\?"):
        OBJECTIVES.find("smoth-topk")


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("smooth-topk", {"taus": 1.0}, r"taus: there .* did you mean 'tau'\?; allowed here: k, tau, alpha"),
        ("lsep", {"tau": 1.0}, r"lsep\.tau: there is no such key; allowed here: nothing"),
        ("smooth-topk", {"k": 2.5}, r"smooth-topk\.k: input should be a valid integer.* got 2\.5"),
        ("smooth-topk", {"k": True}, "valid integer, got True"),
        ("smooth-topk", {"tau": "1"}, "valid number, got '1'"),
        ("warp", {"exact": 1}, "valid boolean, got 1"),
        ("latent-noise", {"evaluate": "both"}, "should be 'visual' or 'relevant', got 'both'"),
        ("curriculum", {"schedule": ["a"]}, "valid number"),
    ],
)
def test_wrong_options_are_errors_that_name_them(name, options, words):
    with pytest.raises(ValueError, match=words):
        make_config(OBJECTIVES[name], options)


def test_whole_numbers_are_floats_and_lists_are_tuples():
    assert make_config(OBJECTIVES["average-k"], {"k": 3}).k == 3
    assert make_config(OBJECTIVES["curriculum"], {"schedule": [0.5, 1]}).schedule == (0.5, 1)
    assert make_config(OBJECTIVES["binary"], {"pos_weight": None}).pos_weight is None


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("smooth-topk", {"k": 5}),
        ("smooth-topk", {"tau": 0.0}),
        ("topk-hinge", {}),
        ("lml", {"k": 4}),
        ("truncated-entropy", {"k": 4}),
        ("average-k", {"k": 0.5}),
        ("average-k", {"k": 2, "alpha": -1.0}),
        ("expected-positive", {}),
        ("cross-entropy", {"label_smoothing": 2.0}),
        ("two-way", {"positive_temperature": 0.0}),
        ("asymmetric", {"clip": 2.0}),
        ("partial-selective", {"mode": "guess"}),
        ("noised-topk", {"k": 1, "epsilon": -1.0}),
        ("wsabie", {"rank": 0}),
        ("wsabie", {"ball": 0.0}),
        ("fast0tag", {"dim": 0}),
        ("cnn-rnn", {"max_labels": 0}),
        ("role", {"k": 9}),
        ("curriculum", {"by": "share", "schedule": (2.0,)}),
    ],
)
def test_an_option_out_of_range_is_an_error_before_training_starts(name, options):
    with pytest.raises(ValueError, match=r"must|between"):
        build(name, options, in_features=3, num_labels=4, num_examples=10)


def test_checking_the_options_draws_no_random_numbers():
    torch.manual_seed(0)
    expected = torch.nn.Linear(3, 4)(torch.ones(1, 3)), torch.rand(3)
    torch.manual_seed(0)
    objective = build("noised-topk", {"k": 1}, in_features=3, num_labels=4)
    assert torch.equal(objective(torch.ones(1, 3)), expected[0])
    assert torch.equal(torch.rand(3), expected[1])


def test_a_label_matrix_objective_on_indices_proposes_others_and_the_converter():
    with pytest.raises(ValueError, match=r"takes a label matrix.*cross-entropy.*labels\.from_indices") as error:
        build("two-way", in_features=3, num_labels=4, train_target=torch.tensor([0, 3]))
    assert "binary" not in str(error.value)


def test_an_index_objective_on_a_label_matrix_proposes_others_and_argmax():
    with pytest.raises(ValueError, match=r"takes class indices.*two-way.*argmax\(1\)") as error:
        check_target(OBJECTIVES["cross-entropy"], torch.tensor([[1, 1, 0]]))
    assert "average-k" not in str(error.value)  # it takes one present label per row, and this row has two


def test_several_present_labels_in_a_row_are_named_where_one_is_allowed():
    with pytest.raises(ValueError, match=r"at most one present label per row, row 1 has 2: use one of .*role"):
        check_target(OBJECTIVES["average-k"], torch.tensor([[1, -1, 0], [1, 1, 0]]))


@pytest.mark.parametrize("name", ["lml", "truncated-entropy", "role", "average-k"])
def test_objectives_of_both_kinds_take_both(name):
    check_target(OBJECTIVES[name], torch.tensor([0, -1]))
    check_target(OBJECTIVES[name], torch.tensor([[0, 1], [-1, -1]]))


def test_a_target_of_three_dimensions_is_an_error():
    with pytest.raises(ValueError, match=r"got shape \(1, 2, 3\)"):
        check_target(OBJECTIVES["binary"], torch.zeros(1, 2, 3))


def test_class_counts_of_the_wrong_length_are_an_error():
    with pytest.raises(ValueError, match=r"class_counts must have shape \(4,\)"):
        build("binary", in_features=3, num_labels=4, class_counts=torch.ones(3))
