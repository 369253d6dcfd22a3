"""MotifNet: the published sizes, the wiring against a slow composition of its parts, orders, classes that are found."""

from dataclasses import replace

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

from shortlist.models import build_backbone
from shortlist.objectives import build
from shortlist.scenes import MotifNet, sample_pairs
from shortlist.scenes.frequency import overlap_frequencies
from shortlist.scenes.label_decoder import LabelDecoder, without_duplicates
from shortlist.scenes.union_boxes import union_masks
from tests.scenes.made import learnable_scenes, made_scenes

SMALL = {"embedding": 5, "hidden": 6, "pooling": 8, "union_channels": 4}

# Zellers et al. 2018 and their configuration of MotifNet-LeftRight on Visual Genome, where background is one of 151
# classes and of 51 predicates: the shapes of every weight
H, POOL, VGG = 512, 4096, 512 * 7 * 7


def highway(inside, layer):
    size = inside if layer == 0 else H
    return {"input": (6 * H, size), "state": (5 * H, H), "bias": (5 * H,)}


PUBLISHED = {
    "class_vectors.weight": (151, 200),
    "edge_vectors.weight": (151, 200),
    "position_norm.weight": (4,),
    "position_norm.bias": (4,),
    "position.0.weight": (128, 4),
    "position.0.bias": (128,),
    "seen.0.weight": (POOL, VGG),
    "seen.0.bias": (POOL,),
    "seen.3.weight": (POOL, POOL),
    "seen.3.bias": (POOL,),
    **{f"object_context.cells.{i}.{k}": v for i in range(2) for k, v in highway(4096 + 200 + 128, i).items()},
    **{f"edge_context.cells.{i}.{k}": v for i in range(4) for k, v in highway(200 + 512, i).items()},
    "ends.weight": (2 * POOL, H),
    "ends.bias": (2 * POOL,),
    "union.rectangles.0.weight": (256, 2, 7, 7),
    "union.rectangles.0.bias": (256,),
    "union.rectangles.2.weight": (256,),
    "union.rectangles.2.bias": (256,),
    "union.rectangles.4.weight": (512, 256, 3, 3),
    "union.rectangles.4.bias": (512,),
    "union.rectangles.6.weight": (512,),
    "union.rectangles.6.bias": (512,),
    "union.layers.0.weight": (POOL, VGG),
    "union.layers.0.bias": (POOL,),
    "union.layers.3.weight": (POOL, POOL),
    "union.layers.3.bias": (POOL,),
    "frequency": (151 * 151, 51),
}
DECODER = {
    "decoder.before.weight": (151, 100),  # "start" and 150 classes; the published table has a row that is never read
    "decoder.cell.input": (6 * H, H + 100),
    "decoder.cell.state": (5 * H, H),
    "decoder.cell.bias": (6 * H,),  # the published cell has two of the gates' biases, whose sum counts
    "decoder.out.weight": (151, H),
    "decoder.out.bias": (151,),
}
NUMBERS = {  # the same, counted: the table of docs/guides/scene-graphs.md
    "class_vectors": 30_200,
    "edge_vectors": 30_200,
    "position": 648,
    "seen": 119_545_856,
    "object_context": 17_789_952,
    "edge_context": 12_158_976,
    "ends": 4_202_496,
    "union": 1_207_040 + 119_545_856,
    "frequency": 1_162_851,
}


@pytest.mark.parametrize("classes_are_found", [False, True])
def test_the_defaults_have_the_published_shapes(classes_are_found):
    with torch.device("meta"):
        net = MotifNet((150, 50, 0, VGG, VGG, 1, int(classes_are_found)), regions=True)
        head = build("scene-softmax", in_features=net.out_features, num_labels=50).head
    expected = PUBLISHED | (DECODER if classes_are_found else {})
    assert {name: tuple(weights.shape) for name, weights in net.named_parameters()} == expected
    assert (head.weight.shape, head.bias.shape) == ((51, POOL), (51,))
    numbers = {}
    for name, weights in net.named_parameters():
        part = name.partition(".")[0].partition("_norm")[0]
        numbers[part] = numbers.get(part, 0) + weights.numel()
    assert numbers == NUMBERS | ({"decoder": 3_286_419} if classes_are_found else {})
    assert sum(NUMBERS.values()) == 275_674_075


