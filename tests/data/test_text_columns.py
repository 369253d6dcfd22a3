"""Texts in tables: counted word by word beside numbers and categories."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import issparse

from shortlist import ShortlistError, ShortlistWarning
from shortlist.data.preprocessing import Preprocessor
from shortlist.data.tf_idf import TfIdf
from tests.runs.made_texts import tickets


def test_each_text_is_counted_alone_and_all_together_beside_the_other_columns() -> None:
    table = tickets(200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prepared = Preprocessor.fit(table.drop(columns="kind"))
    found = prepared.transform(table)
    assert issparse(found)
    assert found.shape == (200, prepared.width)
    others = Preprocessor.fit(table[["age", "plan"]])
    subject, body = table["subject"].fillna("").tolist(), table["body"].tolist()
    together = ["\n".join(filter(None, pair)) for pair in zip(subject, body, strict=True)]
    expected = [others.transform(table[["age", "plan"]])]
    expected += [TfIdf.fit(texts).transform(texts).toarray() for texts in (subject, body, together)]
    np.testing.assert_array_equal(found.toarray(), np.concatenate(expected, axis=1))
    again = Preprocessor.from_json(json.loads(json.dumps(prepared.to_json())))
    assert again == prepared
    mixed = table[["body", "plan", "subject", "age"]].iloc[[5, 3]]
    np.testing.assert_array_equal(again.transform(mixed).toarray(), found[[5, 3]].toarray())
    assert "texts, by tf-idf (3): subject (" in prepared.describe()
    assert "subject + body (" in prepared.describe()
    assert prepared.common_scale() is None


def test_texts_alone_are_enough_and_blank_or_new_ones_are_empty() -> None:
    table = tickets(100)[["body"]]
    prepared = Preprocessor.fit(table)
    assert (prepared.numbers, list(prepared.categories), len(prepared.texts)) == (None, [], 1)
    assert prepared.transform(pd.DataFrame({"body": [None, "NA", "unheard-of", 7.0]})).nnz == 0
    assert prepared.transform(table[:0]).shape == (0, prepared.width)
    with pytest.raises(ShortlistError, match="columns that it was fitted with are missing: 'body'"):
        prepared.transform(pd.DataFrame({"text": ["a"]}))


def test_ids_dates_and_names_of_two_words_that_come_again_are_no_texts() -> None:
    table = pd.DataFrame({"size": np.arange(80.0), "city": ["New York", "Los Angeles"] * 40})
    assert not Preprocessor.fit(table).texts
    codes = table.assign(code=[f"x{row} y{row}" for row in range(80)])  # no word comes twice
    with pytest.warns(ShortlistWarning, match="columns left out: 'code' .*text or an id"):
        assert not Preprocessor.fit(codes).texts


@pytest.mark.parametrize("change", [{"columns": [9]}, {"columns": [2, 2]}, {"counted": {"kind": "other"}}])
def test_a_damaged_file_is_refused(change: dict) -> None:
    facts = Preprocessor.fit(tickets(100).drop(columns="kind")).to_json()
    facts["texts"][0] |= change
    with pytest.raises(ShortlistError):
        Preprocessor.from_json(facts)
    del facts["texts"]  # as files of earlier versions
    assert not Preprocessor.from_json(facts).texts


def test_words_with_hyphens_between_are_counted() -> None:
    icons = [f"{thing}-{way}" for thing in ("arrow", "account", "cloud") for way in ("up", "down", "left", "lock")]
    fitted = Preprocessor.fit(pd.DataFrame({"icon": icons}))
    assert fitted.describe().startswith("texts, by tf-idf (1): icon (")
