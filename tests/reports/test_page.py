"""What is written: one page that is whole, safe and self-contained, and figures beside it."""

import io
import json
import os
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from shortlist.reports import ReportData, from_scores, write
from tests.reports.made_up import NAMES, NASTY, made_up_report, made_up_run


class Elements(HTMLParser):
    """Every element with its attributes, and the text of the page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.script: dict[str, str] = {}
        self._in: str | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag == "script":
            self._in = dict(attrs).get("id") or "code"
            self.script[self._in] = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._in = None

    def handle_data(self, data: str) -> None:
        if self._in:
            self.script[self._in] += data
        else:
            self.texts.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(made_up_report(), tmp_path_factory.mktemp("report") / "made" / "up")


@pytest.fixture(scope="module")
def elements(page: Path) -> Elements:
    return Elements(page.read_text("utf-8"))


def test_names_from_data_make_no_elements(elements: Elements) -> None:
    assert len(elements.of("script")) == 2  # the numbers and the page's own
    assert not [image for image in elements.of("img") if not str(image["src"]).startswith("data:image/png;base64,")]
    assert not elements.of("b")
    assert not elements.of("u")
    assert not any("onerror" in attributes for _, attributes in elements.found)


def test_names_from_data_are_shown_as_they_are(elements: Elements) -> None:
    text = "".join(elements.texts)
    for name in NASTY:
        assert name in text
    assert json.loads(elements.script["numbers"])["labels"]["names"] == list(NAMES)


def test_the_page_loads_nothing_from_elsewhere(page: Path, elements: Elements) -> None:
    assert "http://" not in page.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page.read_text("utf-8")
    assert not elements.of("link")
    assert all("src" not in attributes for attributes in elements.of("script"))


def test_only_the_pages_own_script_may_run(elements: Elements) -> None:
    import base64
    import hashlib

    [policy] = [meta["content"] for meta in elements.of("meta") if "http-equiv" in meta]
    digest = base64.b64encode(hashlib.sha256(elements.script["code"].encode()).digest()).decode()
    assert policy is not None
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_every_figure_is_there_as_png_and_svg(page: Path, elements: Elements) -> None:
    files = {file.name for file in (page.parent / "figures").iterdir()}
    names = ("accuracy", "set_sizes", "set_sizes_by_shots", "ambiguity", "training")
    assert files == {f"{name}.{kind}" for name in names for kind in ("png", "svg")}
    links = {str(a["href"]) for a in elements.of("a")}
    assert {link for link in links if not link.startswith("#")} == {f"figures/{name}" for name in files}
    for name in names:
        picture = Image.open(io.BytesIO((page.parent / "figures" / f"{name}.png").read_bytes()))
        assert min(picture.size) > 300
        assert len(set(picture.convert("L").resize((64, 64)).tobytes())) > 10  # something is drawn
        assert (page.parent / "figures" / f"{name}.svg").read_text("utf-8").rstrip().endswith("</svg>")


def test_figures_show_names_as_they_are(page: Path) -> None:
    text = (page.parent / "figures" / "accuracy.svg").read_text("utf-8")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<script" not in text


def test_the_same_data_give_the_same_files(page: Path, tmp_path: Path) -> None:
    again = write(made_up_report(), tmp_path / "again")
    for file in [page, *(page.parent / "figures").iterdir()]:
        assert (again.parent / file.relative_to(page.parent)).read_bytes() == file.read_bytes()


def test_headings_go_down_one_level_at_a_time_and_controls_have_names(elements: Elements) -> None:
    levels = [int(tag[1]) for tag, _ in elements.found if tag in ("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    labelled = {label["for"] for label in elements.of("label")}
    assert {box["id"] for box in elements.of("input")} <= labelled
    assert all(image.get("alt") for image in elements.of("img"))


def test_config_and_commands_are_on_the_page(elements: Elements) -> None:
    text = "".join(elements.texts)
    assert "shortlist train run.yaml seed=2" in text
    assert "objective:\n  name: cross-entropy\nepochs: 3\nseed: 2\n" in text


def test_settings_in_which_runs_differ_are_in_the_table_of_runs(elements: Elements) -> None:
    assert "lr" in elements.texts
    assert "epochs" not in elements.texts


def test_a_report_without_extras_has_no_sections_for_them(tmp_path: Path) -> None:
    elements = Elements(write(from_scores(np.eye(4), np.arange(4), k=1), tmp_path / "plain").read_text("utf-8"))
    ids = {attributes.get("id") for _, attributes in elements.found}
    assert {"headline", "explore", "examples", "labels", "reproduce"} <= ids
    assert not {"ambiguity", "training", "chart-shots"} & ids
    files = {file.name for file in (tmp_path / "plain" / "figures").iterdir()}
    assert files == {"accuracy.png", "accuracy.svg", "set_sizes.png", "set_sizes.svg"}


def test_multi_label_scores_make_a_report(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    target = (random.random((50, 6)) < 0.4).astype(np.int8)
    data = from_scores(random.normal(size=(50, 6)) + 2 * target, target, k=2.4, train_counts=[5, 9, 30, 60, 200, 300])
    text = "".join(Elements(write(data, tmp_path / "multi").read_text("utf-8")).texts)
    assert "mAP" in text
    assert "mean share of an example’s right labels" in text


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    def broken(row: int) -> bytes:
        raise OSError("the disk is gone")

    data = made_up_report(images=broken)
    with pytest.raises(OSError, match="the disk is gone"):
        write(data, tmp_path / "new" / "report")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_while_writing_keeps_the_old_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = write(made_up_report(runs=[made_up_run()]), tmp_path / "report").read_bytes()

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*report'"):
        write(from_scores(np.eye(3), np.arange(3)), tmp_path / "report")
    assert (tmp_path / "report" / "index.html").read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["report"]


def test_an_existing_directory_keeps_its_other_files(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    data = from_scores(np.eye(3), np.arange(3), k=1)
    first = write(data, tmp_path).read_text("utf-8")
    second = write(ReportData("Another title", data.runs), tmp_path).read_text("utf-8")
    assert "Another title" not in first
    assert "Another title" in second
    assert sorted(file.name for file in tmp_path.iterdir()) == ["figures", "index.html", "notes.txt"]


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "report").write_text("mine")
    with pytest.raises(ValueError, match="is a file"):
        write(from_scores(np.eye(3), np.arange(3)), tmp_path / "report")


def test_characters_that_steer_a_terminal_are_written_out_in_the_page_and_its_figures(tmp_path: Path) -> None:
    scores = np.random.default_rng(0).normal(size=(30, 3)).astype("float32")
    data = from_scores(scores, np.arange(30) % 3, ["\x1b[31mred", "\u202eback", "\x00nothing"], k=1)
    page = write(data, tmp_path / "report")
    for file in [page, *page.parent.glob("figures/*.svg")]:
        text = file.read_text("utf-8")
        assert not {"\x1b", "\u202e", "\x00"} & {*text}, file.name
    assert "\\x1b[31mred" in page.read_text("utf-8")
