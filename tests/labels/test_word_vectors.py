"""Word vectors from text files as GloVe and word2vec write them."""

import gzip

import pytest
import torch

from shortlist.labels.word_vectors import label_vectors, word_vectors


def test_a_name_has_its_own_vector_or_the_mean_of_its_words_or_none(tmp_path):
    file = tmp_path / "glove.txt"
    file.write_text("traffic 1 0\nlight 0 1\nt-shirt 5 5\nParis 2 2\nparis 3 3\n. 8 8\n")
    found = label_vectors(file, ["traffic_light", "T-shirt", "Paris", "Light bulb", "xylophone"])
    assert found.tolist() == [[0.5, 0.5], [5, 5], [2, 2], [0, 1], [0, 0]]


def test_word2vec_s_first_line_packed_files_and_words_with_blanks(tmp_path):
    with gzip.open(tmp_path / "words.txt.gz", "wt") as file:
        file.write("3 2\ndog 1 2\ndog at name 7 7\ncat 3 4\n")
    dimensions, found = word_vectors(tmp_path / "words.txt.gz", {"dog", "cat", "emu"})
    assert dimensions == 2
    assert {word: vector.tolist() for word, vector in found.items()} == {"dog": [1, 2], "cat": [3, 4]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"dog 1 2\ncat 3 four\n", r"words\.txt, line 2: a line is a word and 2 numbers, .* got 'cat 3 four'"),
        (b"dog 1 2\ncat 3 nan\n", r"line 2: a line is a word and 2 numbers"),
        (b"dog 1 2\ncat 3 4 5\n", "line 2: a line is a word and 2 numbers, as on the first one, got 'cat 3 4 5'"),
        (b"\n", "there are no word vectors in it"),
        (b"dog\t1\t2\n", "line 1: a line is a word and its numbers, with blanks between them"),
        (b"dog 1 2\n\xff\xfe 1 2\n", "no text file of word vectors in UTF-8"),
    ],
)
def test_what_is_wrong_is_said_by_file_and_line(tmp_path, content, message):
    (tmp_path / "words.txt").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        word_vectors(tmp_path / "words.txt", {"dog", "cat"})


def test_a_damaged_packed_file_is_told(tmp_path):
    packed = bytearray(gzip.compress(b"dog 1 2\ncat 3 4\n"))
    packed[10] ^= 6  # the kind of its first block is none that there is
    (tmp_path / "words.gz").write_bytes(packed)
    with pytest.raises(ValueError, match=r"words\.gz is no text file of word vectors"):
        word_vectors(tmp_path / "words.gz", {"dog"})


def test_a_file_that_has_none_of_the_names_is_refused(tmp_path):
    (tmp_path / "words.txt").write_text("chien 1 2\n")
    with pytest.raises(ValueError, match=r"words\.txt has no vector for any of 2 names, such as 'dog'"):
        label_vectors(tmp_path / "words.txt", ["dog", "cat"])


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file of word vectors"):
        label_vectors(tmp_path / "glove.txt", ["dog"])


def test_only_what_is_wanted_is_read(tmp_path):
    (tmp_path / "words.txt").write_text("dog 1 2\nbroken 1\n")
    assert torch.equal(label_vectors(tmp_path / "words.txt", ["dog"]), torch.tensor([[1.0, 2.0]]))
