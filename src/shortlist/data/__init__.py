"""Data: readers of real formats, corruptions of labels, splits, augmentation, and the embedded demo data."""

from shortlist.data._problems import DataError, Problem
from shortlist.data.ambiguous_numbers import ambiguous_numbers
from shortlist.data.dataset import Dataset
from shortlist.data.features import read_features
from shortlist.data.images import Images
from shortlist.data.readers import READERS, problems, read

__all__ = ["READERS", "DataError", "Dataset", "Images", "Problem", "ambiguous_numbers", "problems", "read",
           "read_features"]
