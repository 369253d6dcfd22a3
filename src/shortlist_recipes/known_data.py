"""The data sets that several recipes use, as the data part of a config."""

from pathlib import Path
from typing import Any

CIFAR100_FEATURES_NEEDS = {
    "cifar100_features/train_feats_fp16_256.npy": "256 features of each CIFAR-100 training image",
    "cifar100_features/test_feats_fp16_256.npy": "the same of the test images",
    "cifar100/labels.npz": "the labels: train_fine, test_fine, fine_names, fine_to_coarse, coarse_names",
}
CIFAR100_NEEDS = {
    "cifar-100-python": "the folder of cifar-100-python.tar.gz (https://www.cs.toronto.edu/~kriz/cifar.html)"
}
SOME_CIFAR100_NEEDS = {
    "cifar100/images": "10,000 training and 2,000 test images, stacked as webp",
    "cifar100/labels.npz": "the labels: train_fine, test_fine, fine_names, fine_to_coarse, coarse_names",
}

IMAGENET_NEEDS = {
    "imagenet/train": "ILSVRC 2012 training images, one folder per class",
    "imagenet/val": "ILSVRC 2012 validation images, one folder per class",
}
RESNET18_NEEDS = {"resnet18.pth": "ResNet-18 trained on ImageNet, as torchvision distributes it (or so named)"}
RESNET50_NEEDS = {"resnet50.pth": "ResNet-50 trained on ImageNet, as torchvision distributes it (or so named)"}
COCO_NEEDS = {
    "mscoco/annotations/instances_train2014.json": "MSCOCO 2014 annotations (https://cocodataset.org)",
    "mscoco/annotations/instances_val2014.json": "the same of the validation images",
    "mscoco/train2014": "MSCOCO 2014 training images",
    "mscoco/val2014": "MSCOCO 2014 validation images",
}
COCO_WORDS_NEEDS = {
    "mscoco/annotations/captions_train2014.json": "MSCOCO 2014 captions (https://cocodataset.org)",
    "mscoco/annotations/captions_val2014.json": "the same of the validation images",
    "mscoco/train2014": "MSCOCO 2014 training images",
    "mscoco/val2014": "MSCOCO 2014 validation images",
}
NUS_WIDE_NEEDS = {"nus-wide": "NUS-WIDE: ConceptsList, ImageList, Groundtruth and the images in Flickr"}


def cifar100_features(data: Path, *, validation: int = 5000, **more: Any) -> dict[str, Any]:
    """Frozen features of all 60,000 images, the validation part cut from the training data.

    >>> cifar100_features(Path("data"))["test"]["labels_key"]
    'test_fine'
    """
    folder = data / "cifar100_features"
    names = {"vocabulary_key": "fine_names", "groups_key": "fine_to_coarse", "group_names_key": "coarse_names"}
    common = {"reader": "features", "labels": str(data / "cifar100" / "labels.npz"), **names}
    return {
        "train": {**common, "path": str(folder / "train_feats_fp16_256.npy"), "labels_key": "train_fine"},
        "test": {**common, "path": str(folder / "test_feats_fp16_256.npy"), "labels_key": "test_fine"},
        "validation": validation,
        "calibration": None,
        **more,
    }


def cifar100_images(data: Path, *, validation: int = 5000, **more: Any) -> dict[str, Any]:
    """The images themselves, from the original files."""
    folder = str(data / "cifar-100-python")
    return {
        "train": {"reader": "cifar", "path": folder, "part": "train"},
        "test": {"reader": "cifar", "path": folder, "part": "test"},
        "validation": validation,
        "calibration": None,
        **more,
    }


def some_cifar100_images(data: Path, *, validation: int = 1000, **more: Any) -> dict[str, Any]:
    """The first 10,000 training and 2,000 test images, from the stacks in the data folder."""
    folder = data / "cifar100"
    common = {"reader": "stacked-images", "path": str(folder / "images"), "labels": str(folder / "labels.npz")}
    common |= {"vocabulary_key": "fine_names", "groups_key": "fine_to_coarse", "group_names_key": "coarse_names"}
    return {
        "train": {**common, "pattern": "train_*.webp", "labels_key": "train_fine"},
        "test": {**common, "pattern": "test_*.webp", "labels_key": "test_fine"},
        "validation": validation,
        "calibration": None,
        **more,
    }


