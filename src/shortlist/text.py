"""Names from data and paths, shown: none steers a terminal or breaks a page, and commands with them can be copied."""

import re
import shlex

# control characters but for line feeds and tabs, marks that reverse the direction of text, and halves of characters
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with characters that would steer a terminal, or are not allowed in a page, written out.

    >>> print(visible("\\x1b[31mred"))
    \\x1b[31mred
    """
    return STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def command(*words: object) -> str:
    """A command that can be copied into a shell, whatever is in its paths.

    >>> print(command("shortlist", "train", "--resume", "my runs/first"))
    shortlist train --resume 'my runs/first'
    """
    return shlex.join(map(str, words))
