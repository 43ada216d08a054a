from pathlib import Path

import pytest

from contracts.errors import TaskError
from contracts.task import TaskSpec
from rollout.script import commands_of, script_of

ONE_COMMAND = {
    "awk program with braces": "awk -F, '$2 == \"v\" { s += $4 } END { print s }' f > g",
    "program over lines": "awk '\n  { print }\n' x",
    "here-document": "cat > f <<'E'\nline 'open\ndone\nE",
    "here-document in a pipe": "cat <<E | sort\nx\nE",
    "here-string": 'cat <<< "abc"',
    "loop": 'for x in a b; do\n  echo "$x"\ndone',
    "if on one line": "if true; then echo 1; else echo 2; fi",
    "case": "case x in\n  a) echo 1 ;;\n  *) echo 2 ;;\nesac",
    "function": "f() {\n  echo hi\n}",
    "continued line": "echo a \\\n  b",
    "pipe at the end of a line": "ls |\n  wc -l",
    "substitution over lines": "x=$(echo\n hi)",
    "keyword as an argument": "echo done # it's",
    "hash within a word": "echo a#b $#",
    "find with braces": "find . -name '*.e' -exec sed -i 's/a/b/g' {} +",
    "comment within a loop": "for x in a; do\n  # it's fine\n  echo $x\ndone",
}


@pytest.mark.parametrize("command", ONE_COMMAND.values(), ids=ONE_COMMAND)
def test_a_construct_stays_one_command_between_its_neighbours(command: str) -> None:
    script = f"#!/bin/bash\n# note\nset -euo pipefail\n\nmkdir d\n{command}\nls\n"
    assert commands_of(script) == ("mkdir d", command, "ls")


@pytest.mark.parametrize(
    "tail", ["echo 'x", 'echo "x', "if true", "cat <<E\nx", "ls |", "echo a \\", "for x in a; do\nls"]
)
def test_a_command_that_does_not_end_is_refused(tail: str) -> None:
    with pytest.raises(ValueError, match="ends within the command that begins with"):
        commands_of(f"ls\n{tail}")


def test_an_absent_solution_is_an_empty_script_and_a_broken_one_names_the_task(tmp_path: Path) -> None:
    task = TaskSpec(name="t", path=tmp_path, instruction="do")
    assert script_of(task) == ()
    task.solve_path.parent.mkdir()
    task.solve_path.write_text("#!/bin/bash\necho a > b\n\nmv b c\n")
    assert script_of(task) == ("echo a > b", "mv b c")
    task.solve_path.write_text("echo 'a\n")
    with pytest.raises(TaskError, match="task 't': solution/solve.sh ends within"):
        script_of(task)
