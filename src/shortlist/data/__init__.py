"""Data: readers of real formats, corruptions of labels, splits, augmentation, and the embedded demo data."""

from shortlist.data._problems import DataError, Problem
from shortlist.data.ambiguous_numbers import ambiguous_numbers
from shortlist.data.augment import augment
from shortlist.data.corruptions import (
    CORRUPTIONS,
    corrupt,
    long_tailed,
    missing_labels,
    noise_within_groups,
    single_positive,
    symmetric_noise,
)
from shortlist.data.dataset import Dataset
from shortlist.data.features import read_features
from shortlist.data.features_cache import cached_features
from shortlist.data.images import Images
from shortlist.data.readers import READERS, problems, read
from shortlist.data.splits import split

__all__ = [
    "CORRUPTIONS",
    "READERS",
    "DataError",
    "Dataset",
    "Images",
    "Problem",
    "ambiguous_numbers",
    "augment",
    "cached_features",
    "corrupt",
    "long_tailed",
    "missing_labels",
    "noise_within_groups",
    "problems",
    "read",
    "read_features",
    "single_positive",
    "split",
    "symmetric_noise",
]
