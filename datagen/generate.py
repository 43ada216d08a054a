"""Stage 1: make candidate task directories from the families."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from contracts.config import parse, resolved
from contracts.errors import ConfigError
from contracts.task import write_task
from datagen.checks import verifier_files, verifier_script
from datagen.config import DatagenConfig
from datagen.dockerfile import dockerfile
from datagen.draw import Draw
from datagen.families import FAMILIES
from datagen.records import Candidate, StageReport, Verdict
from datagen.store import Store, append_line, read_lines, write_whole
from datagen.words import SPLITS, Split
from datagen.yields import tally

STAGE = "generate"
AGENT_TIMEOUT_S = 60.0
VERIFIER_TIMEOUT_S = 30.0


def run(config: DatagenConfig) -> StageReport:
    """Make every candidate that is not there yet.

    Raises:
        ConfigError: the folder holds a task set of other settings.
    """
    store = Store(config.out)
    # Agents of local sandboxes run as other users of this machine: verifiers and solutions are not theirs to read.
    config.out.mkdir(parents=True, exist_ok=True)
    config.out.chmod(0o700)
    _claim(config)
    if done := store.report(STAGE):
        return done
    made = {candidate.name for candidate in read_lines(store.candidates_file, Candidate)}
    for candidate in planned(config):
        if candidate.name not in made:
            _make(config, candidate)
            append_line(store.candidates_file, candidate)
    verdicts = [
        Verdict(name=c.name, family=c.family, split=c.split, path=f"candidates/{c.name}", ok=True)
        for c in read_lines(store.candidates_file, Candidate)
    ]
    return store.finish(tally(STAGE, verdicts), verdicts)


def planned(config: DatagenConfig) -> Iterator[Candidate]:
    """Every candidate that the config asks for, in order."""
    counts: dict[Split, int] = {"train": config.train_per_family, "eval": config.eval_per_family}
    for family in config.families:
        for split in SPLITS:
            for index in range(counts[split]):
                yield Candidate(name=f"{family}-{split}-{index:04d}", family=family, split=split, index=index)


def write_instance(path: Path, candidate: Candidate, seed: int, base_image: str) -> None:
    """Write the task directory of one candidate."""
    draw = Draw(candidate.family, candidate.split, seed, candidate.index)
    instance = FAMILIES[candidate.family].make(draw)
    provenance = {
        "generator": "procedural",
        "family": candidate.family,
        "split": candidate.split,
        "seed": seed,
        "index": candidate.index,
        "words": list(draw.used),
        "args": dict(instance.args),
    }
    for name, content in verifier_files(instance.checks).items():
        target = path / "tests" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    write_task(
        path,
        instruction=instance.instruction,
        files=dict(instance.files),
        dockerfile=dockerfile(base_image, has_files=bool(instance.files)),
        test_sh=verifier_script(instance.checks),
        solve_sh="#!/bin/bash\nset -e\n" + "".join(f"{command}\n" for command in instance.commands),
        metadata={"openforge": provenance},
        agent_timeout_s=AGENT_TIMEOUT_S,
        verifier_timeout_s=VERIFIER_TIMEOUT_S,
    )


def _make(config: DatagenConfig, candidate: Candidate) -> None:
    """Build the directory aside and move it in place, so that a listed candidate is always complete."""
    target = config.out / "candidates" / candidate.name
    partial = config.out / "candidates" / f".partial-{candidate.name}"
    for left in (target, partial):
        shutil.rmtree(left, ignore_errors=True)
    write_instance(partial, candidate, config.seed, config.base_image)
    partial.rename(target)


def _claim(config: DatagenConfig) -> None:
    """Keep the config beside the artefacts and refuse to mix two task sets."""
    kept = config.out / "config.json"
    if kept.is_file():
        before = parse(DatagenConfig, json.loads(kept.read_bytes()), str(kept)).model_dump(mode="json")
        for key, value in config.model_dump(mode="json").items():
            if key != "out" and before[key] != value:
                raise ConfigError(
                    f"task set {str(config.out)!r} was made with {key} = {before[key]!r}, not {value!r}; "
                    f"give another folder as `out`, the old value, or delete the folder."
                )
        return
    write_whole(kept, resolved(config) + "\n")
