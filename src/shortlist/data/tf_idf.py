"""tf-idf: texts become sparse features, one for each word that is common enough, by scikit-learn's vectoriser."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from shortlist.checks import check_choice
from shortlist.data.cells import UNSPACED
from shortlist.errors import ShortlistError
from shortlist.optional import require

_FORMAT = 1
KIND = "tf-idf"
# signs count, too: ! and ? and emoji say a lot; of scripts without blanks between words, each letter is one
_WORDS = rf"(?u)[{UNSPACED}]|[^\W{UNSPACED}]+|[^\w\s]"
_BY_BLANKS = r"(?u)\w+|[^\w\s]"  # which some kept ones have learnt with
_TWO_LETTERS = re.compile(f"[{UNSPACED}]{{2}}")
_SETTINGS = ("ngram_range", "analyzer", "lowercase")
Analyzer = Literal["word", "char_wb"]


class TfIdf:
    """Which words, or groups of words or letters, count, and how much; learnt by ``fit`` from the training texts.

    A feature is (1 + the logarithm of how often the term is in the text) times the logarithm of how rare it is in the
    training texts; rows have length 1. What was learnt are texts and numbers, so that a run keeps it as JSON.

    >>> made = TfIdf.fit(["so happy", "so sad", "happy happy!"], min_df=2)
    >>> made.terms, made.transform(["happy, so happy", "new words"]).toarray()
    (('happy', 'so'), array([[0.861..., 0.508...], [0. , 0. ]], dtype=float32))
    >>> TfIdf.from_json(made.to_json()).terms
    ('happy', 'so')
    """

    kind = KIND
    columns_left_out: dict[str, str] = {}  # noqa: RUF012  # as of a `Preprocessor`: a text has no columns

    def __init__(
        self,
        terms: Sequence[str],
        idf: Any,
        *,
        ngram_range: tuple[int, int],
        analyzer: Analyzer,
        lowercase: bool,
        texts: int,
    ) -> None:
        self.terms, self.idf, self.texts = tuple(terms), np.asarray(idf, dtype=np.float64), texts
        self.ngram_range, self.analyzer, self.lowercase = ngram_range, analyzer, lowercase
        words = _BY_BLANKS if any(map(_TWO_LETTERS.search, self.terms)) else _WORDS
        self._vectorizer = _vectorizer(ngram_range, analyzer, lowercase, words, vocabulary=list(self.terms))
        self._vectorizer.idf_ = self.idf

    @classmethod
    def fit(
        cls,
        texts: Sequence[str],
        *,
        ngram_range: tuple[int, int] = (1, 2),
        analyzer: Analyzer = "word",
        min_df: int = 2,
        max_features: int | None = 50_000,
        lowercase: bool = True,
    ) -> TfIdf:
        """Learn from these texts; what the options mean stands at the backbone ``tf-idf``."""
        low, high = ngram_range
        if not 1 <= low <= high:
            raise ShortlistError(f"ngram_range goes from 1 or more to as many or more, got {list(ngram_range)}")
        check_choice(analyzer, "analyzer", ("word", "char_wb"))
        if min_df < 1 or (max_features is not None and max_features < 1):
            raise ShortlistError(f"min_df and max_features must be at least 1, got {min_df} and {max_features}")
        vectorizer = _vectorizer((low, high), analyzer, lowercase, _WORDS, min_df=min_df, max_features=max_features)
        try:
            vectorizer.fit(texts)
        except ValueError as error:  # scikit-learn's words for it: an empty vocabulary, or no terms remain
            raise ShortlistError(
                f"no word is in {min_df} of the {len(texts)} texts: give min_df=1, or more texts"
            ) from error
        return cls(
            vectorizer.get_feature_names_out().tolist(),
            vectorizer.idf_,
            ngram_range=(low, high),
            analyzer=analyzer,
            lowercase=lowercase,
            texts=len(texts),
        )

    @property
    def width(self) -> int:
        """How many features come out."""
        return len(self.terms)

    def transform(self, texts: Sequence[str]) -> Any:
        """Features, a CSR matrix of float32 (N, width)."""
        if not len(texts):
            return require("scipy.sparse").csr_matrix((0, self.width), dtype=np.float32)
        return self._vectorizer.transform(texts).astype(np.float32)

    def describe(self, left_out: bool = True) -> str:
        """What became of the texts, in a line."""
        low, high = self.ngram_range
        units = "words" if self.analyzer == "word" else "letters"
        groups = units if high == 1 else f"{units} and groups of them" if low == 1 else f"groups of {units}"
        return f"tf-idf features ({self.width}): {groups} of the {self.texts} training texts"

    def to_json(self) -> dict[str, Any]:
        """Everything learnt, as numbers, texts, lists and dicts."""
        return {
            "format": _FORMAT,
            "kind": KIND,
            "ngram_range": list(self.ngram_range),
            "analyzer": self.analyzer,
            "lowercase": self.lowercase,
            "texts": self.texts,
            "terms": list(self.terms),
            "idf": self.idf.tolist(),
        }

    @classmethod
    def from_json(cls, facts: Any) -> TfIdf:
        """What ``to_json`` wrote, with all of it checked."""
        try:
            if facts["format"] != _FORMAT or facts["kind"] != KIND:
                raise ShortlistError(f"tf-idf of format {facts['format']!r} is not known")
            low, high = facts["ngram_range"]
            terms, idf = facts["terms"], facts["idf"]
            right = all(isinstance(size, int) for size in (low, high, facts["texts"])) and 1 <= low <= high
            if not right or facts["analyzer"] not in ("word", "char_wb") or not isinstance(facts["lowercase"], bool):
                raise ShortlistError(f"its settings cannot be: {[facts[key] for key in _SETTINGS]}")
            if not terms or not all(isinstance(term, str) for term in terms) or len(set(terms)) < len(terms):
                raise ShortlistError("its terms must be texts, each of them once")
            if len(idf) != len(terms) or not all(_is_weight(value) for value in idf):
                raise ShortlistError(f"it needs {len(terms)} weights above 0, got {len(idf)} values")
            return cls(
                terms, idf, ngram_range=(low, high), analyzer=facts["analyzer"], lowercase=facts["lowercase"],
                texts=facts["texts"],
            )  # fmt: skip
        except (KeyError, TypeError, ValueError) as error:
            reason = str(error) if isinstance(error, ShortlistError) else repr(error)
            raise ShortlistError(f"this is no tf-idf that to_json wrote: {reason}") from error


def _vectorizer(ngram_range: tuple[int, int], analyzer: str, lowercase: bool, words: str, **options: Any) -> Any:
    return require("sklearn.feature_extraction.text").TfidfVectorizer(
        ngram_range=ngram_range,
        analyzer=analyzer,
        lowercase=lowercase,
        token_pattern=words if analyzer == "word" else None,
        sublinear_tf=True,
        dtype=np.float64,
        **options,
    )


def _is_weight(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0
