"""Attempts for tests: a shell script as the agent, a shell script as the verifier, one sandbox, one fake proxy."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from fake_proxy import FakeProxy, FakeSession

from contracts.harness import HarnessSpec
from contracts.rollout import Limits, RolloutRequest
from contracts.wire import OpenSession, RunnerResult
from rollout.bundle import bundle_dir
from sandboxes.protocol import Sandbox, SandboxExit, SandboxSpec

SURE_OF_IT = "echo 1 > $OPENFORGE_REWARD_DIR/reward.txt"
"""A verifier that always gives 1."""
SCRIPT_HARNESS = HarnessSpec(name="script", description="A shell script.", argv=("/bin/bash", "-c", "{instruction}"))
LIMITS = Limits(wall_clock_s=20, verifier_s=20)


@dataclass
class Attempted:
    exit: SandboxExit
    session: FakeSession

    @property
    def result(self) -> RunnerResult:
        """The posted result; shows the runner's log when there is none."""
        assert self.session.result is not None, self.exit
        return self.session.result

    @property
    def agent_log(self) -> str:
        log = self.result.evidence.agent_log
        return log.text if log else ""


def session_body(
    *,
    agent: str = "true",
    test_sh: str = SURE_OF_IT,
    files: dict[str, str] | None = None,
    limits: Limits = LIMITS,
    harness: HarnessSpec = SCRIPT_HARNESS,
    rollout_id: str = "r1",
    run_id: str = "run",
) -> OpenSession:
    """What an orchestrator would open for such an attempt."""
    request = RolloutRequest(
        rollout_id=rollout_id,
        run_id=run_id,
        task=Path("/nowhere"),
        harness=harness.name,
        policy="policy",
        group_id="g",
        limits=limits,
    )
    return OpenSession(
        request=request,
        harness=harness,
        instruction=agent,
        workspace_tar=tar_of(files or {}),
        harness_tar=tar_of({}),
        tests_tar=tar_of({"test.sh": test_sh}),
    )


def spec_of(session: FakeSession, proxy: FakeProxy) -> SandboxSpec:
    """The sandbox for a session."""
    request = session.body.request
    return SandboxSpec(
        run_id=request.run_id,
        rollout_id=request.rollout_id,
        proxy_url=proxy.url,
        runner_secret=session.runner_secret,
        limits=request.limits,
    )


async def attempt(sandbox: Sandbox, proxy: FakeProxy, body: OpenSession) -> Attempted:
    """Run one attempt to its end and remove the sandbox."""
    session = proxy.add(body)
    handle = await sandbox.start(spec_of(session, proxy))
    try:
        return Attempted(await sandbox.wait(handle), session)
    finally:
        await sandbox.stop(handle)


def tar_of(files: dict[str, str]) -> str:
    """A bundle of text files."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return bundle_dir(Path(root))
