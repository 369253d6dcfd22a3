"""What holds for every objective of the registry: it learns, saves, resumes, and predicts without its training set."""

import io
import pickle
from importlib import import_module

import pytest
import torch

from shortlist.models import build_backbone
from shortlist.objectives import OBJECTIVES, build, default_monitor
from tests.objectives.tiny import FEATURES, LABELS, OPTIONS, first_kind, make, pairs_in_order, tiny, train

# fmt: off
CONTRACT = [
    "cross-entropy", "smooth-topk", "topk-hinge", "truncated-entropy", "noised-topk", "lml", "average-k",
    "assume-negative", "expected-positive", "role", "binary", "two-way", "asymmetric", "partial-selective", "warp",
    "lsep", "rml", "wsabie", "multilabel-softmax", "partial-binary", "curriculum", "fast0tag", "latent-noise",
    "cnn-rnn", "imcl",
]
# fmt: on
TAKE_BOTH = ["truncated-entropy", "lml", "average-k", "assume-negative", "expected-positive", "role"]
every = pytest.mark.parametrize("name", CONTRACT)
MONITORS = {"topk-accuracy", "average-k-accuracy", "mean-average-precision"}


def test_every_name_of_the_contract_is_registered():
    assert set(CONTRACT) <= set(OBJECTIVES)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_class_is_found_by_its_name_and_so_is_its_config(name):
    objective = OBJECTIVES[name]
    room = import_module(".".join(objective.__module__.split(".")[:2]))  # those of a vertical room are there
    assert getattr(room, objective.__name__) is objective
    assert pickle.loads(pickle.dumps((objective, objective.Config()))) == (objective, objective.Config())


@every
def test_a_pickled_objective_has_its_options_and_gives_the_same_scores(name):
    data = tiny(first_kind(name))
    objective = make(name, data).eval()
    copy = pickle.loads(pickle.dumps(objective))
    assert copy.config == objective.config
    assert torch.equal(copy(data.held_out), objective(data.held_out))


@every
def test_one_training_run_lowers_the_loss_and_beats_chance(name):
    data = tiny(first_kind(name))
    objective = make(name, data)
    losses = train(objective, data, epochs=40)
    assert sum(losses[-5:]) < 0.9 * sum(losses[:5])
    scores = objective.eval()(data.held_out)
    assert scores.shape == (64, LABELS)
    assert pairs_in_order(scores, data.truth) > 0.85


@pytest.mark.parametrize("name", TAKE_BOTH)
def test_a_label_matrix_with_one_present_label_per_row_trains_like_indices(name):
    data = tiny("indices")
    matrix = data._replace(target=torch.nn.functional.one_hot(data.target.clamp(min=0), LABELS).to(torch.int8))
    matrix.target[data.target == -1] = -1
    by_index, by_matrix = make(name, data), make(name, matrix)
    torch.testing.assert_close(train(by_index, data, epochs=2), train(by_matrix, matrix, epochs=2))


@every
def test_the_scores_of_a_row_depend_on_that_row_only(name):
    data = tiny(first_kind(name))
    objective = make(name, data)
    train(objective, data, epochs=1)
    objective.eval()
    torch.testing.assert_close(objective(data.held_out)[3:5], objective(data.held_out[3:5]))


@every
def test_training_and_evaluation_mode_give_the_same_scores(name):
    data = tiny(first_kind(name))
    objective = make(name, data)
    assert torch.equal(objective.train()(data.held_out), objective.eval()(data.held_out))


@every
def test_an_empty_batch_gives_no_scores_and_no_nan(name):
    data = tiny(first_kind(name))
    objective = make(name, data)
    assert objective(torch.empty(0, FEATURES)).shape == (0, LABELS)
    loss = objective.loss(torch.empty(0, FEATURES), data.target[:0], torch.empty(0, dtype=torch.int64))
    assert loss.item() == 0


