"""fastcompress study"""

from __future__ import annotations

from pathlib import Path

import click

from fastcompress.cli.output import json_option, show_result


@click.command(
    short_help="Compare tokenizations; write a report.",
    epilog="\b\nExample:\n  fastcompress study quick --output report",
)
@click.argument("name", type=click.Choice(["quick", "shakespeare"]))
@click.option("-o", "--output", help="Folder for report.html, report.json and the runs.  [default: study-NAME]")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Random seed.")
@click.option("--seeds", type=click.IntRange(1), default=1, show_default=True,
              help="Make every arm under this many seeds, from --seed on; report means and spreads.")  # fmt: skip
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1 or mps.")
@json_option
def study(name: str, output: str | None, seed: int, seeds: int, device: str, as_json: bool) -> None:
    """Compare tokenizations on one text under one budget, and write a report.

    \b
    quick: bytes, characters and BPE on the prose in Python's own help;
      minutes on two CPU cores.
    shakespeare: the same on Tiny Shakespeare, with models of 6 layers and
      width 384; for a GPU.
    """
    from fastcompress.study.runner import run_study

    try:
        output_directory = Path(output or f"study-{name}")
        report = run_study(name, output_directory, seed=seed, seeds=seeds, device=device, progress=True)
    except (KeyboardInterrupt, SystemExit):
        click.echo("stopped; the same command goes on from here", err=True)
        raise
    show_result(
        {"report": str(report), "study": name, "seed": seed, "seeds": seeds}, f"{report}: open it in a browser", as_json
    )
