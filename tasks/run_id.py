"""Who and when we are: the flow run's id labels everything that it starts, its scheduled day names dated results."""

from prefect.runtime import flow_run

from benchmarks.config import BenchmarkConfig


def current_run_id() -> str:
    """Id of the outermost flow run of this process."""
    return str(flow_run.root_flow_run_id or flow_run.id)


def on_its_day(config: BenchmarkConfig) -> BenchmarkConfig:
    """``config`` with results in a directory named by the day for which the run was scheduled; the same when it is tried again."""
    day = flow_run.scheduled_start_time.strftime("%Y-%m-%d")
    return config.model_copy(update={"out": config.out / day})
