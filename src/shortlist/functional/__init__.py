"""The mathematics: losses and layers as functions. Scores first, target second, options by keyword."""

from shortlist.functional.assume_negative import assume_negative_loss
from shortlist.functional.asymmetric import asymmetric_loss
from shortlist.functional.average_k import average_k_loss
from shortlist.functional.binary import binary_loss
from shortlist.functional.expected_positive import expected_positive_loss
from shortlist.functional.linear_loss import linear_loss
from shortlist.functional.lml import lml, lml_loss
from shortlist.functional.lsep import lsep_loss
from shortlist.functional.multilabel_softmax import multilabel_softmax_loss
from shortlist.functional.noised_topk import noised_topk_loss
from shortlist.functional.partial_binary import partial_binary_loss
from shortlist.functional.partial_selective import partial_selective_loss
from shortlist.functional.rml import rml_loss
from shortlist.functional.smooth_topk import smooth_topk_loss, topk_hinge_loss
from shortlist.functional.subsets import log_subset_sum, multi_crop_probabilities, subset_marginals
from shortlist.functional.truncated_entropy import truncated_entropy_loss
from shortlist.functional.two_way import two_way_loss
from shortlist.functional.warp import warp_loss

__all__ = [
    "assume_negative_loss",
    "asymmetric_loss",
    "average_k_loss",
    "binary_loss",
    "expected_positive_loss",
    "linear_loss",
    "lml",
    "lml_loss",
    "log_subset_sum",
    "lsep_loss",
    "multi_crop_probabilities",
    "multilabel_softmax_loss",
    "noised_topk_loss",
    "partial_binary_loss",
    "partial_selective_loss",
    "rml_loss",
    "smooth_topk_loss",
    "subset_marginals",
    "topk_hinge_loss",
    "truncated_entropy_loss",
    "two_way_loss",
    "warp_loss",
]
