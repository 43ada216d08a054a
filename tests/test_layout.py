"""The tree is what people and Prefect expect: entrypoints load, nothing is shadowed, layers hold, shipped files exist."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PREFECT = yaml.safe_load((ROOT / "prefect.yaml").read_text())
ENTRYPOINTS = {d["name"]: d["entrypoint"] for d in PREFECT["deployments"]}
FIXED = ("flows", "tasks", "datagen", "harness_images", "trainer", "proxy", "prefect.yaml", "tests", "README.md")


def test_the_fixed_top_level_names_exist() -> None:
    assert [name for name in FIXED if not (ROOT / name).exists()] == []


def test_prefect_yaml_has_the_five_deployments() -> None:
    assert sorted(ENTRYPOINTS) == ["benchmark", "datagen", "janitor", "rl-train", "sft"]


@pytest.mark.parametrize("name", sorted(ENTRYPOINTS))
def test_an_entrypoint_loads_in_a_fresh_interpreter_as_the_flow_itself(name: str) -> None:
    # A flow whose module cannot be imported becomes a placeholder at deploy time and fails only in the worker.
    script = (
        "import sys\n"
        "from prefect.flows import load_flow_from_entrypoint\n"
        f"flow = load_flow_from_entrypoint({ENTRYPOINTS[name]!r}, use_placeholder_flow=False)\n"
        "sys.stdout.write(flow.name + ' ' + flow.fn.__module__)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PREFECT_LOGGING_LEVEL": "ERROR"}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == [name, ENTRYPOINTS[name].rsplit(".", 1)[0]]


def test_no_flow_file_shadows_a_package() -> None:
    packages = {p.parent.name for p in ROOT.glob("*/__init__.py")} | {"harness_images"}
    assert {p.stem for p in (ROOT / "flows").glob("*.py")} & packages == set()


def test_every_package_is_in_the_wheel_and_under_the_import_rules() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    here = {p.parent.name for p in ROOT.glob("*/__init__.py")} - {"bench"}
    assert set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) == here
    assert set(project["tool"]["importlinter"]["root_packages"]) == here


def test_every_file_named_in_the_readme_exists() -> None:
    import re

    named = re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text())
    assert [n for n in named if not (ROOT / n).exists()] == []


def test_no_python_file_is_longer_than_one_sitting() -> None:
    long = {}
    for path in ROOT.glob("*/**/*.py"):
        if path.is_relative_to(ROOT / "tests") or ".venv" in path.parts:
            continue
        lines = path.read_text().count("\n")
        if lines > 320:
            long[str(path.relative_to(ROOT))] = lines
    assert long == {}
