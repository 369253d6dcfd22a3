"""The figures beside the page."""

import pytest

from shortlist.reports.figures import by_epoch, new_axes


@pytest.mark.parametrize("epochs", [1, 2, 3, 7, 100])
def test_epochs_are_marked_at_whole_numbers(epochs):
    _, [[axes]] = new_axes(1, 1, width=4, height=3)
    axes.plot(range(1, epochs + 1), range(epochs))
    by_epoch(axes)
    low, high = axes.get_xlim()
    shown = [tick for tick in axes.get_xticks() if low <= tick <= high]
    assert shown
    assert all(tick == round(tick) for tick in shown)