def test_the_published_numbers_are_the_defaults():
    net = MotifNet((4, 3, 0, 0), **SMALL)
    assert (net.order, net.object_context.dropout, net.position[2].p) == ("left-right", 0.1, 0.1)
    assert [type(layer).__name__ for layer in net.union.rectangles] == [
        "Conv2d", "ReLU", "BatchNorm2d", "MaxPool2d", "Conv2d", "ReLU", "BatchNorm2d",
    ]  # fmt: skip
    assert [type(layer).__name__ for layer in net.union.layers] == ["Linear", "ReLU", "Dropout", "Linear"]
    assert (net.union.rectangles[0].stride, net.union.rectangles[3].stride) == ((2, 2), 2)
    wide = MotifNet((4, 3, 0, 0), hidden=100, pooling=50, union_channels=2)
    assert float(wide.ends.weight.detach().std()) == pytest.approx(10 / 100**0.5, rel=0.05)


def batch_of(data, rows):
    return data.batch(torch.tensor(rows))[0]


def test_a_pair_is_the_product_of_subject_object_and_union_in_the_context_of_its_image():
    data = made_scenes((3, 5, 0, 1), features=7, words=5)
    torch.manual_seed(0)
    net = MotifNet(data.in_shape, **SMALL).eval()
    net.start_from(data.inputs)
    found = net(batch_of(data, [0, 1, 2, 3]))
    first = 0
    for image, count in enumerate((3, 5, 0, 1)):
        own = batch_of(data, [image])
        if count < 2:
            continue
        middle = (own.boxes[:, :2] + own.boxes[:, 2:]) / 2
        sides = own.boxes[:, 2:] - own.boxes[:, :2]
        place = net.position(net.position_norm(torch.cat([middle, sides], 1)))
        objects = torch.cat([own.features, net.class_vectors(own.classes), place], 1)
        order = middle[:, 0].argsort()
        context = torch.empty(count, 6)
        context[order] = net.object_context(pack_sequence([objects[order]])).data
        edges = torch.empty(count, 6)
        together = torch.cat([net.edge_vectors(own.classes), context], 1)
        edges[order] = net.edge_context(pack_sequence([together[order]])).data
        ends = net.ends(edges).view(count, 2, 8)
        row = first
        for subject in range(count):
            for thing in range(count):
                if subject == thing:
                    continue
                around = net.union(union_masks(own.boxes, torch.tensor([subject]), torch.tensor([thing])))[0]
                torch.testing.assert_close(found.values[row], ends[subject, 0] * ends[thing, 1] * around)
                kind = own.classes[subject] * 5 + own.classes[thing]
                assert torch.equal(found.frequency[row], net.frequency[kind])
                row += 1
        first = row
    assert found.pair_counts == (6, 20, 0, 0)


@pytest.mark.parametrize(
    ("order", "first"), [("left-right", [2, 0, 1]), ("size", [1, 2, 0]), ("confidence", [0, 2, 1])]
)
def test_objects_are_read_in_the_order_that_is_asked_for(order, first):
    data = made_scenes((3,))
    batch = batch_of(data, [0])
    batch.boxes = torch.tensor([[0.4, 0.1, 0.5, 0.2], [0.5, 0.1, 0.9, 0.9], [0.1, 0.1, 0.3, 0.3]])
    batch.class_scores = torch.tensor([[9.0, 0, 0, 0, 0], [2.0, 0, 0, 0, 9.0], [5.0, 0, 0, 0, 0]])  # background is last
    net = MotifNet(data.in_shape, order=order, **SMALL).eval()
    read = []
    net.object_context.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0].data))
    net(batch)
    vectors = batch.class_scores.softmax(1) @ net.class_vectors.weight
    torch.testing.assert_close(read[0][:, :5], vectors[first])


def test_a_random_order_changes_in_training_alone():
    data = made_scenes((5,))
    net = MotifNet(data.in_shape, order="random", **SMALL)
    read = []
    net.object_context.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0].data[:, :5]))
    batch = batch_of(data, [0])
    torch.manual_seed(0)
    for mode in (True, True, False, False):
        net.train(mode)(batch)
    assert not torch.equal(read[0], read[1])
    assert torch.equal(read[2], read[3])


