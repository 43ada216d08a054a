"""veRL's synchronous trainer with three things of ours: rows weigh by rollout, each step leaves a record, only whole
checkpoints count.

Imports veRL and torch. Subclassing the trainer through ``run_ppo(task_runner_class=…)`` is veRL's own hook.
"""

import logging
from pathlib import Path
from typing import Any

import torch
import transfer_queue as tq
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.utils.metric import reduce_metrics
from verl.utils.py_functional import rename_dict

from contracts.errors import TrainerError
from trainer.advantages import parse_key, row_weights
from trainer.checkpoints import mark_complete, prune
from trainer.groups import StepFacts
from trainer.invariants import TrainedBatch, step_line, step_record
from trainer.records import StepRecord, StepSeconds, write_step

log = logging.getLogger(__name__)


class RolloutTrainer(PPOTrainerSync):
    """GRPO in which each rollout has total loss weight 1."""

    agent_loop_manager: Any
    _facts: StepFacts
    _max_logprob_diff: float | None
    _trained_tokens: int

    def on_sample_end(self) -> None:
        """Read what became of the step's rollouts; our own failures end the run."""
        self._facts = self.agent_loop_manager.facts(self.global_steps)
        if self._facts.faults:
            raise TrainerError(f"step {self.global_steps}: {'; '.join(self._facts.faults)}")
        super().on_sample_end()

    def _step_once(self, metrics: dict, timing_raw: dict, sample_batch_size: int) -> Any:
        try:
            return super()._step_once(metrics, timing_raw, sample_batch_size)
        except RuntimeError as e:
            if "no materializable trajectories" not in str(e):
                raise
            raise TrainerError(self._why_empty()) from e

    def _why_empty(self) -> str:
        told = self.agent_loop_manager.facts(self.global_steps)
        reasons = sorted({f.detail or f.outcome.value for f in told.facts} | set(told.faults))
        return (
            f"step {self.global_steps}: none of {len(told.facts)} rollouts can be trained ({'; '.join(reasons)}). "
            "Look at one of them with `openforge sessions`, cure its cause, then run the same command again."
        )

    def step(self, metrics: dict, timing_raw: dict) -> Any:
        """One training step; leaves a first record before the checkpoint, so that no saved step is without one."""
        batch = super().step(metrics, timing_raw)
        write_step(self._run_dir, self._record(metrics, timing_raw))
        return batch

    def _compute_old_log_prob(self, batch: Any, metrics: dict) -> Any:
        batch = super()._compute_old_log_prob(batch, metrics)
        data = tq.kv_batch_get(
            keys=batch.keys,
            partition_id=batch.partition_id,
            select_fields=["old_log_probs", "rollout_log_probs", "response_mask"],
        )
        trained, largest = 0, 0.0
        for ours, engines, mask in zip(
            data["old_log_probs"].unbind(0),
            data["rollout_log_probs"].unbind(0),
            data["response_mask"].unbind(0),
            strict=True,
        ):
            chosen = mask.bool()
            if chosen.any():
                trained += int(chosen.sum())
                largest = max(largest, float((ours[chosen] - engines[chosen]).abs().max()))
        self._trained_tokens = trained
        self._max_logprob_diff = largest if trained else None
        return batch

    def _compute_advantage(self, batch: Any, metrics: dict) -> Any:
        batch = super()._compute_advantage(batch, metrics)
        padding = [bool(tag.get("is_padding", False)) for tag in batch.tags]
        weights = row_weights([parse_key(k, p) for k, p in zip(batch.keys, padding, strict=True)])
        data = tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=["advantages"])
        weighted = [row * weight for row, weight in zip(data["advantages"].unbind(0), weights, strict=True)]
        data["advantages"] = torch.nested.as_nested_tensor(weighted, layout=torch.jagged)
        return tq.kv_batch_put(keys=batch.keys, partition_id=batch.partition_id, fields=data.select("advantages"))

    def _get_required_batch_multiple(self, dp_size: int) -> int:
        # Stock: a multiple of prompts x group size, so that rollouts with several rows would add optimizer steps and
        # failed ones empty rows.
        return dp_size * self.config.openforge.mini_batches

    def _update_actor(self, batch: Any, metrics: dict) -> Any:
        # As the stock one (veRL 0.9.1), but a mini-batch is a share of the rows that there are instead of prompts x
        # group size.
        actor = self.config.actor_rollout_ref.actor
        rows = len(batch.keys) // self.config.openforge.mini_batches
        batch.extra_info.update(
            global_batch_size=rows,
            mini_batch_size=rows,
            epochs=actor.ppo_epochs,
            seed=actor.data_loader_seed + self.global_steps,
            dataloader_kwargs={"shuffle": self.config.openforge.mini_batches > 1},
            calculate_entropy=False,
            distillation_use_topk=False,
            distillation_only=False,
            temperature=self.config.actor_rollout_ref.rollout.temperature,
        )
        output = rename_dict(self.actor_rollout_wg.update_actor(batch)["metrics"], "actor/")
        output["perf/mfu/actor"] = output.pop("actor/mfu")
        metrics.update(reduce_metrics(output))
        return batch

    def _save_checkpoint(self) -> None:
        super()._save_checkpoint()
        checkpoints = Path(self.config.trainer.default_local_dir)
        mark_complete(checkpoints / f"global_step_{self.global_steps}")
        prune(checkpoints, self.config.openforge.keep_checkpoints)

    def _compute_metrics(self, batch: Any, metrics: dict, timing_raw: dict, global_steps: int, epoch: int) -> None:
        super()._compute_metrics(batch, metrics, timing_raw, global_steps=global_steps, epoch=epoch)
        record = self._record(metrics, timing_raw)
        write_step(self._run_dir, record)
        log.info(step_line(record))

    @property
    def _run_dir(self) -> Path:
        return Path(self.config.openforge.run_dir)

    def _record(self, metrics: dict, timing: dict) -> StepRecord:
        rate = metrics.get("actor/lr")
        batch = TrainedBatch(
            trained_tokens=self._trained_tokens,
            max_logprob_diff=self._max_logprob_diff,
            learning_rate=float(rate) if rate is not None else None,
            seconds=StepSeconds(
                rollouts=timing["gen"],
                log_prob=timing["old_log_prob"],
                update=timing["update_actor"],
                weight_sync=timing.get("update_weights"),
                checkpoint=timing.get("save_checkpoint"),
                total=timing.get("step"),
            ),
        )
        return step_record(self.global_steps, self._facts.facts, batch)
