import pytest

from datagen.checks import gone, verifier_script
from datagen.reward_paths import fault

SOUND = {
    "a trap on exit": "set -e\ntrap 'echo $r > $d/reward.txt' EXIT\nr=0\ncmp a b || exit 1\nr=1\n",
    "0 first": "#!/bin/bash\necho 0 > /logs/verifier/reward.txt\ncmp a b || exit 1\necho 1 > /logs/verifier/reward.txt\n",
    "both branches": "pytest\nif [ $? -eq 0 ]; then\n  echo 1 > reward.txt\nelse\n  echo 0 > reward.txt\nfi\n",
    "a function": "give() {\n  echo $1 > reward.txt\n}\ncmp a b && r=1\ngive $r\n",
    "a one-line function in a trap": "give() { echo $r > reward.txt; }\ntrap give EXIT\nexit 1\n",
    "elif": "if a; then\n echo 1 > reward.json\nelif b; then\n echo 0 > reward.json\nelse\n echo 0 > reward.json\nfi\n",
    "a named file": "out=/logs/verifier/reward.txt\nmkdir -p x && echo 0 > $out\nexit 1\n",
    "and then or else": "cmp a b && echo 1 > reward.txt || echo 0 > reward.txt\n",
    "set -e after mkdir only": "set -e\nmkdir -p out\necho 0 > out/reward.txt\nfalse\n",
}
FAULTY = {
    "never": "cmp a b\n",
    "if without else": "if cmp a b; then\n  echo 1 > reward.txt\nfi\n",
    "an empty branch": "if cmp a b; then\n  echo 1 > reward.txt\nelse\n  echo no\nfi\n",
    "exit first": "cmp a b || exit 1\necho 1 > reward.txt\n",
    "exit in a branch": "if ! cmp a b; then\n  exit 1\nfi\necho 1 > reward.txt\n",
    "and then": "cmp a b && echo 1 > reward.txt\n",
    "a named file that nobody writes": "out=/logs/verifier/reward.txt\ncmp a b\n",
    "removed only": "rm -f reward.txt\n",
    "set -e": "set -e\ncmp a b\necho 1 > reward.txt\n",
    "a loop that may not run": "for f in *.txt; do\n  echo 1 > reward.txt\ndone\n",
    "a here-document only": "cat <<EOF\nreward.txt\necho 1 > reward.txt\nEOF\n",
    "a comment only": "# echo 1 > reward.txt\ncmp a b\n",
}


@pytest.mark.parametrize("script", SOUND.values(), ids=SOUND)
def test_a_script_that_always_writes_has_no_fault(script: str) -> None:
    assert fault(script) is None


@pytest.mark.parametrize("script", FAULTY.values(), ids=FAULTY)
def test_a_script_with_a_path_without_reward_is_found(script: str) -> None:
    assert fault(script) is not None


def test_the_message_names_the_line_by_which_the_script_leaves() -> None:
    assert fault("cmp a b || exit 3\necho 1 > reward.txt\n") == (
        "test.sh can leave at 'cmp a b || exit 3' before it writes a reward"
    )


def test_our_own_verifiers_pass() -> None:
    assert fault(verifier_script([gone("x")])) is None
