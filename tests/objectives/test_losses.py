"""The objectives over loss functions compute those functions, of the scores they predict with."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from shortlist import functional as losses
from shortlist.objectives import OBJECTIVES, AverageK, NoisedTopK, PartialSelective, build
from shortlist.objectives.registry import make_config
from tests.objectives.tiny import FEATURES, LABELS, first_kind, make, tiny

FUNCTIONS = {
    "smooth-topk": lambda s, y: losses.smooth_topk_loss(s, y, 2),
    "topk-hinge": lambda s, y: losses.topk_hinge_loss(s, y, 2),
    "truncated-entropy": lambda s, y: losses.truncated_entropy_loss(s, y, 2),
    "lml": lambda s, y: losses.lml_loss(s, y, 2),
    "assume-negative": losses.assume_negative_loss,
    "expected-positive": lambda s, y: losses.expected_positive_loss(s, y, 2),
    "binary": losses.binary_loss,
    "two-way": losses.two_way_loss,
    "asymmetric": losses.asymmetric_loss,
    "lsep": losses.lsep_loss,
    "rml": losses.rml_loss,
    "multilabel-softmax": losses.multilabel_softmax_loss,
    "partial-binary": losses.partial_binary_loss,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_loss_is_the_function_of_the_predicted_scores(name):
    data = tiny(first_kind(name))
    objective = make(name, data)
    expected = FUNCTIONS[name](objective(data.features), data.target)
    assert torch.equal(objective.loss(data.features, data.target), expected)


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("smooth-topk", {"k": 3, "tau": 0.5}, lambda s, y: losses.smooth_topk_loss(s, y, 3, tau=0.5)),
        ("expected-positive", {"k": 1.5, "beta": 1.0}, lambda s, y: losses.expected_positive_loss(s, y, 1.5, beta=1.0)),
        ("binary", {"pos_weight": 3.0}, lambda s, y: losses.binary_loss(s, y, pos_weight=3.0)),
        ("two-way", {"way": "class", "margin": 1.0}, lambda s, y: losses.two_way_loss(s, y, way="class", margin=1.0)),
        ("warp", {"exact": True}, lambda s, y: losses.warp_loss(s, y, exact=True)),
        ("cross-entropy", {"label_smoothing": 0.1}, lambda s, y: F.cross_entropy(s[1:], y[1:], label_smoothing=0.1)),
    ],
)
def test_options_reach_the_function(name, options, expected):
    data = tiny(first_kind(name))
    objective = make(name, data, **options)
    scores = objective(data.features)
    torch.testing.assert_close(objective.loss(data.features, data.target), expected(scores, data.target))


def test_an_index_outside_the_labels_is_an_error_and_not_a_crash():
    objective = build("cross-entropy", in_features=3, num_labels=4)
    with pytest.raises(ValueError, match=r"target\[1\] is 4: allowed are 0\.\.3"):
        objective.loss(torch.zeros(2, 3), torch.tensor([0, 4]))


@pytest.mark.parametrize("name", [name for name in OBJECTIVES if name in FUNCTIONS])
def test_the_head_is_one_linear_layer(name):
    head = make(name, tiny(first_kind(name))).head
    assert isinstance(head, nn.Linear)  # which may also take sparse rows
    assert head.weight.shape == (LABELS, FEATURES)


def test_average_k_predicts_with_the_set_scores_in_either_mode():
    objective = AverageK(FEATURES, LABELS, AverageK.Config(k=2))
    x = torch.randn(4, FEATURES)
    assert torch.equal(objective.train()(x), objective.head.sets(x))
    assert torch.equal(objective.eval()(x), objective.head.sets(x))
    y = torch.tensor([0, 1, 2, 3])
    expected = losses.average_k_loss(objective.head.sets(x), objective.head.proposals(x), y, 2)
    assert torch.equal(objective.loss(x, y), expected)


def test_noised_topk_is_noisy_in_training_and_not_in_evaluation():
    data = tiny("indices")
    objective = make("noised-topk", data)
    assert not torch.equal(objective.loss(data.features, data.target), objective.loss(data.features, data.target))
    objective.eval()
    expected = losses.noised_topk_loss(objective(data.features), data.target, 2, n_samples=0)
    assert torch.equal(objective.loss(data.features, data.target), expected)


def test_imbalanced_noised_topk_takes_its_margins_from_the_training_set():
    counts = torch.tensor([16, 1, 0, 81])
    objective = NoisedTopK(3, 4, NoisedTopK.Config(k=1, imbalanced=True, max_margin=0.4), class_counts=counts).eval()
    nn.init.zeros_(objective.head.weight)
    nn.init.zeros_(objective.head.bias)
    margins = [objective.loss(torch.zeros(1, 3), torch.tensor([y])).item() for y in (0, 1, 3)]
    assert margins == pytest.approx([0.2, 0.4, 0.4 / 3])  # n^(-1/4), the largest 0.4


def test_imbalanced_noised_topk_without_counts_says_what_it_needs():
    objective = NoisedTopK(3, 4, NoisedTopK.Config(k=1, imbalanced=True))
    with pytest.raises(ValueError, match="needs class_counts or train_target"):
        objective.loss(torch.zeros(1, 3), torch.tensor([0]))


def test_the_old_name_of_an_option_is_answered_with_the_new_one():
    with pytest.raises(ValueError, match=r"noised-topk\.balanced is now called imbalanced"):
        make_config(NoisedTopK, {"balanced": True})


def test_normalised_noised_topk_is_the_loss_of_cosines():
    torch.manual_seed(0)
    counts, target = torch.tensor([16, 1, 4, 81]), torch.tensor([0, 3, 1])
    config = NoisedTopK.Config(k=1, imbalanced=True, normalised=True, scale=50.0)
    objective = NoisedTopK(3, 4, config, class_counts=counts).eval()
    features = torch.randn(3, 3)
    cosines = torch.cosine_similarity(features[:, None], objective.head.weight[None], dim=-1)
    expected = losses.noised_topk_loss(cosines, target, 1, n_samples=0, class_counts=counts, scale=50.0)
    torch.testing.assert_close(objective.loss(features, target), expected)
    torch.testing.assert_close(objective(features), 50 * cosines)
    torch.testing.assert_close(objective(7 * features), objective(features))
    assert torch.equal(objective(features).topk(2).indices, cosines.topk(2).indices)



def test_partial_selective_ignores_unknown_labels_with_a_high_prior():
    target = torch.tensor([[1, -1, 0], [1, 0, -1], [-1, 0, -1], [0, 1, 0]])
    config = PartialSelective.Config(likelihood_topk=0, prior_threshold=0.3)
    objective = PartialSelective(3, 3, config, train_target=target)
    assert objective.prior.tolist() == [0.5, 0.25, 0.0]
    x = torch.randn(4, 3)
    options = {"likelihood_topk": 0, "prior_threshold": 0.3, "prior": torch.tensor([0.5, 0.25, 0.0])}
    expected = losses.partial_selective_loss(objective(x), target, **options)
    assert torch.equal(objective.loss(x, target), expected)
    without = PartialSelective(3, 3, config)
    without.load_state_dict(objective.state_dict() | {"prior": torch.zeros(3)})
    expected = losses.partial_selective_loss(objective(x), target, likelihood_topk=0)
    assert torch.equal(without.loss(x, target), expected)


def test_counts_ignore_unknown_rows_and_labels():
    by_index = build("noised-topk", {"k": 1}, in_features=3, num_labels=3, train_target=torch.tensor([2, 2, -1, 0, 1]))
    assert by_index.class_counts.tolist() == [1, 1, 2]
    matrix = torch.tensor([[1, -1, 0], [1, 1, -1]])
    by_matrix = build("cnn-rnn", in_features=3, num_labels=3, train_target=matrix)
    assert by_matrix.order.tolist() == [0, 1, 2]
