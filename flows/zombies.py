"""The automation that marks a flow run as crashed when its process no longer reports: `python -m flows.zombies`. Idempotent."""

from datetime import timedelta

from prefect.automations import Automation
from prefect.client.schemas.objects import StateType
from prefect.events.actions import ChangeFlowRunState
from prefect.events.schemas.automations import EventTrigger, Posture

from flows.settings import ZOMBIE_AFTER_S

NAME = "crash-dead-flow-runs"
_HEARTBEAT = "prefect.flow-run.heartbeat"
_ENDS = {f"prefect.flow-run.{name}" for name in ("Completed", "Failed", "Crashed", "Cancelled")}


def automation() -> Automation:
    """After the first heartbeat of a run: no further one and no end within the limit → crashed."""
    return Automation(
        name=NAME,
        trigger=EventTrigger(
            posture=Posture.Proactive,
            match={"prefect.resource.id": ["prefect.flow-run.*"]},  # pyright: ignore[reportArgumentType]
            for_each={"prefect.resource.id"},
            after={_HEARTBEAT},
            expect={_HEARTBEAT} | _ENDS,
            threshold=1,
            within=timedelta(seconds=ZOMBIE_AFTER_S),
        ),
        actions=[  # pyright: ignore[reportArgumentType]
            ChangeFlowRunState(  # pyright: ignore[reportCallIssue]
                state=StateType.CRASHED, name="Crashed", message=f"no sign of life for {ZOMBIE_AFTER_S} seconds"
            )
        ],
    )


def register() -> None:
    """Create the automation, or bring it up to date."""
    wanted = automation()
    try:
        wanted.id = Automation.read(name=NAME).id  # pyright: ignore[reportAttributeAccessIssue]
    except ValueError:
        wanted.create()
        return
    wanted.update()


if __name__ == "__main__":
    register()
