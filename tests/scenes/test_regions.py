"""RoI align and union masks against references written one number at a time."""

import math

import pytest
import torch

from shortlist.models import build_backbone
from shortlist.scenes.regions import region_features, roi_align
from shortlist.scenes.union_boxes import union_masks


def interpolated(plane, y, x):
    """Between the four nearest pixels; beyond the outermost ones as they are."""
    height, width = len(plane), len(plane[0])
    y, x = min(max(y, 0.0), height - 1.0), min(max(x, 0.0), width - 1.0)
    top, left = math.floor(y), math.floor(x)
    below, right = min(top + 1, height - 1), min(left + 1, width - 1)
    upper = plane[top][left] * (1 - x + left) + plane[top][right] * (x - left)
    lower = plane[below][left] * (1 - x + left) + plane[below][right] * (x - left)
    return upper * (1 - y + top) + lower * (y - top)


def slow_align(maps, box, side, samples):
    xmin, ymin, xmax, ymax = box
    result = []
    for plane in maps.tolist():
        height, width = len(plane), len(plane[0])
        cells = []
        for row in range(side):
            cells.append([])
            for column in range(side):
                total = 0.0
                for i in range(samples):
                    for j in range(samples):
                        y = ymin + (ymax - ymin) * (row + (i + 0.5) / samples) / side
                        x = xmin + (xmax - xmin) * (column + (j + 0.5) / samples) / side
                        total += interpolated(plane, y * height - 0.5, x * width - 0.5)
                cells[-1].append(total / samples**2)
        result.append(cells)
    return torch.tensor(result, dtype=torch.float64)


def random_boxes(number, seed=0):
    random = torch.Generator().manual_seed(seed)
    corner = torch.rand(number, 2, generator=random, dtype=torch.float64) * 0.6
    return torch.cat([corner, corner + 0.02 + 0.38 * torch.rand(number, 2, generator=random, dtype=torch.float64)], 1)


@pytest.mark.parametrize(("side", "samples"), [(3, 2), (7, 1), (1, 3)])
def test_roi_align_is_the_mean_of_interpolated_points(side, samples):
    torch.manual_seed(0)
    maps = torch.randn(3, 2, 5, 9, dtype=torch.float64)
    boxes = torch.cat([random_boxes(3), torch.tensor([[0.0, 0.0, 1.0, 1.0]], dtype=torch.float64)])
    found = roi_align(maps, boxes, [1, 0, 3], side=side, samples=samples)
    for row, image in enumerate([0, 2, 2, 2]):
        torch.testing.assert_close(found[row], slow_align(maps[image], boxes[row].tolist(), side, samples))


def test_derivatives_of_roi_align_are_right():
    torch.manual_seed(0)
    maps = torch.randn(1, 1, 4, 5, dtype=torch.float64, requires_grad=True)
    boxes = random_boxes(2)
    assert torch.autograd.gradcheck(lambda maps: roi_align(maps, boxes, [2], side=2), maps)


def test_boxes_that_no_image_has_are_an_error():
    with pytest.raises(ValueError, match="2 counts and 3 boxes of which the counts name 2"):
        roi_align(torch.zeros(2, 1, 4, 4), torch.zeros(3, 4), [1, 1])


@pytest.mark.parametrize("name", ["convnet", "densenet", "resnet18", "resnet50", "efficientnet-lite0"])
def test_every_backbone_for_images_has_maps_whose_mean_are_its_features(name):
    options = {"densenet": {"depth": 10}, "efficientnet-lite0": {"pretrained": False}}.get(name, {})
    torch.manual_seed(0)
    network = build_backbone(name, in_shape=(3, 32, 32), **options).eval()
    images = torch.rand(1, 3, 32, 32)
    with torch.no_grad():
        maps = network.maps(images)
        assert maps.shape[:2] == (1, network.out_features)
        torch.testing.assert_close(maps.mean((2, 3)), network(images))


def test_regions_are_those_of_their_own_image_and_unions_of_their_own_pair():
    torch.manual_seed(0)
    network = build_backbone("convnet", in_shape=(3, 32, 32), widths=(4, 6)).eval()
    images, boxes = torch.rand(3, 3, 32, 32), random_boxes(5).float()
    subjects, objects = torch.tensor([0, 1, 2, 4]), torch.tensor([1, 0, 3, 2])  # the second image has no objects
    with torch.no_grad():
        found = region_features(network, images, boxes, [2, 0, 3], subjects, objects, pooled=False)
        maps = network.maps(images)
    assert found.boxes.shape == (5, 6, 7, 7)
    torch.testing.assert_close(found.boxes[3], roi_align(maps[2:], boxes[3:4], [1])[0])
    around = torch.cat([torch.minimum(boxes[2, :2], boxes[4, :2]), torch.maximum(boxes[2, 2:], boxes[4, 2:])])
    torch.testing.assert_close(found.unions[3], roi_align(maps[2:], around[None], [1])[0])
    means = region_features(network, images, boxes, [2, 0, 3], subjects, objects)
    torch.testing.assert_close(means.unions, found.unions.mean((2, 3)))


def test_a_network_without_maps_is_an_error():
    pair = torch.tensor([0]), torch.tensor([0])
    network = build_backbone("mlp", in_shape=(4,))
    with pytest.raises(ValueError, match="MLP has no feature maps: use convnet"):
        region_features(network, torch.zeros(1, 4), torch.zeros(1, 4), [1], *pair)


def slow_mask(box, around, side):
    """Cell by cell, as the published description has it."""
    rows = []
    for row in range(side):
        rows.append([])
        for column in range(side):
            value = 1.0
            for axis, cell in ((0, column), (1, row)):
                unit = (around[axis + 2] - around[axis]) / side
                begin, end = ((box[at] - around[axis]) / unit for at in (axis, axis + 2))
                value *= min(max(cell + 1 - begin, 0), 1) * min(max(end - cell, 0), 1)
            rows[-1].append(value - 0.5)
    return torch.tensor(rows, dtype=torch.float64)


def test_union_masks_show_where_both_objects_are():
    boxes = random_boxes(4, seed=3)
    subjects, objects = torch.tensor([0, 1, 3]), torch.tensor([1, 2, 0])
    found = union_masks(boxes, subjects, objects)
    assert found.shape == (3, 2, 27, 27)
    for row, pair in enumerate([(0, 1), (1, 2), (3, 0)]):
        both = boxes[list(pair)]
        around = [*both[:, :2].amin(0).tolist(), *both[:, 2:].amax(0).tolist()]
        for role in (0, 1):
            torch.testing.assert_close(found[row, role], slow_mask(both[role].tolist(), around, 27))
