"""`vera-local view`: runs in a browser on this machine. Thin, as all commands."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from vera_local.cli.interrupt import run_until_interrupted
from vera_local.engine.cache import cache_folder

app = typer.Typer()

Root = Annotated[Path, typer.Argument(metavar="RUN_OR_FOLDER", help="The folder of a run, or a folder of runs.")]
Port = Annotated[int, typer.Option(metavar="N", help="The port to listen on; a free one if left out.")]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Only print the address.")]


@app.command()
def view(root: Root, port: Port = 0, no_browser: NoBrowser = False) -> None:
    """Show runs in a browser on this machine: ratings, search in transcripts, the progress of a run at work."""
    # The server takes a while to load, which only those who view wait for.
    from vera_local.view.serving import listening, opened_in_browser, serve, server

    with listening(port) as listener:
        ready, address = server(root, listener)
        print(address, flush=True)
        typer.echo("Who has this address can read the runs, on this machine alone. Ctrl-C ends it.", err=True)
        with nullcontext() if no_browser else opened_in_browser(address, cache_folder()):
            run_until_interrupted(serve(ready, listener), "Stopped.")
