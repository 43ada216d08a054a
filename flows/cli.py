"""`openforge`: one command with verbs. Exit codes: 0 done, 1 the run failed, 2 the request was bad."""

import os
import sys

import typer

from contracts.errors import OpenForgeError
from flows.commands import doctor, proxy, quickstart, runs, sessions, up

INTERRUPTED = 130

app = typer.Typer(
    name="openforge",
    help="Train language-model agents inside the harness they are deployed in.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
sessions_app = typer.Typer(help="Recorded sessions of a call log.", no_args_is_help=True)
sessions_app.command("list")(sessions.list_sessions)
sessions_app.command("show")(sessions.show)

app.command("quickstart")(quickstart.quickstart)
app.command("up")(up.up)
app.command("down")(up.down)
app.command("datagen")(runs.datagen)
app.command("sft")(runs.sft)
app.command("rl-train")(runs.rl_train)
app.command("benchmark")(runs.benchmark)
app.command("proxy")(proxy.proxy)
app.add_typer(sessions_app, name="sessions")
app.command("rows")(sessions.rows)
app.command("doctor")(doctor.doctor)


def main() -> None:
    """Entry point of the console script: an error that we raise on purpose is one line and its exit code."""
    try:
        app()
    except OpenForgeError as e:
        sys.stderr.write(f"openforge: {e}\n")
        sys.exit(e.exit_code)
    except KeyboardInterrupt:
        sys.stderr.write("openforge: interrupted\n")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has gone (`openforge sessions list | head`); the interpreter would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


if __name__ == "__main__":
    main()
