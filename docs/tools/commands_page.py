"""The command line's reference, from the commands themselves."""

import inspect
from typing import Any

import typer
from docstring_parts import flat, table, written_by

from shortlist.cli import COMMANDS, make_app

INTRODUCTION = f"""\
# Command line

{written_by("the commands' help")}

`shortlist --help` lists the commands, `shortlist COMMAND --help` explains one. The exit code is 0 if all is well, 1
if something failed, 2 if the command or its input is wrong, 3 if all is done but images that could not be decoded, and
130 after an interruption. `--json` prints results for programs.
"""


def commands() -> dict[str, Any]:
    """'data check' -> its command: every command that does something, groups opened."""
    found: dict[str, Any] = {}
    for name in COMMANDS:
        app = typer.main.get_command(make_app(typer, name))
        command = app.commands[name]  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        found |= {f"{name} {part}": value for part, value in inner.items()} if inner else {name: command}
    return found


def page() -> str:
    found = commands()
    overview = table(
        ["command", "what it does"],
        [[f"[`{name}`](#shortlist-{name.replace(' ', '-')})", _first(command)] for name, command in found.items()],
    )
    return "\n".join([INTRODUCTION, overview, *(_section(name, command) for name, command in found.items())])


def _section(name: str, command: Any) -> str:
    shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
    arguments = [p for p in shown if p.param_type_name == "argument"]
    options = [p for p in shown if p.param_type_name == "option" and p.name != "help"]
    usage = " ".join(["shortlist", name, *(_metavar(p) for p in arguments), *(["[OPTIONS]"] if options else [])])
    text = inspect.cleandoc(command.help or "").replace("\\[", "[")
    parts = [f"## shortlist {name}\n", f"```text\n{usage}\n```\n", text + "\n"]
    if arguments:
        parts.append(table(["argument", ""], [[f"`{_metavar(p)}`", flat(p.help or "")] for p in arguments]))
    if options:
        parts.append(table(["option", ""], [[_flags(p), flat(p.help or "")] for p in options]))
    return "\n".join(parts)


def _first(command: Any) -> str:
    text = flat(inspect.cleandoc(command.help or "").split("\n\n")[0])
    return text.split(". ")[0].rstrip(" .,")


def _metavar(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return (name if argument.required else f"[{name}]") + ("..." if argument.nargs == -1 else "")


def _flags(option: Any) -> str:
    value = "" if option.is_flag else f" {option.metavar or option.name.upper()}"
    return ", ".join(f"`{flag}{value}`" for flag in sorted(option.opts, key=len, reverse=True))
