"""`rl-train`: one subflow per training step, one task run per rollout, results back to the trainer as they come."""

from pathlib import Path

from prefect import flow, get_run_logger

from flows.config import RlRun
from flows.hooks import SWEEPS
from tasks.artifacts import Progress, show_link, show_table
from tasks.checkpoints import checkpoint_of
from tasks.fanout import roll_out_stream
from tasks.leases import StepFeed, step_feed
from tasks.run_id import current_run_id
from tasks.site import Site
from tasks.steps import in_words, reward_rows
from tasks.task_sets import chosen, linked
from tasks.train import rl_training
from trainer.checkpoints import latest_hf
from trainer.records import read_steps, step_path


@flow(
    name="rl-train",
    flow_run_name="{config.run_dir.name}-{config.rl.steps}x{config.rl.prompts_per_step}x{config.rl.group_size}",
    **SWEEPS,
)
async def rl_train(config: RlRun) -> Path:
    """Reinforcement learning on rollouts through the real harness; a second run of a run directory continues it.

    Returns:
        the newest checkpoint, in Hugging Face's format.
    """
    run_dir, run_id = config.run_dir, current_run_id()
    tasks = linked(chosen(config.rl.tasks, config.split, config.families, None), run_dir / "tasks")
    settings = config.rl.model_copy(update={"model": checkpoint_of(config.rl.model), "tasks": tasks})
    progress = await Progress.started("rl-progress", "training steps", settings.steps)
    async with rl_training(settings, run_dir, run_id) as training:
        site = Site(
            run_id,
            training.proxy,
            config.machine,
            max_parallel=settings.max_parallel,
            truncated=settings.truncated,
            max_attempts=2,
        )
        get_run_logger().info("training from step %d", training.process.resumed_from)
        async with step_feed(training, run_id, settings.prompts_per_step * settings.group_size) as feed:
            while (step := await feed.next_step()) is not None:
                await rl_step(step, run_dir, feed, site)
                await progress.reach(step)
    await show_table("rl-reward", reward_rows(read_steps(run_dir)), "Training steps")
    await show_link("rl-steps", (run_dir / "steps").resolve().as_uri(), "step records")
    return latest_hf(run_dir)


# Not persisted: a run that is tried again starts from the trainer's checkpoint, whose queue asks for its rollouts anew.
@flow(name="rl-step", flow_run_name="step-{step}", validate_parameters=False)
async def rl_step(step: int, run_dir: Path, feed: StepFeed, site: Site) -> Path:
    """Run the rollouts of one step until the trainer goes on to another one; returns the step's record."""
    await roll_out_stream(feed.of_step(step), site, feed.finish)
    record = step_path(run_dir, step)
    get_run_logger().info(in_words(record))
    return record
