"""IMCL: its loss from the definition, gradients, what never happens to known labels, memory, processes."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from shortlist.data import Dataset
from shortlist.functional import binary_loss
from shortlist.models import build_backbone
from shortlist.objectives import build
from shortlist.training.learner import Learner
from shortlist.training.loop import gathered_features
from shortlist.training.loop import train as train_in_loop
from shortlist.training.settings import TrainSettings
from tests.objectives.tiny import FEATURES, LABELS, TRAIN, make, tiny, train
from tests.processes import run_two

INDEX = torch.arange(TRAIN)


def psi(x, c):
    return (1 + 1 / c) * torch.sigmoid(2 * x - np.log(c)) - 1 / c


def active(data=None, dtype=torch.float64, **options):
    """Past the warm-up, its dictionary filled, weights drawn at random."""
    data = data or tiny("label-matrix")
    objective = make("imcl", data, **options).to(dtype)
    for parameter in objective.parameters():
        nn.init.normal_(parameter, std=0.3)
    objective.start_epoch(9, 10)
    objective.remember(data.features[objective.wanted_rows(changing=False)].to(dtype))
    return objective


def by_definition(objective, features, target, found, atoms=None):
    """The label term and the feature term of every row, with loops, for what the search found; ``atoms``: the features
    of the dictionary, those that it remembers if not given."""
    c, dictionary = objective.config.c, objective.memory.dictionary
    A = objective.memory.graph.weights().to_dense().detach()
    if objective.memory.graph.weight.requires_grad:
        source, to = objective.memory.graph.edges
        A = torch.eye(LABELS, dtype=features.dtype).index_put((to, source), objective.memory.graph.weight)
    labels, apart = [], []
    for row in range(len(features)):
        y = psi(objective.head(features[row]), c)
        y = torch.stack([{1: y[j] * 0 + 1, 0: y[j] * 0 - 1 / c, -1: y[j]}[int(target[row, j])] for j in range(LABELS)])
        combined, rebuilt = torch.zeros(LABELS, dtype=features.dtype), torch.zeros(FEATURES, dtype=features.dtype)
        for step, place in enumerate(found.indices[row].tolist()):
            if place < 0:
                continue
            atom = dictionary.features[place] if atoms is None else atoms[place]
            z = A @ psi(objective.head(atom), c)
            known = dictionary.target[place]
            z = torch.where(known == 1, 1.0, torch.where(known == 0, -1 / c, z))
            combined = combined + found.label_coefficients[row, step] * z
            rebuilt = rebuilt + found.feature_coefficients[row, step] * atom
        combined = combined.tanh() if objective.config.combine == "tanh" else combined
        labels.append(((y - combined) ** 2).sum())
        apart.append(((features[row] - rebuilt) ** 2).sum())
    return torch.stack(labels).mean(), torch.stack(apart).mean()


def search(objective, features, target, index):
    """What the loss will find, by places in the dictionary."""
    memory = objective.memory
    with torch.no_grad():
        similar = memory.similar(memory.completed(objective(features), target), features, index, objective.head)
    places = memory.dictionary.places(similar.rows)
    indices = torch.where(similar.found.indices < 0, -1, places[similar.found.indices.clamp(min=0)])
    return similar.found._replace(indices=indices)


def labels_in_the_dictionary(objective, places=slice(None)):
    memory = objective.memory
    return memory._labels_of(memory.dictionary.features[places], memory.dictionary.target[places], objective.head)


@pytest.mark.parametrize("combine", ["tanh", "linear"])
@pytest.mark.parametrize("c", [1.0, 2.0])
def test_the_loss_is_the_definition(combine, c):
    data = tiny("label-matrix")
    terms = {"label_weight": 0.7, "feature_weight": 0.3, "feature_loss": True}
    objective = active(balance="fixed", **terms, combine=combine, c=c)
    x = data.features[:16].double().requires_grad_()
    found = search(objective, x, data.target[:16], INDEX[:16])
    assert (found.indices >= 0).any()
    labels, apart = by_definition(objective, x, data.target[:16], found)
    expected = binary_loss(objective(x), data.target[:16]) + 0.7 * labels + 0.3 * apart
    torch.testing.assert_close(objective.loss(x, data.target[:16], INDEX[:16]), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("trained", [False, True])
def test_fixed_features_and_those_of_the_search_alone_leave_out_the_feature_term(trained):
    data = tiny("label-matrix")
    objective = active(balance="fixed", label_weight=1.0, feature_weight=100.0, feature_loss=not trained)
    x = data.features[:16].double().requires_grad_(trained)
    labels, _ = by_definition(objective, x, data.target[:16], search(objective, x, data.target[:16], INDEX[:16]))
    expected = binary_loss(objective(x), data.target[:16]) + labels
    torch.testing.assert_close(objective.loss(x, data.target[:16], INDEX[:16]), expected, rtol=1e-10, atol=1e-10)


def test_gradients_by_head_graph_and_features_match_differences_with_the_selection_held_fixed(monkeypatch):
    data = tiny("label-matrix")
    objective = active(balance="fixed", feature_loss=True)
    x, target, index = data.features[:4].double().requires_grad_(), data.target[:4], INDEX[:4]
    memory = objective.memory
    with torch.no_grad():
        memory.similar(memory.completed(objective(x), target), x, index, objective.head)  # which labels it remembers
    found = memory._search(memory.completed(objective(x), target), x, index, memory.labels, memory.dictionary.features,
                           memory.dictionary.places(index))  # fmt: skip
    monkeypatch.setattr(memory, "_search", lambda *_: found)
    names = ["head.weight", "head.bias", "memory.graph.weight"]
    values = [dict(objective.named_parameters())[name].detach().clone().requires_grad_() for name in names]

    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.objective = objective

        def forward(self, x):
            return self.objective.loss(x, target, index)

    def loss(x, *values):
        given = {f"objective.{name}": value for name, value in zip(names, values, strict=True)}
        return torch.func.functional_call(Loss(), given, (x,))

    assert torch.autograd.gradcheck(loss, (x, *values), fast_mode=True)


def test_unknown_labels_never_enter_the_logistic_term():
    data = tiny("label-matrix")
    objective = make("imcl", data)  # in the warm-up
    x, target = data.features[:16], data.target[:16]
    loss = objective.loss(x, target, INDEX[:16])
    known = target != -1
    by_hand = F.binary_cross_entropy_with_logits(objective(x)[known], target[known].float())
    torch.testing.assert_close(loss, by_hand)
    assert known.any()
    assert not known.all()


def test_known_labels_are_the_same_in_every_completed_vector():
    data = tiny("label-matrix")
    objective = active(dtype=torch.float32)
    for row, why in enumerate(objective.explain(data.features, data.target, INDEX)):
        present, absent = data.target[row] == 1, data.target[row] == 0
        assert (why.completed[present] == 1).all()
        assert (why.completed[absent] == -0.5).all()
    known = objective.memory.dictionary.target
    memory = labels_in_the_dictionary(objective)
    assert (memory[known == 1] == 1).all()
    assert (memory[known == 0] == -0.5).all()


def test_no_example_is_explained_by_itself():
    data = tiny("label-matrix")
    objective = active(dtype=torch.float32, per_label=None)
    for row, why in enumerate(objective.explain(data.features, data.target, INDEX)):
        assert row not in why.examples
        assert why.examples
        assert len(set(why.examples)) == len(why.examples) == len(why.label_coefficients)


def test_an_explanation_adds_up():
    data = tiny("label-matrix")
    objective = active(dtype=torch.float32, combine="linear")
    (why,) = objective.explain(data.features[:1], data.target[:1], INDEX[:1])
    places = objective.memory.dictionary.places(torch.tensor(why.examples))
    by_hand = torch.tensor(why.label_coefficients) @ labels_in_the_dictionary(objective, places)
    torch.testing.assert_close(why.combination, by_hand)


def test_the_warm_up_is_logistic_regression_to_the_bit():
    data = tiny("label-matrix")
    logistic, imcl = make("binary", data), make("imcl", data, warm_up=1.0)
    assert train(imcl, data, epochs=3) == pytest.approx(train(logistic, data, epochs=3))
    assert torch.equal(imcl.head.weight, logistic.head.weight)
    assert not imcl.memory.dictionary.ready  # nothing was asked for


def test_after_the_warm_up_the_head_and_the_graph_learn_more():
    data = tiny("label-matrix")
    logistic, imcl = make("binary", data), make("imcl", data, warm_up=0.5)
    train(logistic, data, epochs=4)
    train(imcl, data, epochs=4)
    assert not torch.equal(imcl.head.weight, logistic.head.weight)
    assert imcl.memory.graph.weight.abs().max() > 0


def test_balanced_terms_have_their_share_of_the_logistic_gradient():
    data = tiny("label-matrix")
    objective = active(label_weight=0.5, feature_weight=0.25, feature_loss=True)
    x, target, index = data.features[:16].double().requires_grad_(), data.target[:16], INDEX[:16]
    labels, apart = by_definition(objective, x, target, search(objective, x, target, index))
    logistic = binary_loss(objective(x), target)
    objective.loss(x, target, index)

    def norm(term, by):
        return torch.autograd.grad(term, by, retain_graph=True)[0].norm()

    weight = objective.head.weight
    expected = 0.5 * norm(logistic, weight) / norm(labels, weight)
    torch.testing.assert_close(objective._balance["labels"], expected)
    expected = 0.25 * norm(logistic, x) / norm(apart, x)
    torch.testing.assert_close(objective._balance["features"], expected)


# ---- the dictionary in training


def test_features_are_asked_for_once_if_fixed_and_every_refresh_if_not():
    data = tiny("label-matrix")
    objective = make("imcl", data, refresh=3, warm_up=0.0)
    objective.start_epoch(0, 2)
    asked = {True: [], False: []}
    for changing in (False, True):
        objective.start_epoch(0, 2)
        for step in range(7):
            rows = objective.wanted_rows(changing)
            if rows is not None:
                asked[changing].append(step)
                objective.remember(data.features[rows])
            objective.after_step(0.1)
    assert asked == {False: [0], True: [0, 3, 6]}


def test_training_without_features_says_what_to_call():
    data = tiny("label-matrix")
    objective = make("imcl", data, warm_up=0.0)
    objective.start_epoch(0, 1)
    with pytest.raises(ValueError, match=r"call objective\.remember"):
        objective.loss(data.features, data.target, INDEX)


def test_an_objective_built_for_prediction_has_no_memory_and_refuses_to_train():
    objective = build("imcl", {}, in_features=FEATURES, num_labels=LABELS)
    assert {name for name, _ in objective.named_parameters()} == {"head.weight", "head.bias"}
    assert objective.wanted_rows(changing=True) is None
    with pytest.raises(ValueError, match="pass train_target"):
        objective.loss(torch.zeros(1, FEATURES), torch.zeros(1, LABELS), torch.tensor([0]))
    with pytest.raises(ValueError, match="pass train_target"):
        objective.explain(torch.zeros(1, FEATURES), torch.zeros(1, LABELS), torch.tensor([0]))


def dataset(kind="label-matrix"):
    data = tiny(kind)
    return Dataset(data.features, data.target, tuple("abcdefgh")), Dataset(data.held_out, data.truth, tuple("abcdefgh"))


def test_the_loop_refreshes_the_dictionary_of_a_backbone_that_trains():
    train_set, _ = dataset()
    backbone = build_backbone("mlp", in_shape=(FEATURES,), hidden=(12,), dropout=0.5)
    options = {"warm_up": 0.0, "refresh": 1}
    objective = build("imcl", options, in_features=12, num_labels=LABELS, train_target=train_set.target)
    seen = []
    remember = objective.remember
    objective.remember = lambda features: (seen.append(features.clone()), remember(features))
    train_in_loop(backbone, objective, train_set, None, TrainSettings(epochs=2, batch_size=48, optimizer={"lr": 0.5}))
    assert len(seen) == 4
    assert not torch.equal(seen[0], seen[1])
    assert backbone.training
    rows = objective.memory.dictionary.rows
    assert seen[-1].shape == (len(rows), 12)


def test_the_loop_gives_the_dictionary_the_features_of_its_own_examples():
    train_set, val_set = dataset()
    objective = build("imcl", {"warm_up": 0.0}, in_features=FEATURES, num_labels=LABELS, train_target=train_set.target)
    identity = build_backbone("identity", in_shape=(FEATURES,))
    history = train_in_loop(identity, objective, train_set, val_set, TrainSettings(epochs=8, batch_size=32))
    assert torch.equal(objective.memory.dictionary.features, train_set.inputs[objective.memory.dictionary.rows])
    assert history.best["mean-average-precision"] > 0.8


def test_without_any_known_present_label_it_is_logistic_regression():
    data = tiny("label-matrix")
    nothing = data._replace(target=data.target.clamp(max=0))
    logistic, imcl = make("binary", nothing), make("imcl", nothing, warm_up=0.0)
    assert train(imcl, nothing, epochs=2) == pytest.approx(train(logistic, nothing, epochs=2))


# ---- the gradient through the dictionary


def encoded(backbone, data, **options):
    """An objective whose dictionary was filled by a backbone that has moved on since, and encodes by it."""
    objective = make("imcl", data, dictionary="encoded", balance="fixed", **options).double()
    for parameter in [*objective.parameters(), *backbone.parameters()]:
        nn.init.normal_(parameter, std=0.3)
    objective.start_epoch(9, 10)
    rows = objective.wanted_rows(changing=True)
    objective.remember(backbone(data.features[rows].double()).detach() + 0.01)
    objective.encode = lambda rows: backbone(data.features[rows].double())
    return objective


@pytest.mark.parametrize("combine", ["tanh", "linear"])
def test_the_gradient_through_encoded_features_and_labels_is_that_of_the_exact_program(combine):
    data = tiny("label-matrix")
    torch.manual_seed(0)
    backbone = nn.Sequential(nn.Linear(FEATURES, FEATURES), nn.Tanh()).double()
    terms = {"label_weight": 0.7, "feature_weight": 0.3, "feature_loss": True}
    objective = encoded(backbone, data, combine=combine, **terms)
    memory, target, index = objective.memory, data.target[:12], INDEX[:12]
    graph = objective.memory.graph
    wanted = [*backbone.parameters(), *objective.head.parameters(), graph.weight]

    x = backbone(data.features[:12].double())
    ours = torch.autograd.grad(objective.loss(x, target, index), wanted)

    x = backbone(data.features[:12].double())
    with torch.no_grad():
        y = memory.completed(objective(x), target)
        similar = memory.similar(y, x, index, objective.head, objective.encode)
    places = memory.dictionary.places(similar.rows)
    found = similar.found._replace(
        indices=torch.where(similar.found.indices < 0, -1, places[similar.found.indices.clamp(min=0)])
    )
    atoms = backbone(data.features[memory.dictionary.rows].double())
    labels, apart = by_definition(objective, x, target, found, atoms)
    exact = binary_loss(objective(x), target) + 0.7 * labels + 0.3 * apart
    for a, b in zip(ours, torch.autograd.grad(exact, wanted), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)

    objective.encode, fixed = (lambda rows: backbone(data.features[rows].double()).detach()), wanted[0]
    without = torch.autograd.grad(objective.loss(backbone(data.features[:12].double()), target, index), fixed)[0]
    assert not torch.allclose(ours[0], without)  # the dictionary's part of the gradient is no small change


def test_what_was_found_is_searched_again_by_its_features_of_now():
    data = tiny("label-matrix")
    torch.manual_seed(0)
    backbone = nn.Linear(FEATURES, FEATURES).double()
    objective = encoded(backbone, data)
    memory, index = objective.memory, INDEX[:12]
    with torch.no_grad():
        x = backbone(data.features[:12].double())
        y = memory.completed(objective(x), data.target[:12])
        found, rows, _, atoms = memory.similar(y, x, index, objective.head, objective.encode)
    assert torch.equal(atoms, backbone(data.features[rows].double()))
    assert all(int(index[row]) not in rows[found.indices[row][found.indices[row] >= 0]] for row in range(12))
    for row in range(12):  # the coefficients are the minimum for these features: no step makes the rest smaller
        used = found.indices[row][found.indices[row] >= 0]
        rest = x[row] - found.feature_coefficients[row, : len(used)] @ atoms[used]
        slope = atoms[used] @ rest
        assert (slope <= 1e-9).all()


def test_the_loop_trains_through_the_dictionary_and_takes_its_encoder_back():
    train_set, val_set = dataset()
    losses = {}
    for way in ("encoded", "remembered"):
        torch.manual_seed(0)
        backbone = build_backbone("mlp", in_shape=(FEATURES,), hidden=(12,))
        options = {"warm_up": 0.0, "dictionary": way}
        objective = build("imcl", options, in_features=12, num_labels=LABELS, train_target=train_set.target)
        settings = TrainSettings(epochs=15, batch_size=16, accumulate=2, optimizer={"lr": 0.3})
        history = train_in_loop(backbone, objective, train_set, val_set, settings)
        assert history.best["mean-average-precision"] > 0.7
        assert objective.encode is None
        losses[way] = [record["loss"] for record in history.records]
    assert losses["encoded"] != losses["remembered"]


def test_accumulation_bounds_how_many_examples_are_encoded_at_once():
    train_set, _ = dataset()
    largest = {}
    for batch_size, accumulate in ((32, 1), (8, 4)):
        backbone = build_backbone("mlp", in_shape=(FEATURES,), hidden=(12,))
        sizes = []
        backbone.register_forward_hook(lambda module, x, y: sizes.append(len(y)) if torch.is_grad_enabled() else None)  # noqa: B023
        options = {"warm_up": 0.0, "dictionary": "encoded", "per_label": None}
        objective = build("imcl", options, in_features=12, num_labels=LABELS, train_target=train_set.target)
        settings = TrainSettings(epochs=1, batch_size=batch_size, accumulate=accumulate)
        train_in_loop(backbone, objective, train_set, None, settings)
        largest[batch_size] = max(sizes)
    assert largest[8] <= 3 * 8 < largest[32] <= 3 * 32


def test_encoding_without_an_encoder_says_what_to_set():
    data = tiny("label-matrix")
    objective = active(data, dictionary="encoded")
    with pytest.raises(ValueError, match=r"set objective\.encode"):
        objective.loss(data.features[:4].double().requires_grad_(), data.target[:4], INDEX[:4])


def test_terms_balanced_by_loss_are_worth_their_share_of_the_logistic_loss():
    data = tiny("label-matrix")
    objective = active(balance="loss", label_weight=0.5)
    x, target, index = data.features[:16].double(), data.target[:16], INDEX[:16]
    loss = objective.loss(x, target, index)
    torch.testing.assert_close(loss, 1.5 * binary_loss(objective(x), target))


# ---- side labels


def test_side_labels_draw_the_search_to_their_own_class():
    data = tiny("label-matrix")
    side = torch.arange(TRAIN) % 4
    side[5] = -1
    objective = active(dtype=torch.float32, per_label=None, side_weight=10.0, neighbours=1, label_weight=2.0)
    free = objective.explain(data.features, data.target, INDEX)
    objective.see_side_labels(side)
    bound = objective.explain(data.features, data.target, INDEX)
    assert all(side[why.examples[0]] == side[row] for row, why in enumerate(bound) if row != 5)
    assert not all(side[why.examples[0]] == side[row] for row, why in enumerate(free) if row != 5)
    assert bound[0].completed.shape == (LABELS,)


def test_the_loop_hands_on_the_side_labels_of_the_data():
    train_set, _ = dataset()
    side = torch.arange(TRAIN) % 3
    train_set = Dataset(train_set.inputs, train_set.target, train_set.vocabulary, side=side)
    objective = build("imcl", {"warm_up": 0.0}, in_features=FEATURES, num_labels=LABELS, train_target=train_set.target)
    train_in_loop(build_backbone("identity", in_shape=(FEATURES,)), objective, train_set, None, TrainSettings(epochs=1))
    assert torch.equal(objective.memory.side, side)


def test_side_labels_of_the_wrong_length_are_an_error():
    with pytest.raises(ValueError, match="one class per training example"):
        active().see_side_labels(torch.zeros(3, dtype=torch.int64))


# ---- options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"neighbours": 0}, "neighbours of 'imcl' must be a whole number of at least 1"),
        ({"warm_up": 1.5}, "warm_up of 'imcl' is a share of the epochs"),
        ({"label_weight": -1.0}, "label_weight of 'imcl' must be a finite number that is not negative"),
        ({"graph": "vectors"}, "do not go together"),
        ({"graph_file": "x.npy"}, "do not go together"),
        ({"c": 0.0}, "c must be a positive finite number"),
        ({"per_label": 0}, "per_label must be a whole number of at least 1"),
    ],
)
def test_options_out_of_range_are_errors(options, message):
    with pytest.raises(ValueError, match=message):
        make("imcl", tiny("label-matrix"), **options)


# ---- several processes


def one_of(world, rank, folder):
    """A loss and its gradient, averaged over processes as DDP does; and features of the dictionary by backbones that
    differ (as batch-norm statistics do)."""
    torch.set_num_threads(1)
    if world > 1:
        dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=world)
    data = tiny("label-matrix")
    objective = active(data)
    x, target, index = data.features[:16].double(), data.target[:16], INDEX[:16]
    mine = slice(rank, None, world)
    objective.loss(x[mine], target[mine], index[mine]).backward()
    gradients = [parameter.grad for parameter in objective.parameters()]
    if world > 1:
        for gradient in gradients:
            dist.all_reduce(gradient)
            gradient /= world
    torch.manual_seed(rank)
    learner = Learner(nn.Linear(FEATURES, 5), objective)
    fabric = SimpleNamespace(world_size=world, global_rank=rank, autocast=nullcontext)
    features = gathered_features(fabric, learner, dataset()[0], torch.arange(0, 30, 3))
    torch.save({"gradients": gradients, "features": features}, f"{folder}/{rank}-of-{world}.pt")
    if world > 1:
        dist.destroy_process_group()


def one_of_two(rank, folder):
    one_of(2, rank, folder)


def test_two_processes_compute_the_gradient_of_the_whole_batch_and_have_one_dictionary(tmp_path):
    one_of(1, 0, str(tmp_path))
    run_two(one_of_two, str(tmp_path))
    whole, *halves = (torch.load(tmp_path / f"{name}.pt", weights_only=True) for name in ("0-of-1", "0-of-2", "1-of-2"))
    for half in halves:
        for a, b in zip(whole["gradients"], half["gradients"], strict=True):
            torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)
    assert whole["features"].shape == (10, 5)
    assert torch.equal(halves[0]["features"], halves[1]["features"])
