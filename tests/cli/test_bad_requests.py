"""Bad input on the command line: one line that names the value and the cure, exit code 2, nothing started."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
DATAGEN = str(REPO / "configs" / "quickstart.datagen.toml")


def openforge(*arguments: str, cwd: Path = REPO, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line for real."""
    return subprocess.run(
        [sys.executable, "-m", "flows.cli", *arguments],
        cwd=cwd, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(REPO)} | environment,
    )  # fmt: skip


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """The one line on standard error of a refused request."""
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("openforge: ")
    return line


def test_a_config_that_does_not_exist():
    line = refusal(openforge("datagen", "nowhere.toml"))
    assert line == "openforge: config file 'nowhere.toml' does not exist; give the path of a TOML file."


def test_broken_toml_names_the_line(tmp_path: Path):
    (tmp_path / "broken.toml").write_text('run_dir = "a"\nsft = [\n')
    line = refusal(openforge("sft", str(tmp_path / "broken.toml")))
    assert "broken TOML" in line
    assert "broken.toml" in line


def test_an_unknown_key_is_named_with_the_known_ones():
    line = refusal(openforge("datagen", DATAGEN, "--set", "datgen.seed=1"))
    assert "datgen" in line
    assert "Known keys: datagen, machine, max_parallel" in line


def test_a_value_out_of_bounds_is_named():
    line = refusal(openforge("datagen", DATAGEN, "--set", "datagen.repeats=0"))
    assert "datagen.repeats = 0" in line
    assert "greater than or equal to 1" in line


def test_an_override_without_a_value():
    assert "is not key=value" in refusal(openforge("datagen", DATAGEN, "--set", "seed"))


def test_an_unknown_family_lists_the_known_ones():
    line = refusal(openforge("datagen", DATAGEN, "--set", 'datagen.families=["juggle"]'))
    assert "juggle" in line
    assert "write_file" in line


def test_a_directory_that_is_no_checkout(tmp_path: Path):
    line = refusal(openforge("up", "--root", str(tmp_path)))
    assert "has no prefect.yaml" in line
    assert "--root" in line


def test_up_on_a_port_in_use(tmp_path: Path):
    (tmp_path / "prefect.yaml").write_text("")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        line = refusal(openforge_up(tmp_path, port))
    assert f"port {port} on 127.0.0.1 cannot be used" in line
    assert "--port" in line


def openforge_up(root: Path, port: int) -> subprocess.CompletedProcess[str]:
    """`openforge up`, without its first words on standard output."""
    done = openforge("up", "--root", str(root), "--port", str(port))
    return subprocess.CompletedProcess(done.args, done.returncode, "", done.stderr)


def test_a_prefect_server_that_does_not_answer_fails_the_run():
    done = openforge("datagen", DATAGEN, PREFECT_API_URL="http://127.0.0.1:9/api")
    assert done.returncode == 1
    assert "no Prefect server answers at PREFECT_API_URL = 'http://127.0.0.1:9/api'" in done.stderr


@pytest.mark.parametrize("command", [("sessions", "list"), ("sessions", "show"), ("rows",)])
def test_a_call_log_that_does_not_exist(command: tuple[str, ...]):
    session = [] if command == ("sessions", "list") else ["s1"]
    assert "call log 'nowhere.sqlite' does not exist" in refusal(openforge(*command, "nowhere.sqlite", *session))


def test_a_file_that_is_no_call_log(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("not a database, but long enough to be read as one" * 100)
    assert "is not a call log" in refusal(openforge("sessions", "list", str(tmp_path / "notes.txt")))


def test_a_proxy_config_without_engines(tmp_path: Path):
    (tmp_path / "proxy.toml").write_text('log = "calls.sqlite"\n')
    line = refusal(openforge("proxy", str(tmp_path / "proxy.toml")))
    assert "engines" in line


def test_dry_run_prints_the_resolved_config_and_starts_nothing(tmp_path: Path):
    done = openforge("datagen", DATAGEN, "--dry-run", "--set", "datagen.seed=7", "--set", f"datagen.out={tmp_path}/new")
    assert done.returncode == 0
    printed = json.loads(done.stdout)
    assert printed["datagen"]["seed"] == 7
    assert printed["datagen"]["limits"]["turns"] == 8
    assert not (tmp_path / "new").exists()


def test_help_loads_neither_torch_nor_prefect():
    script = (
        "import sys; sys.argv = ['openforge', '--help']\n"
        "from flows.cli import main\n"
        "try:\n    main()\n"
        "except SystemExit as e:\n    assert not e.code\n"
        "heavy = {'torch', 'prefect', 'verl', 'ray', 'transformers'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=REPO, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_doctor_names_a_cure_for_what_is_missing(tmp_path: Path):
    done = openforge("doctor", "--root", str(tmp_path))
    assert done.returncode == 1
    assert f"MISS prefect.yaml: none in {tmp_path}  →  run in the checkout or give --root" in done.stdout
