"""Recording a teacher: which sessions are asked for, which are there already, which ones teach.

<run_dir>/teacher.jsonl     one RolloutResult per line, in the order they ended
<run_dir>/teacher.sqlite    the call log of the sessions
"""

from pathlib import Path

from contracts.rollout import RETRYABLE, RolloutRequest, RolloutResult
from datagen.store import append_line, read_lines
from tasks.config import Teacher
from tasks.task_sets import chosen

POLICY = "teacher"
"""Name of the teacher's engine in the proxy."""


def results_file(run_dir: Path) -> Path:
    """Where the results of the teacher's rollouts lie."""
    return run_dir / "teacher.jsonl"


def call_log(run_dir: Path) -> Path:
    """Where the teacher's sessions are recorded."""
    return run_dir / "teacher.sqlite"


def requests(teacher: Teacher, run_id: str) -> list[RolloutRequest]:
    """Every session that is wanted, tasks by name.

    Raises:
        ConfigError: the task set cannot be read, or holds nothing that is asked for.
    """
    tasks = chosen(teacher.tasks, teacher.split, teacher.families, teacher.max_tasks)
    return [
        RolloutRequest(
            rollout_id=f"teach-{task.name.replace('_', '-')}-r{number}",
            run_id=run_id,
            task=task.path,
            harness=teacher.harness,
            policy=POLICY,
            group_id=f"teach-{task.name}",
            limits=teacher.limits,
        )
        for task in tasks
        for number in range(1, teacher.rollouts_per_task + 1)
    ]


def pending(teacher: Teacher, run_dir: Path, run_id: str) -> list[RolloutRequest]:
    """The wanted sessions without a lasting result; raises as `requests` does."""
    done = {r.rollout_id for r in recorded(run_dir).values() if r.cause not in RETRYABLE}
    return [r for r in requests(teacher, run_id) if r.rollout_id not in done]


def record(run_dir: Path, result: RolloutResult) -> None:
    """Keep one result durably."""
    append_line(results_file(run_dir), result)


def recorded(run_dir: Path) -> dict[str, RolloutResult]:
    """Rollout id → its last result."""
    return {result.rollout_id: result for result in read_lines(results_file(run_dir), RolloutResult)}


def teaching_sessions(teacher: Teacher, run_dir: Path, run_id: str) -> list[str]:
    """Sessions of the wanted rollouts that earned enough, in the order of the requests."""
    results = recorded(run_dir)
    wanted = (results.get(request.rollout_id) for request in requests(teacher, run_id))
    return [
        r.session_id
        for r in wanted
        if r is not None and r.session_id is not None and (r.reward or 0.0) >= teacher.min_reward
    ]
