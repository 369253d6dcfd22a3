"""The two linear heads of average-K training."""

from torch import Tensor, nn

from shortlist.checks import whole


class AverageKHead(nn.Module):
    """Two linear heads on the same features: set scores, and the proposal scores that training needs beside them.

    In training mode it returns ``(set_scores, proposal_scores)``, the first two arguments of
    `shortlist.functional.average_k_loss`; in evaluation mode the set scores alone, and the proposal head costs nothing.
    Compare set scores across examples after a softmax, the default of `shortlist.sets.AverageK`.

    >>> import torch
    >>> head = AverageKHead(in_features=8, num_labels=5)
    >>> set_scores, proposal_scores = head(torch.zeros(2, 8))
    >>> head.eval()(torch.zeros(2, 8)).shape
    torch.Size([2, 5])
    """

    def __init__(self, in_features: int, num_labels: int, *, bias: bool = True) -> None:
        super().__init__()
        in_features, num_labels = whole(in_features, "in_features", 1), whole(num_labels, "num_labels", 1)
        self.sets = nn.Linear(in_features, num_labels, bias=bias)
        self.proposals = nn.Linear(in_features, num_labels, bias=bias)

    def forward(self, features: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        scores: Tensor = self.sets(features)
        return (scores, self.proposals(features)) if self.training else scores
