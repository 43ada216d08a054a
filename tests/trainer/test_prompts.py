"""The order of tasks of a run."""

from contracts.task import read_tasks
from trainer.prompts import training_order


def test_every_task_comes_once_before_any_comes_again(three_tasks):
    names = [t.name for t in training_order(read_tasks(three_tasks), 6, seed=1)]
    assert sorted(names[:3]) == sorted(names[3:]) == ["alpha", "beta", "gamma"]


def test_a_longer_run_begins_with_the_same_tasks(three_tasks):
    tasks = read_tasks(three_tasks)
    assert training_order(tasks[::-1], 20, seed=3)[:7] == training_order(tasks, 7, seed=3)


def test_seeds_give_different_orders(three_tasks):
    tasks = read_tasks(three_tasks)
    orders = {tuple(t.name for t in training_order(tasks, 6, seed=s)) for s in range(8)}
    assert len(orders) > 1
