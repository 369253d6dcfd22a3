"""Losses beside a process that keeps one core busy, as data loaders do: the median call, not the fastest.

python -m benchmarks.busy
"""

from collections.abc import Sequence
from functools import partial

from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

import shortlist.functional as F
from benchmarks.harness import Case, Setup, SpeedCase
from benchmarks.multilabel import BCE, matrix_step
from benchmarks.run import parser, run
from benchmarks.top_k import layer_step, loss_step, softmax

GROUP = "With one core busy: the median call"


def cases(quick: bool = False) -> list[Case]:
    """Every row of the table; `quick` shrinks the sizes."""

    def case(name: str, shape: tuple[int, int], k: int | None, ours: Setup, against: str, theirs: Setup) -> Case:
        return SpeedCase(GROUP, name, shape, k, ours, against, theirs, busy=True)

    found = []
    for shape in [(8, 50)] if quick else [(256, 100), (256, 1000)]:
        smooth, entropy = partial(F.smooth_topk_loss, k=5), partial(loss_step, cross_entropy, shape)
        found += [
            case("smooth_topk", shape, 5, partial(loss_step, smooth, shape), "F.cross_entropy", entropy),
            case(
                "lml",
                shape,
                5,
                partial(layer_step, partial(F.lml, k=5), shape),
                "torch.softmax",
                partial(layer_step, softmax, shape),
            ),
        ]
        reference = partial(matrix_step, binary_cross_entropy_with_logits, shape)
        for name, loss in (
            ("binary", F.binary_loss),
            ("asymmetric", F.asymmetric_loss),
            ("two_way", F.two_way_loss),
            ("rml", F.rml_loss),
        ):
            found.append(case(name, shape, None, partial(matrix_step, loss, shape), BCE, reference))
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser("benchmarks.busy", __doc__ or "").parse_args(arguments)
    run(cases(options.quick), options, "python -m benchmarks.busy")


if __name__ == "__main__":
    main()
