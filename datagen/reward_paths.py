"""Whether a verifier script writes a reward on every path, judged from its text.

An approximation on the safe side for the usual shapes: a trap on EXIT, a write at top level, or an if whose branches
all write.
"""

import re
from dataclasses import dataclass, field

REWARD_FILE = r"reward\.(?:txt|json)\b"
NAMED_FILE = re.compile(rf"^(?:export\s+|readonly\s+|local\s+)?(\w+)=\S*{REWARD_FILE}\S*$")
TRAP = re.compile(r"^trap\b.*\bEXIT\b")
FUNCTION = re.compile(r"^(?:function\s+)?(\w+)\s*\(\)\s*\{?|^function\s+(\w+)\s*\{")
OPENER = re.compile(r"^(if|for|while|until|case)\b|^\{$|^\($")
CLOSER = re.compile(r"^(fi|done|esac)\b|^\}|^\)$")
ONE_LINE = re.compile(r"\b(fi|done|esac)\s*$")
BRANCH = re.compile(r"^(elif|else)\b")
LEAVES = re.compile(r"(^|\|\||&&|;|\bthen)\s*(exit|exec)\b")
HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?")
CANNOT_FAIL = re.compile(r"^(\w+=|mkdir\b|cd\b|export\b|set\b|umask\b)")
STOPS_ON_ERROR = re.compile(r"^set\s+-\w*e")


@dataclass
class _Block:
    """A compound command: its kind and its branches, each a list of lines and inner blocks."""

    kind: str
    branches: list[list["str | _Block"]] = field(default_factory=lambda: [[]])
    has_else: bool = False


@dataclass
class _Words:
    """By what a line of this script is known to write the reward."""

    write: re.Pattern[str]
    functions: set[str]

    def in_trap(self, line: str) -> bool:
        return bool(self.write.search(line)) or any(re.search(rf"\b{name}\b", line) for name in self.functions)

    def surely(self, line: str) -> bool:
        """Whether the line writes whatever the commands before it in the same line say."""
        if re.split(r"[\s;]", line, maxsplit=1)[0] in self.functions:
            return True
        found = list(self.write.finditer(line))
        if not found:
            return False
        before = re.split(r"&&|\|\|", line[: found[0].start()])[:-1]
        return len(found) > 1 or all(CANNOT_FAIL.match(command.strip()) for command in before)


def fault(script: str) -> str | None:
    """Why ``script`` may end without a reward; None when every path writes one."""
    lines = _code(script)
    words = _words(lines)
    if not any(words.write.search(line) for line in lines):
        return "test.sh never writes reward.txt or reward.json"
    top, functions = _parse(lines)
    words.functions |= {name for name, block in functions.items() if _covers(block.branches[0], words)[0]}
    covered, left_by = _covers(top.branches[0], words)
    if covered:
        return None
    if left_by is not None:
        return f"test.sh can leave at {left_by!r} before it writes a reward"
    return "test.sh writes a reward on some paths only"


def _code(script: str) -> list[str]:
    """Stripped lines without comments, here-documents and blanks."""
    lines: list[str] = []
    end: str | None = None
    for raw in script.splitlines():
        line = raw.strip()
        if end is not None:
            end = None if line == end else end
            continue
        if not line or line.startswith("#"):
            continue
        lines.append(line)
        if "<<<" not in line and (here := HEREDOC.search(line)):
            end = here.group(1)
    return lines


def _words(lines: list[str]) -> _Words:
    names = [found.group(1) for line in lines if (found := NAMED_FILE.match(line))]
    file = "|".join([REWARD_FILE, *(rf"\$\{{?{name}\b" for name in names)])
    write = re.compile(rf"(?:>|\b(?:tee|cp|mv)\b)[^;&|]*?(?:{file})")
    one_line = {m.group(1) or m.group(2) for line in lines if (m := FUNCTION.match(line)) and write.search(line)}
    return _Words(write, one_line)


def _parse(lines: list[str]) -> tuple[_Block, dict[str, _Block]]:
    """The script as a tree, and its functions apart."""
    top = _Block("top")
    functions: dict[str, _Block] = {}
    stack = [top]
    for line in lines:
        if name := FUNCTION.match(line):
            if not line.endswith("}"):
                functions[name.group(1) or name.group(2)] = block = _Block("function")
                stack.append(block)
        elif opener := OPENER.match(line):
            block = _Block(opener.group(0))
            stack[-1].branches[-1].append(block)
            if ONE_LINE.search(line):
                block.branches[0].append(line)
            else:
                stack.append(block)
        elif BRANCH.match(line) and stack[-1].kind == "if":
            stack[-1].has_else |= line.startswith("else")
            stack[-1].branches.append([])
        elif CLOSER.match(line) and len(stack) > 1:
            stack.pop()
        else:
            stack[-1].branches[-1].append(line)
    return top, functions


def _covers(body: list["str | _Block"], words: _Words) -> tuple[bool, str | None]:
    """Whether ``body`` surely writes before it ends or leaves; else the line by which it may leave."""
    stops_on_error = False
    for item in body:
        if isinstance(item, _Block):
            covered, left_by = _block_covers(item, words)
            if covered or left_by is not None:
                return covered, left_by
            continue
        if words.surely(item) or (TRAP.match(item) and words.in_trap(item)):
            return True, None
        if LEAVES.search(item):
            return False, item
        if STOPS_ON_ERROR.match(item):
            stops_on_error = True
        elif stops_on_error and not CANNOT_FAIL.match(item):
            return False, f"{item} (set -e)"
    return False, None


def _block_covers(block: _Block, words: _Words) -> tuple[bool, str | None]:
    ends = [_covers(branch, words) for branch in block.branches]
    runs_one = block.kind in ("{", "(") or (block.kind == "if" and block.has_else)
    if runs_one and all(covered for covered, _ in ends):
        return True, None
    return False, next((left_by for covered, left_by in ends if left_by is not None and not covered), None)