def test_frequencies_count_relations_as_often_as_recorded_and_nothing_for_overlapping_pairs():
    data = made_scenes((3, 9, 2, 2, 8), seed=5)
    scenes = data.inputs
    counts = torch.zeros(5, 5, 4, dtype=torch.float64)
    counts[..., 3] = 1
    some_overlap = False
    for image in range(len(data)):
        first, last = scenes.object_offsets[image : image + 2].tolist()
        boxes, classes = scenes.boxes[first:last].tolist(), scenes.classes[first:last].tolist()
        pairs = [(s, o) for s in range(last - first) for o in range(last - first) if s != o]
        near = [
            (s, o)
            for s, o in pairs
            if all(min(boxes[s][a + 2], boxes[o][a + 2]) > max(boxes[s][a], boxes[o][a]) for a in (0, 1))
        ]
        some_overlap |= bool(near)
        for s, o in near or pairs:
            counts[classes[s], classes[o], 3] += 1
        begin, end = scenes.relation_offsets[image : image + 2].tolist()
        for s, o, predicate in scenes.relations[begin:end].tolist():
            counts[classes[s], classes[o], predicate] += 1
    assert some_overlap
    expected = (counts / counts.sum(-1, keepdim=True) + 1e-3).log().float().view(25, 4)
    torch.testing.assert_close(overlap_frequencies(scenes), expected)


def found_classes(data, **options):
    """A net that has to find classes, and a batch with a detector's guesses."""
    torch.manual_seed(0)
    net = MotifNet((*data.in_shape, 0, 1, 1), **SMALL, **options)
    net.start_from(data.inputs)
    batch = batch_of(data, [0, 1])
    batch.class_scores, batch.classes_given = torch.randn(len(batch.classes), 5), False
    return net, batch


def test_where_classes_are_found_the_recorded_ones_are_not_looked_at():
    net, batch = found_classes(made_scenes((3, 4)))
    net.eval()
    other = replace(batch, classes=(batch.classes + 1) % 4)
    for mine in (batch, replace(batch, class_scores=None)):
        theirs = replace(other, class_scores=mine.class_scores)
        one, two = net(mine), net(theirs)
        assert torch.equal(one.values, two.values)
        assert torch.equal(one.frequency, two.frequency)
        kind = one.decided.chosen[mine.subjects] * 5 + one.decided.chosen[mine.objects]
        assert torch.equal(one.frequency, net.frequency[kind])
        assert bool((one.decided.chosen < 4).all())


def test_classes_that_are_found_are_learned_beside_the_relations():
    data = made_scenes((3, 4))
    net, batch = found_classes(data)
    batch.classes[0] = 4  # a detected box that is no object
    objective = build("scene-lml", {"k": 2}, in_features=8, num_labels=3)
    entries = data.batch(torch.arange(2))[1]
    features = net(batch)
    alone = objective.loss(replace(features, decided=None), entries)
    classes = torch.nn.functional.cross_entropy(features.decided.scores, batch.classes)
    torch.testing.assert_close(objective.loss(features, entries), alone + classes)
    objective.loss(features, entries).backward()
    assert all(weights.grad is not None for weights in net.parameters())


def test_the_decoder_goes_through_each_image_by_itself():
    torch.manual_seed(0)
    decoder = LabelDecoder(4, classes=3, embedding=2, hidden=5).eval()
    images = [torch.randn(count, 4) for count in (3, 3, 1)]
    packed = torch.cat([torch.stack([image[step] for image in images if len(image) > step]) for step in range(3)])
    scores, chosen = decoder(packed, torch.tensor([3, 2, 2]))
    for number, image in enumerate(images):
        before, h, c = decoder.before.weight[3:], torch.zeros(1, 5), torch.zeros(1, 5)
        for step, own in enumerate(image):
            row = number if step == 0 else 3 + 2 * (step - 1) + number
            h, c = decoder.cell(decoder.cell.project(torch.cat([own[None], before], 1)), h, c)
            torch.testing.assert_close(scores[row], decoder.out(h)[0])
            assert chosen[row] == scores[row, :3].argmax()
            before = decoder.before(chosen[row : row + 1])


def test_in_training_the_decoder_goes_on_from_the_recorded_classes_but_not_from_background():
    decoder = LabelDecoder(4, classes=3, embedding=2, hidden=5)
    inputs, sizes = torch.randn(2, 4), torch.tensor([1, 1])
    assert decoder(inputs, sizes, torch.tensor([2, 1]))[1].tolist() == [2, 1]
    scores, chosen = decoder(inputs, sizes, torch.tensor([3, 1]))
    assert chosen[0] == scores[0, :3].argmax()


