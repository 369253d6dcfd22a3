"""Counted words: what they become, and how they are kept."""

import inspect
import json

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from shortlist import ShortlistError
from shortlist.data.preprocessing import Preprocessor, read_preprocessing
from shortlist.data.tf_idf import TfIdf
from shortlist.models import BACKBONES

TEXTS = ["So happy today!", "so sad today", "happy, HAPPY days", "no words of mine", "sad days"]


@pytest.mark.parametrize("options", [{}, {"analyzer": "char_wb", "ngram_range": (2, 3)}, {"lowercase": False}])
def test_features_are_those_of_scikit_learn_also_after_json(options):
    made = TfIdf.fit(TEXTS, **options)
    kept = read_preprocessing(json.loads(json.dumps(made.to_json())))
    pattern = {} if "analyzer" in options else {"token_pattern": r"(?u)\w+|[^\w\s]"}
    rival = TfidfVectorizer(min_df=2, sublinear_tf=True, **{"ngram_range": (1, 2), **options}, **pattern).fit(TEXTS)
    new = ["happy today, so happy", "something new", ""]
    assert list(kept.terms) == rival.get_feature_names_out().tolist()
    np.testing.assert_array_equal(kept.transform(new).toarray(), made.transform(new).toarray())
    np.testing.assert_allclose(kept.transform(new).toarray(), rival.transform(new).toarray(), atol=1e-6)


def test_signs_are_words_and_rare_words_are_left_out():
    made = TfIdf.fit(["wow !", "well !", "well 🙂 🙂", "ok 🙂"], ngram_range=(1, 1))
    assert set(made.terms) == {"!", "well", "🙂"}


def test_letters_are_words_in_scripts_without_blanks_between_words():
    made = TfIdf.fit(["良い映画。OK", "良い本", "悪い映画", "ดีมาก ok", "ดีใจ"])
    assert {"良 い", "映 画", "い", "ok"} <= set(made.terms)
    assert made.transform(["とても良い"]).nnz == 3  # both letters, and the pair
    assert TfIdf.from_json(made.to_json()).transform(["良い本"]).nnz == made.transform(["良い本"]).nnz


def test_terms_that_were_learnt_by_blanks_alone_are_found_by_blanks():
    kept = TfIdf(["映画", "良い 映画"], [1.0, 1.5], ngram_range=(1, 2), analyzer="word", lowercase=True, texts=9)
    assert kept.transform(["良い 映画"]).nnz == 2
    assert kept.transform(["良い映画"]).nnz == 0


def test_a_range_may_be_a_list_as_in_yaml():
    assert TfIdf.fit(TEXTS, ngram_range=[1, 1]).ngram_range == (1, 1)


def test_no_texts_make_no_rows_of_the_same_width():
    made = TfIdf.fit(TEXTS)
    assert made.transform([]).shape == (0, made.width)


def test_texts_without_a_common_word_are_refused_with_the_option_that_helps():
    with pytest.raises(ShortlistError, match="no word is in 2 of the 2 texts: give min_df=1"):
        TfIdf.fit(["one", "another"])
    with pytest.raises(ShortlistError, match="ngram_range goes from 1"):
        TfIdf.fit(TEXTS, ngram_range=(2, 1))


def test_the_backbone_and_the_vectoriser_have_the_same_defaults():
    def options(function):
        found = inspect.signature(function).parameters.values()
        return {one.name: one.default for one in found if one.kind is one.KEYWORD_ONLY}

    assert options(BACKBONES["tf-idf"]) == options(TfIdf.fit)


@pytest.mark.parametrize(
    "change",
    [
        {"terms": ["a", "a"]},
        {"terms": [1]},
        {"idf": [1.0]},
        {"idf": [float("nan")] * 3},
        {"ngram_range": [0, 1]},
        {"ngram_range": [1]},
        {"analyzer": "evil"},
        {"lowercase": "yes"},
        {"format": 9},
        {"idf": None},
    ],
)
def test_a_damaged_file_is_refused(change):
    facts = {**TfIdf.fit(TEXTS, ngram_range=(1, 1)).to_json(), **change}
    with pytest.raises(ShortlistError, match="this is no tf-idf that to_json wrote"):
        read_preprocessing(facts)


def test_a_file_of_columns_is_still_one():
    made = Preprocessor.fit(np.arange(6.0).reshape(3, 2))
    assert read_preprocessing(made.to_json()) == made
