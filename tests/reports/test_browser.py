"""The page in a real browser: the slider moves the numbers, tables sort, themes change, no network is asked."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shortlist.reports import write
from tests.reports.browser import CHROMIUM, Browser
from tests.reports.made_up import NAMES, made_up_report

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt-get install chromium)")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(made_up_report(), tmp_path_factory.mktemp("browser") / "report")


@pytest.fixture
def tab(browser: Browser, page: Path) -> Browser:
    browser.open(page)
    return browser


def numbers(tab: Browser) -> list[list[str]]:
    return tab.run("[...document.querySelectorAll('#at-k tbody tr')].map(r => [...r.cells].map(c => c.textContent))")  # type: ignore[no-any-return]


def move_to(tab: Browser, place: int) -> None:
    tab.run(f"(k => {{ k.value = {place}; k.dispatchEvent(new Event('input')); }})(document.getElementById('k'))")


def bar_heights(tab: Browser, box: str) -> list[Any]:
    return tab.run(f"[...document.querySelectorAll('{box} rect')].map(r => r.getAttribute('height'))")  # type: ignore[no-any-return]


def test_the_page_opens_without_complaint_and_asks_nothing_of_the_network(tab: Browser, page: Path) -> None:
    assert tab.run("document.querySelectorAll('#at-k tbody tr').length") == 4  # two models, two rules
    assert tab.complaints() == []
    assert {address for address in tab.requests() if not address.startswith("data:")} == {page.resolve().as_uri()}


def test_the_slider_moves_table_histogram_and_charts(tab: Browser) -> None:
    boxes = ("#chart-sizes", "#chart-shots")
    before, bars = numbers(tab), [bar_heights(tab, box) for box in boxes]
    lines = tab.run("document.querySelector('#chart-levels .line:not(.top, .ideal)').getAttribute('d')")
    move_to(tab, 0)
    after = numbers(tab)
    assert tab.run("document.getElementById('k-out').textContent") == "1"
    assert all(new[2:] != old[2:] for new, old in zip(after, before, strict=True))
    assert [bar_heights(tab, box) for box in boxes] != bars
    assert tab.run("document.querySelector('#chart-levels .line:not(.top, .ideal)').getAttribute('d')") != lines


def test_every_k_can_be_drawn(tab: Browser) -> None:
    last = tab.run("+document.getElementById('k').max")
    for place in range(last + 1):
        move_to(tab, place)
    assert tab.run("document.querySelector('svg [x1=NaN], svg [x1=Infinity], svg [height=NaN]')") is None
    assert tab.complaints() == []


def test_the_numbers_at_each_k_are_the_ones_worked_out_in_python(tab: Browser) -> None:
    from shortlist.reports.contents import contents

    found = contents(made_up_report())
    for place in (0, len(found["grid"]) - 1):
        move_to(tab, place)
        shown = numbers(tab)[0]
        average = found["models"][0]["average"]
        assert shown[2].startswith(f"{average['size'][place]:.2f}")
        assert shown[3].startswith(f"{100 * average['accuracy'][place]:.1f}\u202f%")


def test_the_slider_starts_with_the_numbers_of_the_table_of_results(tab: Browser) -> None:
    rows = "[...document.querySelectorAll('.headline tbody tr')]"
    tab.run("document.querySelectorAll('.interval').forEach(shown => shown.remove())")
    results = tab.run(f"{rows}.map(r => [...r.cells].map(c => c.textContent.trimEnd()))")
    averages = [row[-10:] for row in results if row[-10].startswith("AverageK")]
    for row, shown in zip(averages, numbers(tab)[::2], strict=True):
        _, size, accuracy, _precision, _f1, *_shots, covers, exact = row
        assert shown[2:] == [size, accuracy, covers, exact]


def test_python_and_the_script_round_alike(tab: Browser) -> None:
    from shortlist.reports.words import fixed

    values = [62.25, 0.125, 2.675, 2.085, 0.0, 1e-9, 99.95, 100.0, *(k / 8 for k in range(200))]
    for digits in (1, 2):
        assert tab.run(f"{values}.map(v => v.toFixed({digits}))") == [fixed(value, digits) for value in values]


def test_the_slider_is_moved_by_the_keyboard_and_says_so(tab: Browser) -> None:
    tab.run("document.getElementById('k').focus()")
    before = tab.run("document.getElementById('k-out').textContent")
    tab.press("ArrowRight")
    assert tab.run("document.getElementById('k-out').textContent") != before
    assert "labels per example on average" in tab.run("document.getElementById('k').getAttribute('aria-valuetext')")
    tab.press("Home")
    assert tab.run("document.getElementById('k').getAttribute('aria-valuetext')") == "1 label per example on average"
    tab.run("new Promise(done => setTimeout(done, 400))")  # spoken once the slider rests
    assert "AverageK" in tab.run("document.getElementById('k-summary').textContent")


def test_clicking_the_chart_moves_k(tab: Browser) -> None:
    tab.run("document.getElementById('chart-accuracy').scrollIntoView({block: 'center', behavior: 'instant'})")
    box = tab.run("document.querySelector('#chart-accuracy svg').getBoundingClientRect().toJSON()")
    for kind in ("mousePressed", "mouseReleased"):
        x, y = box["right"] - 20, box["top"] + 50
        tab.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
    assert tab.run("document.getElementById('k-out').textContent") == "12"


def test_names_stay_text_and_run_nothing(tab: Browser) -> None:
    names = tab.run("[...document.querySelectorAll('#label-table tbody th')].map(c => c.textContent)")
    assert sorted(names) == sorted(NAMES)
    assert tab.run("document.querySelectorAll('img[src=x], #label-table script, #label-table img').length") == 0
    assert tab.complaints() == []


def test_the_table_of_labels_sorts_both_ways_and_filters(tab: Browser) -> None:
    def column(place: int) -> list[float]:
        rows = "[...document.querySelectorAll('#label-table tbody tr')]"
        return tab.run(f"{rows}.map(r => parseFloat(r.cells[{place}].textContent))")  # type: ignore[no-any-return]

    heading = "document.querySelector('#label-table th[data-key=train]')"
    click = f"{heading}.firstChild.click()"
    tab.run(click)
    assert column(2) == sorted(column(2))
    tab.run(click)
    assert column(2) == sorted(column(2), reverse=True)
    assert tab.run(f"{heading}.getAttribute('aria-sort')") == "descending"
    tab.run("(f => { f.value = 'ナマケ'; f.dispatchEvent(new Event('input')); })(document.getElementById('filter'))")
    assert tab.run("document.querySelectorAll('#label-table tbody tr').length") == 1


def test_choosing_a_run_shows_its_examples(tab: Browser) -> None:
    visible = "[...document.querySelectorAll('#examples .of-model')].map(m => m.offsetParent !== null)"
    assert tab.run(visible) == [True, False]
    tab.run("(s => { s.value = 1; s.dispatchEvent(new Event('change')); })(document.querySelector('.pick select'))")
    assert tab.run(visible) == [False, True]
    assert tab.run("[...document.querySelectorAll('.pick select')].map(s => s.value)") == ["1", "1", "1", "1"]


def test_the_theme_follows_the_system_and_the_button(browser: Browser, page: Path) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    browser.open(page)
    light = browser.run(background)
    browser.open(page, dark=True)
    dark = browser.run(background)
    assert dark != light
    click = "document.getElementById('theme').click()"
    browser.run(click)
    assert browser.run(background) == light
    browser.run(click)
    assert browser.run(background) == dark
    browser.run(click)
    assert browser.run("document.getElementById('theme-name').textContent") == "system"


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_enough_contrast(browser: Browser, page: Path, dark: bool) -> None:
    browser.open(page, dark=dark)
    contrast = """(() => {
      const linear = v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
      const light = c => {
        const [r, g, b] = c.match(/[\\d.]+/g).map(v => linear(v / 255));
        return .2126 * r + .7152 * g + .0722 * b;
      };
      const card = light(getComputedStyle(document.querySelector('#headline .card')).backgroundColor);
      return ['.lead', '.note', '.hint', 'thead th', 'small', 'nav a', '.right .label'].map(s => {
        const text = light(getComputedStyle(document.querySelector(s)).color);
        return (Math.max(text, card) + .05) / (Math.min(text, card) + .05);
      });
    })()"""
    assert min(browser.run(contrast)) >= 4.5


def test_on_a_phone_every_figure_of_the_results_is_in_sight(browser: Browser, page: Path) -> None:
    browser.open(page, width=375)
    cells = "[...document.querySelectorAll('.headline td, .headline th[scope=row]')]"
    assert max(browser.run(f"{cells}.map(c => c.getBoundingClientRect().right)")) <= 375
    before = "getComputedStyle(document.querySelector('.headline td'), '::before').content"
    assert browser.run(before) == '"Top-1"'


@pytest.mark.parametrize("width", [320, 375, 390, 800])
def test_a_narrow_window_needs_no_sideways_scrolling(browser: Browser, page: Path, width: int) -> None:
    browser.open(page, width=width)
    assert browser.run("document.documentElement.scrollWidth") <= width


def test_the_reliability_diagram_is_as_large_as_the_other_charts(browser: Browser, page: Path) -> None:
    browser.open(page)
    reliability, accuracy = (
        browser.run(f"document.querySelector('{box} svg').getBoundingClientRect().width")
        for box in (".reliability", "#chart-accuracy")
    )
    assert 0.8 < reliability / accuracy < 1.25
