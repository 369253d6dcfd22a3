"""What a user's files probably are: which reader reads them, which columns are labels, ids or images. Every guess is
told, with the option that changes it."""

from shortlist.runs.guess.guessed import Guess
from shortlist.runs.guess.source import guess_source

__all__ = ["Guess", "guess_source"]
