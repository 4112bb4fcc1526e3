"""Serve a store on a Ray cluster: `weft serve`, as a Ray Serve deployment."""

from __future__ import annotations

from weft.cli.commands.serve_on_ray import main
from weft.cli.main import exit_process

if __name__ == "__main__":
    exit_process(main())
