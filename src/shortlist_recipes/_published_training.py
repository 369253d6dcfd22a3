"""How the papers train on CIFAR-100 and ImageNet, and how we do from pixels: parts of configs of several recipes."""

from pathlib import Path
from typing import Any

from shortlist_recipes.known_data import cifar100_images, imagenet, some_cifar100_images


def sgd(lr: float, weight_decay: float = 1e-4) -> dict[str, Any]:
    """SGD with a Nesterov momentum; weight decay is for all weights, as in the papers' programs."""
    return {
        "name": "sgd-nesterov",
        "lr": lr,
        "momentum": 0.9,
        "weight_decay": weight_decay,
        "decay_all": True,
    }


def densenet_on_cifar100(data: Path, *, growth: int = 40, **more: Any) -> dict[str, Any]:
    """DenseNet-40 on the images with the hyper-parameters of Huang et al. 2017; ``more`` is of the data."""
    return {
        "data": cifar100_images(data, **more),
        "augment": {"padding": 4, "flip": True},
        "backbone": {"name": "densenet", "depth": 40, "growth": growth, "bottleneck": True, "reduction": 0.5},
        "optimizer": sgd(0.1),
        "schedule": {"name": "step", "at": [150, 225]},
        "epochs": 300,
        "batch_size": 64,
    }


def small_network_on_pixels(data: Path, **more: Any) -> dict[str, Any]:
    """At pixels scale: the same schedule in small, for a network that can learn its training labels by heart in 24
    epochs, without augmentation."""
    return {
        "data": some_cifar100_images(data, **more),
        "backbone": {"name": "convnet", "widths": [64, 128, 256]},
        "optimizer": sgd(0.1),
        "schedule": {"name": "step", "at": [12, 18]},
        "epochs": 24,
        "batch_size": 64,
        "accelerator": "cpu",
    }


def resnet18_on_imagenet(data: Path, *, smooth: bool, **more: Any) -> dict[str, Any]:
    """ResNet-18 as in section 5.2 of Berrada et al. 2018, with the rate and weight decay of the smooth loss at tau 0.1
    or of cross-entropy."""
    return {
        "data": imagenet(data, **more),
        "augment": {"resize": 256, "flip": True},
        "backbone": {"name": "resnet18"},
        "optimizer": sgd(1.0, 2.5e-5) if smooth else sgd(0.1),
        "schedule": {"name": "step", "at": [30, 60, 90]},
        "epochs": 120,
        "batch_size": 256,
    }
