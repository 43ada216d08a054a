"""`openforge sessions list | show` and `openforge rows`: what a call log holds."""

import json
from typing import Annotated

import typer

from flows.commands.options import LogFile

Run = Annotated[str | None, typer.Option("--run", help="Only sessions of this run (a flow run's id).")]
Most = Annotated[int, typer.Option("--most", min=1, help="Print the newest so many.")]
SessionId = Annotated[
    str, typer.Argument(metavar="SESSION", help="Session id, as `openforge sessions list` prints it.")
]
Tokens = Annotated[bool, typer.Option("--tokens/--summary", help="Whole rows as JSON, or one line each.")]
RowLimit = Annotated[
    int | None, typer.Option("--limit-tokens", min=16, help="Longest row, tokens; longer ones lose whole turns.")
]


def list_sessions(log: LogFile, run: Run = None, most: Most = 50) -> None:
    """List recorded sessions, newest last."""
    from flows.log_view import session_lines

    for line in session_lines(log, run, most):
        typer.echo(line)


def show(log: LogFile, session: SessionId) -> None:
    """Print one session as a conversation, with the tokens of each call."""
    from flows.log_view import conversation

    for line in conversation(log, session):
        typer.echo(line)


def rows(log: LogFile, session: SessionId, tokens: Tokens = False, limit_tokens: RowLimit = None) -> None:
    """Rebuild the training rows of one session from the log."""
    from flows.log_view import merged

    found, report = merged(log, session, limit_tokens)
    for row in found:
        if tokens:
            typer.echo(row.model_dump_json())
        else:
            typer.echo(
                f"row {row.index}: {len(row.prompt_ids_P)} prompt + {len(row.response_ids_R)} response tokens, "
                f"{sum(row.mask_R)} trained, {row.turns} calls, weight {row.weight:g}"
            )
    typer.echo(json.dumps(report.model_dump(mode="json"), sort_keys=True), err=tokens)
