"""Fitted set rules in files: JSON, one for each rule."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from shortlist.errors import ShortlistError
from shortlist.files import PathLike, write_text
from shortlist.sets import SetRule
from shortlist.text import command


def save_rules(folder: PathLike, rules: Mapping[str, SetRule]) -> None:
    """One JSON file per rule; rules of other names stay."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, rule in rules.items():
        write_text(Path(folder) / f"{name}.json", rule.to_json())


def load_rules(folder: PathLike, allow_import: Sequence[str] = ()) -> dict[str, SetRule]:
    """The rules in a folder, by file name, in alphabetical order; a single rule file is fine too."""
    path = Path(folder)
    files = [path] if path.is_file() else sorted(path.glob("*.json"))
    rules = {}
    for file in files:
        try:
            rules[file.stem] = SetRule.from_json(file.read_text("utf-8"), allow_import=allow_import)
        except ValueError as error:
            raise ShortlistError(f"{file}: {error}") from None
    return rules


def given_rules(folder: PathLike, allow_import: Sequence[str] = ()) -> dict[str, SetRule]:
    """The rules that somebody names, of which there must be some."""
    rules = load_rules(folder, allow_import)
    if not rules:
        write = command("shortlist", "calibrate", "--out", folder)
        raise ShortlistError(f"there are no rules in {folder}: write them with {write}")
    return rules
