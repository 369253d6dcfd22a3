"""How the site is built: folders in the navigation, formulas, pictures."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
sys.path.insert(0, str(DOCS / "tools"))


def test_a_folder_in_the_navigation_stands_for_its_pages_that_are_not_named(tmp_path: Path) -> None:
    hooks = pytest.importorskip("hooks", reason="mkdocs is not installed")
    (tmp_path / "guides").mkdir()
    for name in ("b", "a", "index", "named"):
        (tmp_path / "guides" / f"{name}.md").touch()
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "two-way.md").touch()
    nav = ["index.md", {"Guides": ["guides/named.md", "guides/"]}, {"Recipes": ["recipes/"]}, {"More": ["more/"]}]
    config = hooks.on_config(SimpleNamespace(docs_dir=str(tmp_path), nav=nav))
    assert config.nav == [
        "index.md",
        {"Guides": ["guides/named.md", "guides/index.md", "guides/a.md", "guides/b.md"]},
        {"Recipes": [{"two-way": "recipes/two-way.md"}]},
    ]


def test_formulas_are_drawn_and_keep_the_mark_after_them() -> None:
    from mathematics import draw_formulas

    page = 'let <span class="arithmatex">\\(x &lt; y_j\\)</span>, and'
    drawn = draw_formulas(page)
    assert drawn.startswith('let <span class="formula"><svg class="formula" role="img" aria-label="x &lt; y_j"')
    assert drawn.endswith("</svg>,</span> and")


def test_a_displayed_formula_has_one_picture_for_each_line() -> None:
    from mathematics import draw_formulas

    drawn = draw_formulas('<div class="arithmatex">\\[\na = \\frac{1}{2}\nb\n\\]</div>')
    assert drawn.startswith('<div class="formula">')
    assert drawn.count("<svg") == 2


def test_a_formula_that_cannot_be_drawn_is_quoted() -> None:
    from mathematics import svg

    with pytest.raises(ValueError, match=r"the formula \\nonsense\{x\} cannot be drawn"):
        svg(r"\nonsense{x}", display=False)


def test_the_pictures_are_drawn_from_the_library_itself(tmp_path: Path) -> None:
    import gradients_picture
    import pictures
    import polytope_picture
    import set_sizes_picture

    pictures.save(polytope_picture.draw(), "polytope.svg", tmp_path)
    pictures.save(gradients_picture.draw(), "gradients.svg", tmp_path)
    row = {"objective": "cross-entropy", "rule": "average-2", "sizes": [1.0, 2.0, 3.0], "spread": {}}
    pictures.save(set_sizes_picture.draw({"k": 2, "results": [row], "examples": 9, "seeds": 1}), "sizes.svg", tmp_path)
    for name in ("polytope", "gradients", "sizes"):
        assert (tmp_path / f"{name}.svg").read_text().count("<path") > 20


def test_every_loss_of_the_picture_pulls_the_label_up() -> None:
    import gradients_picture as picture

    for losses, present in ((picture.ONE, [picture.LABEL]), (picture.SEVERAL, picture.PRESENT)):
        for name, loss in losses.items():
            push = picture.push(loss)
            assert (push[present] > 0).all(), name
            assert push.abs().max() == 1, name