def imagenet(data: Path, **more: Any) -> dict[str, Any]:
    """ImageNet as Berrada et al. use it: 50,000 training images held out, the official validation images to test on."""

    def images(part: str) -> dict[str, Any]:
        return {"reader": "image-folder", "path": str(data / "imagenet" / part), "size": 224, "crop": True}

    return {"train": images("train"), "test": images("val"), "validation": 50_000, "calibration": None, **more}


def voc2012_features(data: Path, **more: Any) -> dict[str, Any]:
    """512 features of each image, the official training part to train on and the official validation part to test on;
    labels of which there are only difficult objects are unknown."""
    folder = data / "voc2012_multilabel"

    def part(name: str) -> dict[str, Any]:
        keys = {"labels_key": f"{name}_labels", "unknown_key": f"{name}_difficult", "vocabulary_key": "class_names"}
        path, labels = str(folder / f"{name}_feats_fp16_512.npy"), str(folder / "labels.npz")
        return {"reader": "features", "path": path, "labels": labels, **keys}

    return {"train": part("train"), "test": part("val"), "validation": 0.15, "calibration": None, **more}


def mulan(data: Path, name: str, **more: Any) -> dict[str, Any]:
    """A data set of Mulan's with its usual split."""

    def part(which: str) -> dict[str, Any]:
        keys = {"inputs_key": f"X_{which}", "labels_key": f"Y_{which}", "vocabulary_key": "label_names"}
        return {"reader": "features", "path": str(data / "mulan_multilabel" / f"{name}.npz"), **keys}

    return {"train": part("train"), "test": part("test"), "validation": 0.15, "calibration": None, **more}


def coco(data: Path, **more: Any) -> dict[str, Any]:
    """MSCOCO 2014: the official validation images to test on."""

    def part(name: str) -> dict[str, Any]:
        path = str(data / "mscoco" / "annotations" / f"instances_{name}2014.json")
        images = str(data / "mscoco" / f"{name}2014")
        return {"reader": "coco", "path": path, "images": images, "size": 224, "crop": True}

    return {"train": part("train"), "test": part("val"), "validation": 0.1, "calibration": None, **more}


def coco_words(data: Path, **more: Any) -> dict[str, Any]:
    """MSCOCO 2014 with the 1,000 most frequent words of the training captions as labels."""
    captions = {name: str(data / "mscoco" / "annotations" / f"captions_{name}2014.json") for name in ("train", "val")}

    def part(name: str) -> dict[str, Any]:
        images = str(data / "mscoco" / f"{name}2014")
        return {"reader": "coco-words", "path": captions[name], "images": images, "vocabulary": captions["train"]}

    return {"train": part("train"), "test": part("val"), "validation": 0.1, "calibration": None, **more}


def nus_wide(data: Path, **more: Any) -> dict[str, Any]:
    """NUS-WIDE without the images that have no label."""

    def part(name: str) -> dict[str, Any]:
        cut = {"size": 224, "crop": True}
        return {"reader": "nus-wide", "path": str(data / "nus-wide"), "part": name, "labelled_only": True, **cut}

    return {"train": part("train"), "test": part("test"), "validation": 0.1, "calibration": None, **more}


def embedded(size: int = 600, *, form: str = "features", labels: str = "one", **more: Any) -> dict[str, Any]:
    """The embedded data, for smoke scale."""

    def numbers(part: str, count: int) -> dict[str, Any]:
        return {"reader": "ambiguous-numbers", "part": part, "size": count, "form": form, "labels": labels}

    return {
        "train": numbers("train", size),
        "validation": numbers("val", size // 3),
        "test": numbers("test", size // 3),
        "calibration": None,
        **more,
    }
