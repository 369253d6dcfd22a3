"""COCO: the words of each image's captions."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import torch

from shortlist.checks import check_choice, whole
from shortlist.data.dataset import Dataset
from shortlist.data.images import Images
from shortlist.data.readers.coco import by_id, coco_content
from shortlist.data.readers.findings import Findings
from shortlist.data.readers.text_lines import text_lines
from shortlist.errors import ShortlistError
from shortlist.files import PathLike

_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")  # letters and digits, with hyphens between
_CAPTION = ("image_id", "caption")


def read_coco_words(
    path: PathLike,
    *,
    images: PathLike,
    words: int = 1000,
    vocabulary: PathLike | None = None,
    captions: int = 1,
    unmentioned: Literal["absent", "unknown"] = "absent",
    size: int = 224,
    crop: bool = False,
) -> Dataset:
    """The most frequent words of the captions as labels, from a captions JSON file (``captions_train2014.json``, ...).

    A word is present in an image whose captions mention it. Captions are put in small letters; words are runs of
    letters and digits, with hyphens between them. The labels are the words that occur most often in all captions, the
    most frequent first (words as frequent in alphabetical order), whatever part of speech they are (Fang et al. 2015,
    whose labels the IMCL paper takes). The authors cut captions into words by NLTK, which differs in detail; to have
    exactly their words, give their list as ``vocabulary``.

    Args:
        path: the JSON file.
        images: the folder with the images, such as ``train2014``.
        words: how many labels.
        vocabulary: where the words come from, rather than from ``path``: another captions JSON file, which test data
            needs to have the labels of the training data; or a text file with a word on each line, of which what stands
            behind a comma is left out.
        captions: how many of an image's captions must mention a word that is present.
        unmentioned: whether a word that no caption mentions is absent, or unknown.
        size, crop: how images are resized, as for ``read_image_folder``.

    Example:
        ```yaml
        data:
          train: {reader: coco-words, path: annotations/captions_train2014.json, images: train2014}
          test:
            reader: coco-words
            path: annotations/captions_val2014.json
            images: val2014
            vocabulary: annotations/captions_train2014.json
        backbone: {name: vgg16, weights: vgg16.pth}
        objective: {name: imcl, graph: vectors, graph_file: glove.6B.300d.txt}
        ```
    """
    whole(words, "words", 1)
    whole(captions, "captions", 1)
    check_choice(unmentioned, "unmentioned", ("absent", "unknown"))
    findings = Findings()
    content = coco_content(Path(path), ("images", "annotations"), findings)
    listed = by_id(path, content["images"], "images", "file_name", findings)
    folder = Path(images)
    for place, image in listed.values():
        findings.image(folder / image["file_name"], path, place)
    row = {identity: number for number, identity in enumerate(listed)}
    said = _captions(path, content["annotations"], findings)
    for place, image_id, _ in said:
        if image_id not in row:
            findings.add(path, f"annotations[{place}] is of an image that is not listed, {image_id!r}", place)
    if vocabulary is None:
        names = most_frequent([text for _, _, text in said], words)
    else:
        names = _vocabulary(Path(vocabulary), words, findings)
    findings.stop_if_any()
    if not names:
        raise ShortlistError(f"{vocabulary or path}: there are no words to be labels")
    label = {word: number for number, word in enumerate(names)}
    mentions = Counter(
        (row[image_id], label[word]) for _, image_id, text in said for word in set(words_of(text)) if word in label
    )
    target = torch.full((len(row), len(names)), 0 if unmentioned == "absent" else -1, dtype=torch.int8)
    for (image_row, word_label), count in mentions.items():
        if count >= captions:
            target[image_row, word_label] = 1
    return Dataset(
        Images.from_files((folder / image["file_name"] for _, image in listed.values()), size, crop),
        target,
        names,
        ids=tuple(image["file_name"] for _, image in listed.values()),
        name=Path(path).stem,
    )


def words_of(caption: str) -> list[str]:
    """The words of a caption, in small letters.

    >>> words_of("A man's T-shirt, on 2 chairs.")
    ['a', 'man', 's', 't-shirt', 'on', '2', 'chairs']
    """
    return _WORD.findall(caption.lower())


def most_frequent(texts: list[str], count: int) -> tuple[str, ...]:
    """The words that occur most often, the most frequent first."""
    times = Counter(word for text in texts for word in words_of(text))
    return tuple(sorted(times, key=lambda word: (-times[word], word))[:count])


def _captions(path: PathLike, items: list[Any], findings: Findings) -> list[tuple[int, Any, str]]:
    """Place in the list, image and text of each caption."""
    found = []
    for place, item in enumerate(items):
        image_id, caption = (item.get(key) if isinstance(item, dict) else None for key in _CAPTION)
        if isinstance(image_id, int) and isinstance(caption, str):
            found.append((place, image_id, caption))
        else:
            findings.add(path, f"annotations[{place}] has no whole number 'image_id', or no text 'caption'", place)
    return found


def _vocabulary(file: Path, words: int, findings: Findings) -> tuple[str, ...]:
    if file.suffix == ".json":
        content = coco_content(file, ("annotations",), findings)
        return most_frequent([text for _, _, text in _captions(file, content["annotations"], findings)], words)
    found: dict[str, int] = {}
    for line, text in text_lines(file, findings):
        word = text.partition(",")[0].strip().lower()
        if not word:
            findings.add(file, f"there is no word before the comma: {text!r}", line, "line")
        elif word in found:
            findings.add(file, f"the word {word!r} is a duplicate of line {found[word]}", line, "line")
        found.setdefault(word, line)
    return tuple(found)[:words]
