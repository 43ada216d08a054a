"""The Prefect settings that every process of one installation shares: server, worker, flows and the command line.

The values are the ones measured to keep the server's picture complete under bursts of task runs (batched recorder and
persister), to keep its database small (vacuum, short event retention) and to keep it quiet (no analytics, no promotions).
"""

import json
from pathlib import Path

HEARTBEAT_S = 30
"""How often a flow process reports that it lives, seconds."""
ZOMBIE_AFTER_S = 95
"""Silence after which a running flow run counts as crashed, seconds; more than three heartbeats."""
WORK_POOL = "local"
"""Process work pool that prefect.yaml deploys to."""

_TUNED = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    # The second UI calls an analytics host on each page load, whatever the settings say.
    "PREFECT_SERVER_UI_V2_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "2",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_BATCH_SIZE": "500",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_FLUSH_INTERVAL": "2",
    "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs",
    "PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD": "2592000",
    "PREFECT_SERVER_EVENTS_RETENTION_PERIOD": "P7D",
    "PREFECT_SERVER_SERVICES_DB_VACUUM_EVENT_RETENTION_OVERRIDES": json.dumps(
        {"prefect.task-run.Pending": 3600, "prefect.task-run.Running": 3600, "prefect.task-run.Completed": 86400}
    ),
    "PREFECT_WORKER_QUERY_SECONDS": "2",
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": str(HEARTBEAT_S),
    # A flow that can no longer hear a cancel must not run on unseen.
    "PREFECT_RUNNER_CRASH_ON_CANCELLATION_FAILURE": "true",
    "PREFECT_LOGGING_COLORS": "false",
    # One line per rollout says what the task run's state says already, and costs as much as the task run itself.
    "PREFECT_LOGGING_LOGGERS_PREFECT_TASK_RUNS_LEVEL": "WARNING",
    "PREFECT_CLI_PROMPT": "false",
}


def prefect_environment(root: Path, api_url: str | None) -> dict[str, str]:
    """Environment variables for a Prefect process of the checkout at ``root``.

    Args:
        root: directory with prefect.yaml; relative paths of configs start there.
        api_url: the server's API; None for the server itself.
    """
    env = dict(_TUNED)
    env["PREFECT_HOME"] = str(state_dir(root))
    env["OPENFORGE_ROOT"] = str(root)
    if api_url is not None:
        env["PREFECT_API_URL"] = api_url
    return env


def state_dir(root: Path) -> Path:
    """Where Prefect's database, logs and our note of the running server lie."""
    return root / "runs" / "prefect"
