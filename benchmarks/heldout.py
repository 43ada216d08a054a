"""The held-out split as rollout requests, and the results file that lets a killed run continue.

<out>/results/<policy>.jsonl         one RolloutResult per line, in the order they ended
<out>/results/<policy>.setup.json    what those results were measured with; a run with another setup is refused
"""

import hashlib
import json
import os
import re
from collections import defaultdict
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ValidationError

from benchmarks.config import BenchmarkConfig, MeasuredPolicy
from contracts.errors import ConfigError
from contracts.rollout import RETRYABLE, RolloutRequest, RolloutResult
from contracts.task import TaskSpec, read_tasks


def held_out(config: BenchmarkConfig) -> list[TaskSpec]:
    """The tasks that are measured, by name.

    Raises:
        TaskError: the task set cannot be read.
        ConfigError: no task has the split and families asked for.
    """
    every = read_tasks(config.tasks)
    wanted = [
        task
        for task in every
        if (config.split is None or task.split == config.split)
        and (not config.families or task.family in config.families)
    ]
    if not wanted:
        splits = ", ".join(sorted({str(t.split) for t in every}))
        families = ", ".join(sorted({str(t.family) for t in every}))
        raise ConfigError(
            f"no task of {str(config.tasks)!r} has split = {config.split!r} and families = {list(config.families)!r}. "
            f"Splits there: {splits}; families there: {families}. Choose among these."
        )
    return sorted(_spread(wanted, config.max_tasks), key=lambda task: task.name)


def requests(config: BenchmarkConfig, run_id: str) -> list[RolloutRequest]:
    """Every attempt of the benchmark: policies in order, tasks by name, ``rollouts_per_task`` each.

    Ids are the same in each run as long as the task is.

    Raises:
        ConfigError: the task set is broken or nothing in it is asked for.
    """
    tasks = held_out(config)
    return [
        RolloutRequest(
            rollout_id=f"{_group(policy, task)}-r{i}",
            run_id=run_id,
            task=task.path,
            harness=config.harness,
            policy=policy.name,
            group_id=_group(policy, task),
            limits=config.limits,
        )
        for policy in config.policies
        for task in tasks
        for i in range(1, config.rollouts_per_task + 1)
    ]


def pending(config: BenchmarkConfig, run_id: str) -> list[RolloutRequest]:
    """The attempts that have no lasting result yet.

    A recorded failure whose cause may pass (RETRYABLE) is asked for again with the next attempt
    number. Writes the setup file of each policy.

    Raises:
        ConfigError: results in ``out`` were measured with another setup, or a results file is broken.
    """
    for policy in config.policies:
        _claim(config, policy)
    done = {policy.name: recorded(config, policy.name) for policy in config.policies}
    left = []
    for request in requests(config, run_id):
        last = done[request.policy].get(request.rollout_id)
        if last is None:
            left.append(request)
        elif last.cause in RETRYABLE:
            left.append(request.model_copy(update={"attempt": last.attempt + 1}))
    return left


def record(config: BenchmarkConfig, result: RolloutResult) -> None:
    """Append one result durably; a line that a killed run left half-written is removed first.

    Raises:
        ConfigError: the result is of a policy that is not measured.
    """
    if config.policy(result.policy) is None:
        known = ", ".join(p.name for p in config.policies)
        raise ConfigError(
            f"result {result.rollout_id!r} is of policy {result.policy!r}, which is not measured. Known: {known}."
        )
    path = results_path(config, result.policy)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+b") as file:
        _drop_torn_line(file)
        file.write(result.model_dump_json().encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def recorded(config: BenchmarkConfig, policy: str) -> dict[str, RolloutResult]:
    """Rollout id → its last recorded result, for everything in the policy's file.

    Raises:
        ConfigError: a line that is not the last one is no RolloutResult.
    """
    path = results_path(config, policy)
    if not path.exists():
        return {}
    *lines, _torn = path.read_bytes().split(b"\n")
    found: dict[str, RolloutResult] = {}
    for number, line in enumerate(lines, start=1):
        try:
            result = RolloutResult.model_validate_json(line)
        except ValidationError as e:
            raise ConfigError(
                f"{path}: line {number} is no rollout result; remove that line or choose another out directory."
            ) from e
        found[result.rollout_id] = result
    return found


def results(config: BenchmarkConfig, policy: str) -> list[RolloutResult]:
    """The recorded results of the attempts that ``config`` asks for, in the order of `requests`."""
    found = recorded(config, policy)
    wanted = (r.rollout_id for r in requests(config, run_id="any") if r.policy == policy)
    return [found[rollout_id] for rollout_id in wanted if rollout_id in found]


def results_path(config: BenchmarkConfig, policy: str) -> Path:
    """Where the results of ``policy`` lie."""
    return config.out / "results" / f"{policy}.jsonl"


def _spread(tasks: list[TaskSpec], most: int | None) -> list[TaskSpec]:
    """At most ``most`` tasks, taken in turn from each family."""
    by_family: dict[str, list[TaskSpec]] = defaultdict(list)
    for task in tasks:
        by_family[task.family or ""].append(task)
    in_turn = [task for turn in zip_longest(*by_family.values()) for task in turn if task is not None]
    return in_turn[:most]


def _group(policy: MeasuredPolicy, task: TaskSpec) -> str:
    """An id that sandboxes accept; by its digest a changed task gets new ids and takes no old results for its own."""
    digest = hashlib.sha256(f"{policy.name}\n{task.model_dump_json(exclude={'path'})}".encode()).hexdigest()[:8]
    readable = re.sub(r"[^A-Za-z0-9.-]", "-", f"{policy.name}-{task.name}")
    return f"{readable[:150]}-{digest}"


def _setup(config: BenchmarkConfig, policy: MeasuredPolicy) -> dict[str, Any]:
    fields = {"harness", "temperature", "limits", "truncated", "seed"}
    return {"model": str(policy.model.resolve()), **config.model_dump(mode="json", include=fields)}


def _claim(config: BenchmarkConfig, policy: MeasuredPolicy) -> None:
    path = results_path(config, policy.name).with_name(f"{policy.name}.setup.json")
    ours = _setup(config, policy)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(ours, indent=2) + "\n", encoding="utf-8")
        return
    try:
        theirs = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as e:
        raise ConfigError(f"{path} is no JSON: {e}; remove that file or choose another out directory.") from e
    changed = [key for key in ours if not isinstance(theirs, dict) or theirs.get(key) != ours[key]]
    if changed:
        raise ConfigError(
            f"results of policy {policy.name!r} in {str(config.out)!r} were measured with another "
            f"{', '.join(changed)} (see {path}). "
            "Choose another out directory, or remove this one to measure again."
        )


def _drop_torn_line(file: BinaryIO) -> None:
    """Cut what follows the last line end; ``file`` is open for reading and appending."""
    end = file.seek(0, os.SEEK_END)
    if end == 0:
        return
    file.seek(end - 1)
    if file.read(1) == b"\n":
        return
    file.seek(0)
    whole = file.read()
    file.truncate(whole.rfind(b"\n") + 1)
    file.seek(0, os.SEEK_END)
