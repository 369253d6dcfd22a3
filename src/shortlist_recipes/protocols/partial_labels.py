"""How Huynh and Elhamifar 2020 train on partial labels."""

from shortlist_recipes.protocol import Field, Protocol

_PROGRAM, _SUPPLEMENT = "hbdat/cvpr20_IMCL", "supplement of Huynh and Elhamifar 2020"
_CUB, _COCO = f"{_PROGRAM}, CUB_experiments", f"{_PROGRAM}, MSCOCO_experiments"
_OPEN_IMAGES = f"{_PROGRAM}, OpenImages_experiments"
_OURS = ("cpu", "paper")
_LINEAR = "a linear head on frozen features"
_SEARCH = "chosen by one search on validation data, for what is named above"

PROTOCOLS = (
    Protocol(
        "CUB, MS-COCO and Open Images",
        _CUB,
        (
            Field(
                "data",
                "CUB with missing attributes; MS-COCO with 1,000 words of its captions; Open Images",
                {"cpu": "VOC2012, corel5k and bibtex with missing labels"},
                {"data.calibration": None},
                source=f"{_SUPPLEMENT}, sections 1 to 3",
            ),
            Field(
                "network on CUB",
                "ResNet-101 with fixed batch norm statistics",
                {"cpu": _LINEAR},
                {"backbone.name": "resnet101", "backbone.fixed_norms": True},
                {"data": "cub"},
            ),
            Field(
                "network on MS-COCO",
                "VGG-16, of which only the hidden layers train",
                {"cpu": _LINEAR},
                {"backbone.name": "vgg16", "backbone.fixed_convolutions": True},
                {"data": "mscoco"},
                source=_COCO,
            ),
            Field(
                "network on Open Images",
                "ResNet-101 trained on Open Images",
                {"cpu": "not run", "paper": "ResNet-101 trained on ImageNet"},
                {"backbone.name": "resnet101"},
                {"data": "open-images"},
                source=_OPEN_IMAGES,
            ),
            Field(
                "optimizer",
                "RMSprop: momentum 0.9, decay 0.9, epsilon 1 within the root",
                {"cpu": f"AdamW or SGD, {_SEARCH}", "paper": "the same, epsilon beside the root"},
                {"optimizer.name": "rmsprop", "optimizer.momentum": 0.9, "optimizer.decay": 0.9, "optimizer.eps": 1.0},
            ),
            Field(
                "weight decay",
                "CUB: 1e-4 times the squared weights of the last layer (2e-4 as a decay); MS-COCO: none",
                {"cpu": _SEARCH, "paper": "1e-4, of the backbone, too"},
                source=f"{_CUB}; {_COCO}",
            ),
            Field("learning rate", "0.01", {"cpu": _SEARCH}, {"optimizer.lr": 0.01}),
            Field(
                "schedule",
                "times 0.8 where a moving average of the validation mAP, every 10 steps, falls; MS-COCO: times 0.1",
                {"cpu": "cosine", "paper": "times 0.8 where the mAP of two epochs was no better"},
                source=f"{_CUB}; {_COCO}",
            ),
            Field(
                "steps on CUB",
                "2,000 of logistic regression, and 1,000 of IMCL from its best on",
                {"cpu": "20 epochs", "paper": "12 epochs: 2,000 steps, of which IMCL has the second half"},
            ),
            Field(
                "selection",
                "the best mAP on validation images; on MS-COCO on the test images",
                {"cpu": "the best mAP on validation data", "paper": "the best mAP on validation images, on all"},
                source=f"{_CUB}; {_PROGRAM}, global_setting_MSCOCO.py",
            ),
            Field(
                "two trainings",
                "logistic regression first, whose weights IMCL starts from",
                {"cpu": "one training, the first tenth of it logistic", "paper": "the two halves of one training"},
            ),
            Field(
                "batch size",
                "32; on MS-COCO 1",
                {"cpu": "128", "paper": "32 on all, for IMCL in four parts of 8"},
                source=f"{_CUB}; {_COCO}",
            ),
            Field(
                "dictionary",
                "10 images of each label, on CUB all images; encoded anew in every step",
                {
                    "cpu": "10 or 50 examples of each label",
                    "paper": "the same; the features that the search looks at are of every 50 to 250 steps",
                },
                source=f"{_SUPPLEMENT}, section 4.2; {_PROGRAM}",
            ),
            Field(
                "search for similar images",
                "squared correlations of any sign, least squares clipped at 0 (the program does not clip)",
                {scale: "no correlation below 0, nonnegative least squares, vectors of length 1" for scale in _OURS},
                source=f"{_SUPPLEMENT}, equations 5 and 10; {_PROGRAM}, colaborative_loss.py",
            ),
            Field(
                "combination of their labels",
                "the sum; the text has tanh around it (equation 3)",
                {},
                {"objective.combine": "linear"},
                source=f"{_PROGRAM}, colaborative_loss.py",
            ),
            Field(
                "side labels, a = 10",
                "10 for an image's class, -1/2 for every other",
                {"cpu": "none", "paper": "10 for an image's class, 0 for every other"},
                where={"data": "cub"},
            ),
            Field(
                "label graph",
                "words that occur together in Wikipedia; on CUB the identity",
                {"cpu": "labels that occur together in the training data"}
                | {"paper": "word vectors; on CUB the identity"},
                source=f"{_PROGRAM}, generate_label_graph",
            ),
            Field(
                "groups of labels",
                "10",
                {"paper": "10, of every data set", "cpu": "10, of every data set"},
                source=f"{_SUPPLEMENT}, figure 1",
            ),
            Field("seeds", "not said", {"cpu": "3", "paper": "1"}, source=_SUPPLEMENT),
        ),
        {"objective": "imcl"},
    ),
)