# partial-selective learns from unknown labels, by definition
@pytest.mark.parametrize("name", [name for name in CONTRACT if name != "partial-selective"])
def test_rows_without_a_known_label_give_zero_loss_and_gradient(name):
    data = tiny(first_kind(name))
    objective = make(name, data)
    unknown = torch.full_like(data.target[:4], -1)
    loss = objective.loss(data.features[:4], unknown, torch.arange(4))
    assert loss.item() == 0
    loss.backward()
    assert all(p.grad is None or not p.grad.any() for p in objective.parameters())


@every
def test_a_run_that_is_saved_and_resumed_goes_on_bit_for_bit(name):
    data = tiny(first_kind(name))
    whole = make(name, data)
    train(whole, data, epochs=6)
    part = make(name, data)
    train(part, data, epochs=3, of=6)
    file = io.BytesIO()
    torch.save(part.state_dict(), file)
    file.seek(0)
    torch.manual_seed(123)
    resumed = build(name, OPTIONS.get(name), in_features=FEATURES, num_labels=LABELS, train_target=data.target)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    train(resumed, data, epochs=3, start=3, of=6)
    theirs = whole.state_dict()
    for key, value in resumed.state_dict().items():
        assert torch.equal(value, theirs[key]), key


@every
def test_prediction_needs_the_state_dict_but_not_the_training_set(name):
    data = tiny(first_kind(name))
    objective = make(name, data)
    train(objective, data, epochs=2)
    reader = build(name, OPTIONS.get(name), in_features=FEATURES, num_labels=LABELS)
    reader.load_state_dict(objective.state_dict())
    assert torch.equal(reader.eval()(data.held_out), objective.eval()(data.held_out))


@every
def test_the_gradient_reaches_the_backbone(name):
    data = tiny(first_kind(name))
    backbone = build_backbone("mlp", in_shape=(FEATURES,), hidden=(FEATURES,))
    objective = make(name, data)
    objective.loss(backbone(data.features[:16]), data.target[:16], torch.arange(16)).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in backbone.parameters())
    assert any(p.grad.any() for p in backbone.parameters())


@every
def test_every_parameter_has_a_gradient(name):
    # else DDP waits for it in vain
    data = tiny(first_kind(name))
    objective = make(name, data)
    objective.loss(data.features[:16], data.target[:16], torch.arange(16)).backward()
    assert [key for key, p in objective.named_parameters() if p.grad is None] == []


@every
def test_features_of_the_wrong_length_are_an_error_that_names_the_right_one(name):
    data = tiny(first_kind(name))
    with pytest.raises(ValueError, match=r"features must have shape \(rows, 6\), got \(4, 5\)"):
        make(name, data)(torch.zeros(4, 5))


@every
def test_mixed_precision_gives_finite_losses_scores_and_gradients(name):
    data = tiny(first_kind(name))
    objective = make(name, data)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = objective.loss(data.features[:16], data.target[:16], torch.arange(16))
        scores = objective(data.held_out)
    loss.backward()
    assert loss.isfinite()
    assert scores.isfinite().all()
    assert all(p.grad.isfinite().all() for p in objective.parameters())
    assert loss.item() == pytest.approx(make_loss(name, data), rel=0.1)


def make_loss(name, data):
    """The loss of the first batch in full precision, from the same random state."""
    return make(name, data).loss(data.features[:16], data.target[:16], torch.arange(16)).item()


@every
def test_the_metric_to_monitor_is_one_that_exists(name):
    assert OBJECTIVES[name].monitor in MONITORS
    assert default_monitor(OBJECTIVES[name], torch.tensor([[1, 1, 0]])) == "mean-average-precision"


@every
def test_scores_and_loss_are_finite_for_huge_features(name):
    data = tiny(first_kind(name))
    objective = make(name, data)
    features = 1e4 * data.features[:16]
    assert objective(features).isfinite().all()
    loss = objective.loss(features, data.target[:16], torch.arange(16))
    assert loss.isfinite()
    loss.backward()
    assert all(p.grad.isfinite().all() for p in objective.parameters())
