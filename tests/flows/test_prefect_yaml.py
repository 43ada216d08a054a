from pathlib import Path

import yaml

from flows.config import BenchmarkRun
from flows.settings import HEARTBEAT_S, WORK_POOL, ZOMBIE_AFTER_S, prefect_environment

PREFECT = yaml.safe_load((Path(__file__).resolve().parents[2] / "prefect.yaml").read_text())
DEPLOYMENTS = {d["name"]: d for d in PREFECT["deployments"]}


def test_every_deployment_checks_its_parameters_and_runs_in_our_pool():
    assert {d["work_pool"]["name"] for d in DEPLOYMENTS.values()} == {WORK_POOL}
    assert all(d["enforce_parameter_schema"] for d in DEPLOYMENTS.values())


def test_the_parameters_of_the_nightly_benchmark_fit_its_form():
    run = BenchmarkRun.model_validate(DEPLOYMENTS["benchmark"]["parameters"]["config"])
    assert run.dated
    assert DEPLOYMENTS["benchmark"]["schedules"][0]["cron"] == "0 2 * * *"


def test_a_second_training_run_waits_for_the_first():
    assert DEPLOYMENTS["rl-train"]["concurrency_limit"] == {"limit": 1, "collision_strategy": "ENQUEUE"}


def test_the_janitor_comes_every_quarter_of_an_hour_and_after_each_bad_end():
    janitor = DEPLOYMENTS["janitor"]
    assert janitor["schedules"][0]["cron"] == "*/15 * * * *"
    assert janitor["triggers"][0]["expect"] == ["prefect.flow-run.Crashed", "prefect.flow-run.Cancelled"]
    watched = janitor["triggers"][0]["match_related"]["prefect.resource.name"]
    assert sorted([*watched, "janitor"]) == sorted(DEPLOYMENTS)


def test_a_healthy_run_never_counts_as_dead():
    assert ZOMBIE_AFTER_S > 3 * HEARTBEAT_S


def test_the_environment_names_the_server_only_when_there_is_one():
    assert "PREFECT_API_URL" not in prefect_environment(Path("/r"), None)
    found = prefect_environment(Path("/r"), "http://127.0.0.1:4200/api")
    assert found["PREFECT_API_URL"] == "http://127.0.0.1:4200/api"
    assert found["PREFECT_HOME"] == "/r/runs/prefect"
    assert found["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false"
