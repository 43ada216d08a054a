from pathlib import Path

import pytest
from made_results import result_of

from contracts.errors import ConfigError
from contracts.task import read_tasks
from tasks.config import Teacher
from tasks.task_sets import chosen, linked
from tasks.teacher import pending, record, requests, teaching_sessions


def test_chosen_goes_by_split_family_and_number(make_task, tmp_path: Path):
    for name, family, split in [("a", "f", "train"), ("b", "g", "train"), ("c", "f", "eval"), ("d", "f", "train")]:
        make_task(name, family, split)
    root = tmp_path / "set"

    assert [t.name for t in chosen(root, "train", (), None)] == ["a", "b", "d"]
    assert [t.name for t in chosen(root, "train", ("f",), None)] == ["a", "d"]
    assert [t.name for t in chosen(root, None, ("f",), 2)] == ["a", "c"]


def test_nothing_chosen_names_what_there_is(make_task, tmp_path: Path):
    make_task("a", "f", "train")
    with pytest.raises(ConfigError, match=r"Splits there: train; families there: f\."):
        chosen(tmp_path / "set", "eval", (), None)


def test_a_linked_set_holds_exactly_the_given_tasks_and_is_made_anew(make_task, tmp_path: Path):
    first, second = make_task("a"), make_task("b")
    linked([first, second], tmp_path / "links")

    linked([second], tmp_path / "links")

    (found,) = read_tasks(tmp_path / "links")
    assert (found.name, found.path) == ("b", second.path)


def test_a_teacher_is_asked_again_only_for_what_the_infrastructure_failed(make_task, tmp_path: Path):
    make_task("a")
    make_task("b")
    make_task("c")
    teacher = Teacher(tasks=tmp_path / "set")
    solved, unsolved, lost = requests(teacher, "run")
    record(tmp_path, result_of(solved, reward=1.0))
    record(tmp_path, result_of(unsolved, reward=0.0))
    record(tmp_path, result_of(lost, reward=None))

    assert [r.rollout_id for r in pending(teacher, tmp_path, "run")] == ["teach-c-r1"]
    assert teaching_sessions(teacher, tmp_path, "run") == ["s-teach-a-r1"]
