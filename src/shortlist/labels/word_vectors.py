"""Word vectors of labels, from a text file as GloVe and word2vec write them: a word and its numbers on each line."""

import gzip
import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from shortlist.errors import MissingFileError, ShortlistError
from shortlist.files import PathLike


def label_vectors(path: PathLike, names: Sequence[str]) -> Tensor:
    """One vector per name, float32 (names, dimensions): that of the name itself (as it is written, else in small
    letters), else the mean of those of its words that the file has; 0 where it has none of them.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(f"{folder}/words.txt").write_text("dog 1 0\\nhot 0 2\\n")
    ...     label_vectors(f"{folder}/words.txt", ["Dog", "hot dog", "cat"])
    tensor([[1.0000, 0.0000], [0.5000, 1.0000], [0.0000, 0.0000]])
    """
    words = [re.findall(r"[^\W_]+", name.lower()) for name in names]
    wanted = {word for name, parts in zip(names, words, strict=True) for word in (name, name.lower(), *parts)}
    dimensions, found = word_vectors(path, wanted)
    if names and not found:
        raise ShortlistError(f"{path} has no vector for any of {len(names)} names, such as {names[0]!r}")
    vectors = torch.zeros(len(names), dimensions)
    for row, (name, parts) in enumerate(zip(names, words, strict=True)):
        whole = found.get(name, found.get(name.lower()))
        known = [whole] if whole is not None else [found[word] for word in parts if word in found]
        if known:
            vectors[row] = torch.stack(known).mean(0)
    return vectors


def word_vectors(path: PathLike, words: Collection[str]) -> tuple[int, dict[str, Tensor]]:
    """How many numbers a vector of the file has, and the vectors of those words that it holds; a first line of two
    whole numbers, as word2vec writes it, is passed over. The file may be packed (.gz)."""
    dimensions, found = 0, {}
    for line, text in _lines(Path(path)):
        first, _, rest = text.partition(" ")
        if not dimensions:
            if line == 1 and re.fullmatch(r"\d+ \d+", text):
                continue
            dimensions = len(rest.split())
            if not dimensions:
                raise ShortlistError(f"{path}, line {line}: a line is a word and its numbers, with blanks between them")
        if first not in words:
            continue
        word, *numbers = text.rsplit(" ", dimensions)  # a few of GloVe's words have a blank in them
        if word not in words and _are_numbers(text.split()[1:]):
            word, numbers = first, []  # not one of those words, but a line that is too long
        if word in words and word not in found:
            try:
                vector = torch.tensor([float(number) for number in numbers])
            except ValueError:
                vector = torch.empty(0)
            if vector.shape != (dimensions,) or not bool(vector.isfinite().all()):
                raise ShortlistError(
                    f"{path}, line {line}: a line is a word and {dimensions} numbers, as on the first one, "
                    f"got {text[:60]!r}"
                )
            found[word] = vector
    if not dimensions:
        raise ShortlistError(f"{path}: there are no word vectors in it: a line is a word and its numbers")
    return dimensions, found


def _are_numbers(texts: Sequence[str]) -> bool:
    try:
        return all(float(text) < float("inf") for text in texts)
    except ValueError:
        return False


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    if not path.is_file():
        raise MissingFileError(f"{path}: there is no such file of word vectors")
    with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as file:
        try:
            for number, line in enumerate(file, start=1):
                text = line.decode("utf-8").strip()
                if text:
                    yield number, text
        except (UnicodeDecodeError, gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise ShortlistError(f"{path} is no text file of word vectors in UTF-8: {error}") from error
