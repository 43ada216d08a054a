"""One rollout as one Prefect task run."""

from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.states import Completed

from contracts.rollout import Outcome, RolloutRequest, RolloutResult
from rollout.retry import run_with_retries
from tasks.site import Site

STATE_NAMES = {Outcome.COMPLETED: "Completed", Outcome.TRUNCATED: "Truncated", Outcome.FAILED: "NotGraded"}
"""Outcome → name of the task run's state. Its type is always completed: a failed rollout is data, and the task delivered it."""


# NO_CACHE: nothing is hashed and no result file is written; transcripts are in the call log, never in Prefect's database.
@task(name="rollout", task_run_name="{request.rollout_id}", cache_policy=NO_CACHE, tags=["rollout"])
async def run_rollout(request: RolloutRequest, site: Site) -> Any:
    """Run one request at ``site``; the state's name is the outcome, its message the reward or the cause.

    Raises:
        ConfigError: the request names something that cannot be used.
    """
    result = await run_with_retries(
        request,
        proxy=site.proxy,
        sandbox=site.sandbox,
        images=site.images,
        truncated=site.truncated,
        max_attempts=site.max_attempts,
    )
    return Completed(name=STATE_NAMES[result.outcome], message=in_words(result), data=result)


def in_words(result: RolloutResult) -> str:
    """One line for people: the reward or the cause, calls and seconds."""
    how = f"reward {result.reward:g}" if result.reward is not None else f"no reward, {result.cause}"
    detail = f": {result.evidence.detail}" if result.evidence.detail else ""
    return f"{how} after {result.calls} calls in {result.wall_s:.1f} s{detail}"


def longest_s(request: RolloutRequest, site: Site) -> float:
    """After how many seconds a rollout's task run is given up; every wait inside it ends well before."""
    one_attempt = request.limits.wall_clock_s + request.limits.verifier_s + site.overhead_s
    return one_attempt * site.max_attempts
