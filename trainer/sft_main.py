"""Entry of the fine-tuning process: stock ``verl.trainer.sft_trainer.run_sft``.

    python -m trainer.sft_main RUN_DIR SCRATCH_DIR

Started by trainer/sft under a guard, one process per rank; imports veRL and torch.
"""

import sys
from pathlib import Path

from verl.trainer.sft_trainer import run_sft

from trainer.rl_layout import settings_file
from trainer.verl_compose import compose_verl, read_settings


def main(run_dir: str, scratch: str) -> None:
    """Compose veRL's config from the run's settings and train."""
    run_sft(compose_verl("sft_trainer_engine", read_settings(settings_file(Path(run_dir)), scratch)))


if __name__ == "__main__":
    main(*sys.argv[1:])
