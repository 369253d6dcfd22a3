"""What recipes measure of a trained model."""

from shortlist.metrics import functional as M
from shortlist_recipes.cells import Numbers, Trained


def top_accuracies(trained: Trained) -> Numbers:
    """Top-1 and top-5 accuracy on the test data, and the number of the best validation epoch."""
    scores, target = trained.scores("test"), trained.parts["test"].target
    return {
        "top-1": float(M.top_k_accuracy(scores, target, 1)),
        "top-5": float(M.top_k_accuracy(scores, target, 5)),
        "best epoch": float(trained.history.best_epoch or len(trained.history.records)),
    }
