"""A request made ready: everything that the sandbox will pull, read and checked before anything is started."""

from pathlib import Path

from contracts.harness import HarnessSpec
from contracts.rollout import RolloutRequest
from contracts.task import TaskSpec, read_task
from contracts.wire import OpenSession
from rollout.bundle import bundle_dir, bundle_files
from rollout.harness import read_harness
from rollout.script import script_of


def validate_request(request: RolloutRequest, images: Path) -> tuple[TaskSpec, HarnessSpec]:
    """Read what the request names.

    Raises:
        ConfigError: unknown harness, broken TOML. TaskError: the task directory cannot be used.
    """
    return read_task(request.task), read_harness(images, request.harness)


def open_session_body(request: RolloutRequest, images: Path) -> tuple[TaskSpec, OpenSession]:
    """What the proxy is told about one attempt; raises as `validate_request` does."""
    task, harness = validate_request(request, images)
    limits = request.limits.model_copy(
        update={
            "wall_clock_s": min(request.limits.wall_clock_s, task.agent_timeout_s),
            "verifier_s": min(request.limits.verifier_s, task.verifier_timeout_s),
        }
    )
    return task, OpenSession(
        request=request.model_copy(update={"limits": limits}),
        harness=harness,
        instruction=task.instruction,
        workspace_tar=bundle_dir(task.files_dir),
        harness_tar=bundle_files(images / harness.name, harness.payload),
        tests_tar=bundle_dir(task.tests_dir),
        script=script_of(task) or None,
    )
