"""How Garcin et al. 2023 train for sets of K labels on average."""

from shortlist_recipes.protocol import Field, Protocol

_CIFAR, _PLANTS = "Garcin et al. 2023, section 6.2", "Garcin et al. 2023, section 6.3"
_PROGRAM = "garcinc/noised-topk, experiments (the program that section 6.2 follows)"
_SGD = {"optimizer.name": "sgd-nesterov", "optimizer.momentum": 0.9}
_SGD |= {"optimizer.weight_decay": 1e-4, "optimizer.decay_all": True}
_FEATURES = "one hidden layer of 256 on frozen features"
_TWO_WAYS = "one rate: SGD, rate 0.1, batches of 64; tuned: AdamW, rates chosen for each loss on validation data"

PROTOCOLS = (
    Protocol(
        "CIFAR-100",
        _CIFAR,
        (
            Field(
                "network",
                "DenseNet 40-40 with bottlenecks and reduction 0.5",
                {"cpu": _FEATURES, "pixels": "three 3x3 convolutions of stride 2, widths 64, 128 and 256"},
                {"backbone.name": "densenet", "backbone.depth": 40, "backbone.growth": 40}
                | {"backbone.bottleneck": True, "backbone.reduction": 0.5},
                source=f"{_CIFAR}; {_PROGRAM}, models/densenet.py",
            ),
            Field(
                "training and validation images",
                "45,000 and 5,000, both balanced",
                {"cpu": "20,000 and 5,000", "pixels": "9,000 and 1,000"},
                {"data.validation": 5000, "data.stratify": True},
            ),
            Field(
                "augmentation",
                "flips; crops of 32 pixels of the image padded by 4",
                {"cpu": "none", "pixels": "none"},
                {"augment.padding": 4, "augment.flip": True},
                source=f"{_PROGRAM}, dataloader/get_data.py",
            ),
            Field("optimizer", "SGD, Nesterov momentum 0.9, weight decay 1e-4", {"cpu": _TWO_WAYS}, _SGD),
            Field(
                "learning rate",
                "0.1 for every loss, divided by ten at epochs 150 and 225",
                {"cpu": "cosine", "pixels": "0.1, divided by ten at epochs 12 and 18"},
                {"optimizer.lr": 0.1, "schedule.at": (150, 225)},
            ),
            Field("epochs", "300", {"cpu": "10", "pixels": "24"}, {"epochs": 300}),
            Field("batch size", "64", {"cpu": "64 with one rate, 128 tuned"}, {"batch_size": 64}),
            Field(
                "alpha of average-k",
                "0.3, by grid search on validation data",
                {"cpu": "chosen on validation data of each run, for each way and K"},
                {"objective.alpha": 0.3},
                {"objective": "average-k"},
                source="Garcin et al. 2023, table 3",
            ),
            Field(
                "beta of expected-positive",
                "0.01",
                {"cpu": "0.01 with one rate, 0.1 tuned", "pixels": "not run"},
                {"objective.beta": 0.01},
                {"objective": "expected-positive"},
                source="Garcin et al. 2023, table 3",
            ),
            Field(
                "epsilon of noised-topk",
                "0.2",
                {"cpu": "0.2 with one rate, 1 tuned", "pixels": "not run"},
                {"objective.epsilon": 0.2},
                {"objective": "noised-topk"},
                source="Garcin et al. 2023, table 3",
            ),
            Field(
                "role",
                "regulariser of weight 0, the table's rate as the model's",
                {"cpu": "so with one rate; weight 1 and ten times the rate tuned", "pixels": "not run"},
                {"objective.beta": 0.0, "objective.lr_multiple": 1.0},
                {"objective": "role"},
                source="Garcin et al. 2023, table 3",
            ),
            Field(
                "selection",
                "the epoch with the best average-K accuracy on validation data",
                {},
                {"stop.metric": "average-k-accuracy@5"},
                source="Garcin et al. 2023, section 6.1",
            ),
            Field(
                "seeds", "several", {"paper": "3", "cpu": "3", "pixels": "2"}, source="Garcin et al. 2023, section 6.1"
            ),
        ),
        {"part": "losses", "data": "balanced"},
    ),
    Protocol(
        "Pl@ntNet-300K",
        _PLANTS,
        (
            Field(
                "data",
                "Pl@ntNet-300K, its own parts",
                {"cpu": "CIFAR-100 features made long-tailed, 450 images of the first class, 4 of the last"},
                {"data.train.reader": "plantnet", "data.validation.part": "val", "data.test.part": "test"},
            ),
            Field("network", "ResNet-18 trained on ImageNet", {"cpu": _FEATURES}, {"backbone.name": "resnet18"}),
            Field(
                "augmentation",
                "smaller side resized to 256 pixels, random crops of 224",
                {"cpu": "none"},
                {"augment.resize": 256, "augment.flip": False, "data.train.size": 224, "data.train.crop": True},
                source=f"{_PROGRAM}, dataloader/get_data.py; the text does not say",
            ),
            Field("optimizer", "SGD, Nesterov momentum 0.9, weight decay 1e-4", {"cpu": _TWO_WAYS}, _SGD),
            Field(
                "learning rate",
                "0.002 for every loss, divided by ten at epoch 25",
                {"cpu": "cosine"},
                {"optimizer.lr": 0.002, "schedule.at": (25,)},
            ),
            Field("epochs", "30", {"cpu": "12"}, {"epochs": 30}),
            Field("batch size", "32", {"cpu": "64 with one rate, 128 tuned"}, {"batch_size": 32}),
            Field(
                "alpha of average-k",
                "5, by grid search on validation data",
                {"cpu": "chosen on validation data of each run, for each way and K"},
                {"objective.alpha": 5.0},
                {"objective": "average-k"},
                source="Garcin et al. 2023, table 4",
            ),
            Field(
                "beta of expected-positive",
                "0.001",
                {"cpu": "0.001 with one rate, 0.01 tuned"},
                {"objective.beta": 0.001},
                {"objective": "expected-positive"},
                source="Garcin et al. 2023, table 4",
            ),
            Field(
                "epsilon of noised-topk",
                "1",
                {"cpu": "1 with one rate, 3 tuned"},
                {"objective.epsilon": 1.0},
                {"objective": "noised-topk"},
                source="Garcin et al. 2023, table 4",
            ),
            Field(
                "role",
                "not run: its table is too large",
                {"cpu": "run"},
                {"data.train.reader": "plantnet"},
                source="Garcin et al. 2023, table 2 and section 4.6",
            ),
            Field("seeds", "several", {"paper": "3", "cpu": "3"}, source="Garcin et al. 2023, section 6.1"),
        ),
        {"part": "losses", "data": "long-tailed"},
    ),
)
