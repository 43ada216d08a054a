"""Where things lie in the directory of a reinforcement-learning run.

config.json     the resolved RlConfig            prompts.jsonl   tasks in the order of training
verl.json       what veRL was told               trainer.log     output of the training process
proxy.json      where the proxy answers          calls.sqlite    the call log
steps/          one record per training step     checkpoints/    global_step_N
"""

from pathlib import Path


def config_file(run_dir: Path) -> Path:
    """The resolved RlConfig."""
    return run_dir / "config.json"


def settings_file(run_dir: Path) -> Path:
    """veRL settings, dotted key → value."""
    return run_dir / "verl.json"


def prompts_file(run_dir: Path) -> Path:
    """One task per line."""
    return run_dir / "prompts.jsonl"


def proxy_file(run_dir: Path) -> Path:
    """``url``, ``admin_secret``, ``pid``; readable by the owner only, made anew by each start."""
    return run_dir / "proxy.json"


def log_file(run_dir: Path) -> Path:
    """Output of the training process."""
    return run_dir / "trainer.log"


def call_log(run_dir: Path) -> Path:
    """The proxy's durable log."""
    return run_dir / "calls.sqlite"


def checkpoints_dir(run_dir: Path) -> Path:
    """Holds ``global_step_N``."""
    return run_dir / "checkpoints"
