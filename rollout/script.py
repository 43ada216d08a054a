"""The shell commands of a task's reference solution, one tool call each.

Each call runs in a shell of its own, so a solution that is to be played must not carry variables or `cd` from one
command to the next.
"""

import re

from contracts.errors import TaskError
from contracts.task import TaskSpec

TOKEN = re.compile(
    r"""
      (?P<quoted>   '[^']*' | "(?:[^"\\]|\\.)*" | \\. | \$\(\( (?:[^()]|\([^()]*\))* \)\) )
    | (?P<comment>  (?<![^\s;&|()])\#[^\n]* )
    | (?P<here>     <<-?\s*(?P<q>['"]?)(?P<end>\w+)(?P=q) (?<!<<<) )
    | (?P<op>       <<< | \n | ;; | && | \|\| | [;|&()] )
    | (?P<word>     [^\s'"\\;|&()<>]+ | [<>] )
    | (?P<open>     ['"\\] )
    """,
    re.VERBOSE | re.DOTALL,
)
CLOSES = {"if": "fi", "for": "done", "while": "done", "until": "done", "select": "done", "case": "esac", "{": "}"}
LEADS = {"then", "do", "else", "elif", "if", "while", "until", "{", "!"}
"""Words after which another command begins."""
SHELL_OPTIONS = re.compile(r"set(\s+[-+]\w+|\s+pipefail)+\s*")
CHANGES_SHELL = re.compile(
    r"(cd|pushd|popd|export|declare|typeset|readonly|source|\.|shopt|umask|alias|trap|exec|unset|eval|function)\s"
    r"|[A-Za-z_]\w*(\[[^]]*\])?\+?=|[A-Za-z_][\w-]*\s*\(\)"
)
"""A command that later ones may depend on."""


def script_of(task: TaskSpec) -> tuple[str, ...]:
    """The commands of ``solution/solve.sh``; empty when the task ships none.

    Raises:
        TaskError: the file cannot be read, or ends within a quote, a here-document or a compound command.
    """
    if not task.solve_path.is_file():
        return ()
    try:
        text = task.solve_path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise TaskError(f"task {task.name!r}: solution/solve.sh cannot be read ({e}); save it as UTF-8.") from e
    try:
        return _dependent_together(commands_of(text))
    except ValueError as e:
        raise TaskError(f"task {task.name!r}: solution/solve.sh {e}; complete that command.") from e


def commands_of(script: str) -> tuple[str, ...]:
    """Split a shell script into its top-level commands.

    Comments, blank lines and shell options (``set -e``) between commands are left out; a compound command, a
    here-document or a continued line stays one command.
    Raises:
        ValueError: the last command is not complete.
    """
    commands: list[str] = []
    held = ""
    for line in script.splitlines():
        held = f"{held}\n{line}" if held else line
        text = held.strip()
        if not text or text.startswith("#") or SHELL_OPTIONS.fullmatch(text):
            held = ""
        elif is_complete(held):
            commands.append(text)
            held = ""
    if held:
        raise ValueError(f"ends within the command that begins with {held.strip().splitlines()[0]!r}")
    return tuple(commands)


def _dependent_together(commands: tuple[str, ...]) -> tuple[str, ...]:
    """Join everything from the first command that changes the shell on."""
    for i, command in enumerate(commands):
        if CHANGES_SHELL.match(command):
            return (*commands[:i], "\n".join(commands[i:]))
    return commands


def is_complete(text: str) -> bool:
    """Whether the shell would run ``text`` without waiting for another line."""
    depth: list[str] = []
    here: list[str] = []
    at_start, last = True, ""
    position = 0
    text += "\n"
    while position < len(text):
        found = TOKEN.match(text, position)
        if found is None:  # white space
            position += 1
            continue
        position = found.end()
        token = found.group(0)
        if found["open"] or (token == "\\\n" and position == len(text)):
            return False
        if found["here"]:
            here.append(found["end"])
        elif token == "\n" and here:
            ends = _after(text, position, here)
            if ends is None:
                return False
            position, here = ends, []
        if found["comment"]:
            continue
        if at_start and found["word"]:
            _nest(depth, token)
        elif token == "(":
            depth.append(")")
        elif token == ")" and depth and depth[-1] == ")":
            depth.pop()
        at_start = (bool(found["op"]) and token != "<<<") or (at_start and token in LEADS)
        last = token if token != "\n" else last
    return not depth and last not in ("|", "&&", "||")


def _nest(depth: list[str], word: str) -> None:
    """Open or close a compound command."""
    if word in CLOSES:
        depth.append(CLOSES[word])
    elif depth and word == depth[-1]:
        depth.pop()


def _after(text: str, position: int, ends: list[str]) -> int | None:
    """The position behind the here-documents that begin at ``position``; None when one has no end."""
    for end in ends:
        found = re.compile(rf"^\t*{re.escape(end)}$", re.MULTILINE).search(text, position)
        if found is None:
            return None
        position = found.end()
    return position