def test_boxes_of_one_object_get_different_classes():
    boxes = torch.tensor([[0.0, 0, 10, 10], [1, 0, 10, 10], [50, 50, 60, 60], [0, 0, 9, 9]])
    scores = torch.tensor([[5.0, 3, 1, 9], [6.0, 4, 0, 0], [5.0, 0, 0, 0], [3.0, 2.9, 0, 0]])
    # the second box is surest of class 0; its neighbours must take others, the distant third one may have it too
    assert without_duplicates(scores, boxes, [4]).tolist() == [2, 0, 0, 1]
    net, batch = found_classes(made_scenes((3, 4)), apart=0.3)
    batch.boxes = batch.boxes[:1].expand(7, 4).clone()
    chosen = net.eval()(batch).decided.chosen
    assert len(set(chosen[:3].tolist())) == 3


@pytest.mark.parametrize("name", ["motifnet", "relations-light"])
@pytest.mark.parametrize("counts", [(0, 0), (1, 0)])
def test_a_batch_in_which_a_detector_found_next_to_nothing_gives_every_weight_a_gradient(name, counts):
    data = made_scenes((3, 4))
    options = SMALL if name == "motifnet" else {"embedding": 5, "context": 6, "hidden": 8}
    net = build_backbone(name, in_shape=(*data.in_shape, 0, 1, 1), **options)
    objective = build("scene-lml", {"k": 2}, in_features=8, num_labels=3)
    batch = batch_of(made_scenes(counts), [0, 1])
    batch.class_scores, batch.classes_given = torch.zeros(len(batch.classes), 5), False
    loss = objective.loss(net(batch), torch.zeros(0, 2, dtype=torch.int64))
    loss.backward()
    assert bool(loss.isfinite())
    weights = [*net.named_parameters(), *objective.named_parameters()]
    assert [name for name, weight in weights if weight.grad is None] == []


@pytest.mark.parametrize("name", ["scene-softmax", "scene-lml"])
def test_pairs_that_do_not_overlap_can_come_last(name):
    net, batch = found_classes(made_scenes((3, 4)), overlapping=True)
    batch.boxes[1] = batch.boxes[0]  # the only two that overlap
    batch.boxes[2:, 0::2] += 2 * torch.arange(1, 6)[:, None]
    objective = build(name, in_features=8, num_labels=3)
    scores = objective(net.eval()(batch))[:, :3]
    assert scores[[0, 2]].min() > scores[[1, *range(3, 18)]].max()
    assert net.train()(batch).last is None


