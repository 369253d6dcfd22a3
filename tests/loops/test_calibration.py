"""What both callbacks share: rules fitted on validation scores, and honest figures."""

import numpy as np
import pytest
import torch

from shortlist.loops.calibration import Calibration, known_rows
from shortlist.sets import AverageK, Conformal, TopK

SCORES = torch.randn(60, 8, generator=torch.Generator().manual_seed(0))
TARGET = (SCORES + torch.randn(60, 8, generator=torch.Generator().manual_seed(1))).argmax(-1)


def test_rules_are_fitted_on_all_rows_and_judged_on_rows_of_their_own() -> None:
    calibration = Calibration({"average-k": AverageK(2), "conformal": Conformal(0.2), "top-k": TopK(3)})
    found = calibration.fit(SCORES, TARGET)
    half = AverageK(2).fit(SCORES[::2]).predict(SCORES[1::2])
    assert found["average-k/size"] == pytest.approx(half.sizes.mean())
    assert found["average-k/coverage"] == pytest.approx(half.contains(TARGET[1::2].numpy()).mean())
    assert found["top-k/size"] == 3
    assert calibration.rules["average-k"].predict(SCORES) == AverageK(2).fit(SCORES).predict(SCORES)
    assert calibration.rules["conformal"].limits == Conformal(0.2).fit(SCORES, TARGET).limits  # type: ignore[attr-defined]


def test_without_rules_there_are_the_usual_two() -> None:
    single, several = Calibration(), Calibration(k=3)
    single.fit(SCORES, TARGET)
    assert repr(single.rules) == "{'average-k': AverageK(k=4.0), 'conformal': Conformal(link='softmax')}"
    several.fit(SCORES, (SCORES > 1).long())
    assert several.rules["average-k"].k == 3  # type: ignore[attr-defined]
    assert several.rules["conformal"].labels == "multi"  # type: ignore[attr-defined]


def test_padding_and_unknown_rows_are_left_out() -> None:
    tokens = SCORES.reshape(6, 10, 8)
    labels = TARGET.reshape(6, 10).clone()
    labels[:, 7:] = -100
    scores, target = known_rows(tokens.half(), labels.numpy())
    assert (scores.shape, target.shape, scores.dtype) == ((42, 8), (42,), torch.float32)
    matrix = (SCORES > 1).float()
    matrix[3], matrix[4, 0] = -1, -100
    scores, target = known_rows(SCORES, matrix)
    assert target.shape == (59, 8)
    assert (target.dtype, int(target[3, 0])) == (torch.int8, -1)


def test_what_cannot_be_calibrated_is_said() -> None:
    with pytest.raises(ValueError, match="1 rows of the validation data have a known label"):
        Calibration().fit(SCORES[:3], torch.tensor([1, -1, -100]))
    with pytest.raises(ValueError, match=r"rules must be set rules by name, such as .*, got list"):
        Calibration([AverageK(2)])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"scores must have the shape"):
        Calibration().fit(np.zeros(3), np.zeros(3, int))
