"""Data: readers of real formats, corruptions of labels, splits, augmentation, and the embedded demo data."""

from shortlist.data.ambiguous_numbers import ambiguous_numbers
from shortlist.data.augment import augment, enlarged
from shortlist.data.corruptions import (
    CORRUPTIONS,
    corrupt,
    long_tailed,
    missing_labels,
    noise_within_groups,
    relabelled,
    single_positive,
    symmetric_noise,
)
from shortlist.data.dataset import Dataset
from shortlist.data.draws import Draws
from shortlist.data.duplicates import Shared, shared_examples
from shortlist.data.encoder import Encoder, TextEncoder
from shortlist.data.images import Images
from shortlist.data.mapped_rows import MappedRows
from shortlist.data.readers import READERS, problems, read
from shortlist.data.readers.beside import read_beside
from shortlist.data.readers.cifar import read_cifar
from shortlist.data.readers.coco import read_coco
from shortlist.data.readers.coco_words import read_coco_words
from shortlist.data.readers.cub import read_cub
from shortlist.data.readers.features import read_features
from shortlist.data.readers.findings import DataError, Problem
from shortlist.data.readers.image_folder import read_image_folder
from shortlist.data.readers.image_table import read_image_table
from shortlist.data.readers.nus_wide import read_nus_wide
from shortlist.data.readers.open_images import read_open_images
from shortlist.data.readers.plantnet import read_plantnet
from shortlist.data.readers.stacked_images import read_stacked_images
from shortlist.data.readers.text_table import read_text_table
from shortlist.data.readers.voc import read_voc
from shortlist.data.splits import split
from shortlist.data.texts import Texts

__all__ = [
    "CORRUPTIONS",
    "READERS",
    "DataError",
    "Dataset",
    "Draws",
    "Encoder",
    "Images",
    "MappedRows",
    "Problem",
    "Shared",
    "TextEncoder",
    "Texts",
    "ambiguous_numbers",
    "augment",
    "corrupt",
    "enlarged",
    "long_tailed",
    "missing_labels",
    "noise_within_groups",
    "problems",
    "read",
    "read_beside",
    "read_cifar",
    "read_coco",
    "read_coco_words",
    "read_cub",
    "read_features",
    "read_image_folder",
    "read_image_table",
    "read_nus_wide",
    "read_open_images",
    "read_plantnet",
    "read_stacked_images",
    "read_text_table",
    "read_voc",
    "relabelled",
    "shared_examples",
    "single_positive",
    "split",
    "symmetric_noise",
]