def test_sampled_pairs_are_all_related_ones_and_some_others():
    torch.manual_seed(0)
    data = made_scenes((5, 2, 4, 0), relations=1)
    batch, entries = data.batch(torch.arange(4))
    rows, kept, counts = sample_pairs(entries, batch.pair_counts, others=0.5)
    related = entries[:, 0].unique()
    assert set(related.tolist()) <= set(rows.tolist())
    assert torch.equal(rows[kept[:, 0]], entries[:, 0])
    assert torch.equal(kept[:, 1], entries[:, 1])
    offsets = [0, 20, 22, 34, 34]
    for image in range(4):
        own = ((related >= offsets[image]) & (related < offsets[image + 1])).sum().item()
        assert counts[image] == min(-(-3 * own // 2), offsets[image + 1] - offsets[image])
    again = sample_pairs(entries, batch.pair_counts, others=0.5).rows
    assert not torch.equal(rows, again)


@pytest.mark.parametrize("name", ["scene-softmax", "scene-lml"])
def test_a_loss_of_sampled_pairs_is_the_loss_of_these_alone(name):
    data = made_scenes((4, 3))
    batch, entries = data.batch(torch.arange(2))
    features = MotifNet(data.in_shape, **SMALL).eval()(batch)
    few, every = (build(name, {"others": o}, in_features=8, num_labels=3) for o in (0.0, 1000.0))
    every_pair = build(name, {}, in_features=8, num_labels=3)
    entries = entries[entries[:, 0].diff(prepend=torch.tensor([-1])) > 0]  # one of each pair: nothing is drawn
    whole = every_pair.loss(features, entries)
    torch.testing.assert_close(every.loss(features, entries), whole)
    assert few.loss(features, entries) < whole


@pytest.mark.parametrize("classes_are_found", [0, 1])
def test_half_precision_where_it_will_do_gives_about_the_same(classes_are_found):
    data = made_scenes((3, 5, 2))
    torch.manual_seed(0)
    net = MotifNet((*data.in_shape, 0, 0, classes_are_found), **SMALL).eval()
    batch, entries = data.batch(torch.arange(3))
    batch.classes_given = not classes_are_found
    objective = build("scene-lml", {"k": 2}, in_features=8, num_labels=3)
    with torch.autocast("cpu", torch.bfloat16):
        features = net(batch)
        objective.loss(features, entries).backward()
    torch.testing.assert_close(features.values.float(), net(batch).values, atol=0.3, rtol=0.1)


def test_an_image_is_scored_the_same_in_any_company():
    data = made_scenes(words=5)
    torch.manual_seed(0)
    net = MotifNet(data.in_shape, **SMALL).eval()
    together = net(batch_of(data, [4, 1])).values
    torch.testing.assert_close(together[6:], net(batch_of(data, [1])).values)


@pytest.mark.parametrize("counts", [(0, 0), (1, 0), (1, 1), (2, 1)])
def test_images_of_few_objects_can_be_trained_on(counts):
    data = made_scenes(counts)
    net = MotifNet(data.in_shape, **SMALL)
    features = net(batch_of(data, [0, 1]))
    assert features.values.shape == (sum(count * (count - 1) for count in counts), 8)
    assert features.frequency.shape == (len(features.values), 4)


@pytest.mark.parametrize("layers", [{}, {"object_layers": 0, "edge_layers": 0}])
def test_it_learns_what_the_boxes_say_beyond_the_frequencies(layers):
    from shortlist.metrics.functional import scene_recall_at_k

    data = learnable_scenes(30)
    torch.manual_seed(0)
    net = build_backbone("motifnet", in_shape=data.in_shape, **SMALL | {"hidden": 16, "pooling": 32}, **layers)
    net.start_from(data.inputs)
    objective = build("scene-lml", {"k": 4}, in_features=32, num_labels=3)
    optimizer = torch.optim.AdamW([*net.parameters(), *objective.parameters()], lr=0.01)
    batch, entries = data.batch(torch.arange(len(data)))

    def recall():
        with torch.no_grad():
            scores = objective.eval()(net.eval()(batch))
        return float(scene_recall_at_k(scores, entries, 2, offsets=data.answers.offsets))

    before = recall()
    for _ in range(12):
        optimizer.zero_grad()
        objective.train().loss(net.train()(batch), entries).backward()
        optimizer.step()
    assert recall() > before + 0.05


def test_word_vectors_are_where_both_tables_of_classes_start():
    data = made_scenes(words=7)
    net = MotifNet(data.in_shape, **SMALL)
    net.start_from(data.inputs)
    for table in (net.class_vectors, net.edge_vectors):
        assert torch.equal(table.weight[:4], data.inputs.word_vectors)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": 0}, "hidden must be a whole number of at least 1"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1"),
        ({"order": "left"}, "order: input should be 'left-right', 'confidence', 'size' or 'random', got 'left'"),
        ({"regions": True}, "must be 512 x 7 x 7 numbers, got 0 and 0"),
    ],
)
def test_options_out_of_range_are_errors(options, message):
    with pytest.raises(ValueError, match=message):
        build_backbone("motifnet", in_shape=(4, 3, 0, 0), **options)


def test_inputs_that_do_not_fit_are_errors():
    with pytest.raises(ValueError, match="takes scenes"):
        build_backbone("motifnet", in_shape=(128,))
    with pytest.raises(ValueError, match="set object_layers to 1 or more"):
        build_backbone("motifnet", in_shape=(4, 3, 0, 0, 0, 1, 1), object_layers=0)
    data = made_scenes()
    with pytest.raises(ValueError, match="5 features per union box, the images have none"):
        MotifNet((4, 3, 0, 0, 5, 0, 0), **SMALL)(batch_of(data, [0]))


def test_what_was_seen_in_union_boxes_counts():
    data = made_scenes((3,), features=6)
    for regions, size in ((False, 5), (True, 4 * 49)):
        features = size if regions else 6
        torch.manual_seed(0)
        net = MotifNet((4, 3, 0, features, size, 0, 0), regions=regions, **SMALL).eval()
        batch = batch_of(data, [0])
        batch.features, batch.union_features = torch.randn(3, features), torch.randn(6, size)
        one = net(batch).values
        batch.union_features = batch.union_features.clone()
        batch.union_features[2] += 1
        changed = (net(batch).values != one).any(1)
        assert changed.tolist() == [False, False, True, False, False, False]


def test_old_configs_say_relations_and_get_the_light_scorer():
    old, new = (build_backbone(name, in_shape=(4, 3, 0, 0)) for name in ("relations", "relations-light"))
    assert type(old) is type(new)
    assert old.state_dict().keys() == new.state_dict().keys()
