"""The scikit-learn side: ``SetClassifier``, which trains any objective on features and answers with sets of labels."""

from shortlist.estimators.scorers import set_scorer
from shortlist.estimators.set_classifier import SetClassifier

__all__ = ["SetClassifier", "set_scorer"]
