"""`openforge proxy CONFIG.toml`: the recording proxy on its own."""

import typer

from flows.commands.options import ConfigFile, DryRun, Overrides


def proxy(config: ConfigFile, overrides: Overrides = None, dry_run: DryRun = False) -> None:
    """Serve the recording proxy until Ctrl-C; its address and admin secret go to proxy.json next to the log."""
    from contracts.config import resolved
    from flows.config_file import read_config
    from proxy.config import ProxyConfig

    settings = read_config(ProxyConfig, config, overrides or [])
    if dry_run:
        typer.echo(resolved(settings))
        return
    from flows.serve_proxy import serve

    serve(settings)
