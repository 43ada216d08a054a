"""Every family's instances, played for real with bash."""

import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from contracts.task import TaskSpec, read_task
from datagen.draw import Draw
from datagen.families import FAMILIES, TINY_FAMILIES
from datagen.generate import write_instance
from datagen.records import Candidate
from datagen.words import Split
from rollout.script import script_of

Grade = Callable[[TaskSpec, Sequence[str]], float]

WRONG = {
    "write_file": "echo {a}x > {f}",
    "rename_file": "cp {f} {g}",
    "sort_lines": "sort -u {f} > {g}",
    "count_lines": "wc -w < {f} > {g}",
    "move_files": "mkdir {d} && cp *.{e} {d}",
    "filter_log": "grep {v} {f} > {g}",
    "aggregate_csv": "awk -F, 'NR > 1 {{ t += $4 }} END {{ print t }}' {f} > {g}",
    "edit_json": 'sed -i \'s/"{k}": [0-9]*/"{k}": {n}/\' {f}',
    "edit_ini": "sed -i 's/^{k} = .*/{k} = {v}/' {f}",
    "search_replace": "sed -i 's/{a}/{b}/' *.{e} {d}/*.{e}",
    "archive": "tar -czf {f} -C {d} .",
    "dedupe_lines": "sort -u {f} > {g}",
}
ALSO_RIGHT = {
    "write_file": "printf {a} > {f}",
    "rename_file": "cp {f} {g} && rm {f}",
    "sort_lines": "sort {f} > scratch && mv scratch {g}",
    "count_lines": "printf '  %s' $(grep -c '' {f}) > {g}",
    "move_files": "mkdir -p {d} && for x in *.{e}; do mv $x {d}/$x; done",
    "filter_log": "grep '^[^ ]* [^ ]* {v} ' {f} > {g}",
    "aggregate_csv": "grep ',{v},' {f} | cut -d, -f4 | paste -sd+ - | sed 's/.*/echo $((&))/' | bash > {g}",
    "edit_json": 'sed \'/"{s}"/,/}}/ s/"{k}": .*,/"{k}":{n},/\' {f} | tr -d \'\\n \' > scratch && mv scratch {f}',
    "edit_ini": "sed -i -e '/\\[{s}\\]/,/^$/ s/^{k} = .*/{k}={v}/' -e '1i # edited' {f}",
    "search_replace": "for x in *.{e} {d}/*.{e}; do sed 's/{a}/{b}/g' $x > scratch; cat scratch > $x; done",
    "archive": "tar -cf - ./{d} | gzip > {f}",
    "dedupe_lines": "cat -n {f} | sort -k2 -u | sort -n | cut -f2 > {g}",
}


INSTANCES: tuple[tuple[Split, int], ...] = (("train", 0), ("train", 1), ("eval", 0))


def made(path: Path, family: str, split: Split = "train", index: int = 0, seed: int = 7) -> TaskSpec:
    """The directory of one instance."""
    candidate = Candidate(name=f"{family}-{split}-{index:04d}", family=family, split=split, index=index)
    write_instance(path / candidate.name, candidate, seed, "debian:12.11-slim")
    return read_task(path / candidate.name)


def args_of(task: TaskSpec) -> dict[str, str]:
    """What the wording was filled with."""
    return task.metadata["openforge"]["args"]


@pytest.mark.parametrize("family", FAMILIES)
def test_doing_nothing_scores_0_and_the_reference_solution_scores_1(family: str, tmp_path: Path, grade: Grade) -> None:
    for split, index in INSTANCES:
        task = made(tmp_path, family, split, index)
        assert grade(task, ()) == 0.0, task.instruction
        assert grade(task, script_of(task)) == 1.0, task.instruction


@pytest.mark.parametrize("family", FAMILIES)
def test_a_plausible_wrong_solution_scores_0(family: str, tmp_path: Path, grade: Grade) -> None:
    for index in range(3):
        task = made(tmp_path, family, index=index)
        assert grade(task, (WRONG[family].format(**args_of(task)),)) == 0.0, task.instruction


@pytest.mark.parametrize("family", FAMILIES)
def test_another_way_to_the_same_outcome_scores_1(family: str, tmp_path: Path, grade: Grade) -> None:
    for index in range(2):
        task = made(tmp_path, family, index=index)
        assert grade(task, (ALSO_RIGHT[family].format(**args_of(task)),)) == 1.0, task.instruction


@pytest.mark.parametrize("family", FAMILIES)
def test_a_right_answer_that_harms_another_file_scores_0(family: str, tmp_path: Path, grade: Grade) -> None:
    task = made(tmp_path, family)
    named = set(args_of(task).values())
    files = [p.relative_to(task.files_dir).as_posix() for p in task.files_dir.rglob("*") if p.is_file()]
    spared = [f for f in files if f not in named and not f.endswith("." + args_of(task).get("e", "-"))]
    victim = next(iter(spared), args_of(task).get("f", ""))
    assert grade(task, (*script_of(task), f"echo more >> {shlex.quote(victim)}")) == 0.0


@pytest.mark.parametrize("family", FAMILIES)
def test_an_instance_follows_from_family_split_seed_and_index(family: str) -> None:
    first, again, other = (FAMILIES[family].make(Draw(family, "train", seed, 3)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_uses_every_one_of_its_three_wordings(family: str) -> None:
    shapes = set()
    for index in range(40):
        instance = FAMILIES[family].make(Draw(family, "train", 0, index))
        text = instance.instruction
        for value in sorted(instance.args.values(), key=len, reverse=True):
            text = re.sub(rf"\b{re.escape(value)}\b", "_", text)
        shapes.add(text)
    assert len(shapes) == 3


def test_train_and_eval_share_no_word_in_arguments_or_files() -> None:
    words: dict[str, set[str]] = {"train": set(), "eval": set()}
    for family in FAMILIES.values():
        for split in ("train", "eval"):
            for index in range(25):
                draw = Draw(family.name, split, 0, index)
                family.make(draw)
                words[split] |= set(draw.used)
    assert len(words["train"]) > 1000
    assert len(words["eval"]) > 1000
    assert not words["train"] & words["eval"]


@pytest.mark.parametrize("family", TINY_FAMILIES)
def test_the_tiny_families_are_solved_by_one_command_made_of_the_instructions_words(family: str) -> None:
    shapes = {
        "write_file": r"echo (\S+) > (\S+)",
        "rename_file": r"mv (\S+) (\S+)",
        "sort_lines": r"sort (\S+) > (\S+)",
        "count_lines": r"wc -l < (\S+) > (\S+)",
    }
    for index in range(10):
        instance = FAMILIES[family].make(Draw(family, "train", 0, index))
        (command,) = instance.commands
        found = re.fullmatch(shapes[family], command)
        assert found is not None
        assert all(word in instance.instruction.split() for word in found.groups())
        assert not instance.instruction.endswith(".")
