"""The command codebook."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastcompress.cli.output import check_output, count, force_option, json_option, show_result

if TYPE_CHECKING:
    from fastcompress.training.checkpoint import Run


@click.command(
    short_help="Compile a model of bytes into equal-info windows.",
    epilog="\b\nExample:\n  fastcompress codebook runs/m1 -o book.json --token-bits 8",
)
@click.argument("run_directory", metavar="RUN")
@click.option("-o", "--output", required=True, help="The codec.json to write, for --codec of other commands.")
@click.option("--bits", type=click.IntRange(9, 16), default=16, show_default=True, help="Bits per window.")
@click.option("--token-bits", type=click.Choice(["8"]), help="Give each window of 16 bits as two tokens.")
@click.option("--paper", is_flag=True, help="Windows as published, some of which decode to other text, as a baseline.")
@click.option("--which", type=click.Choice(["best", "last"]), default="best", show_default=True,
              help="Which checkpoint of the run.")  # fmt: skip
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1 or mps.")
@force_option()
@json_option
def codebook(
    run_directory: str,
    output: str,
    bits: int,
    token_bits: str | None,
    paper: bool,
    which: str,
    device: str,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Compile the model of a RUN over bytes into a codebook: its likeliest strings become the tokens of a codec.

    The model runs once for each string, and not when text is encoded. What it cost is kept in the codec, and eval and
    studies report it.
    """
    from fastcompress._files import replacing
    from fastcompress.codec import save_codec
    from fastcompress.training.checkpoint import load_run

    check_output(output, overwrite)
    if token_bits and bits != 16:
        raise click.UsageError(f"--token-bits {token_bits} goes with --bits 16; leave one of them out")
    run = load_run(Path(run_directory), which="last" if which == "last" else "best", device=device)
    codec = _compile(run, bits, int(token_bits) if token_bits else None, paper=paper)
    missing = codec.windows.missing_symbols if paper else b""
    with replacing(output, overwrite=overwrite) as temporary:
        save_codec(codec, temporary)
    strings = codec.windows.table if paper else codec.codebook.strings
    assert codec.auxiliary is not None
    result: dict[str, Any] = {
        "output": output,
        "codec": codec.name,
        "fingerprint": codec.fingerprint,
        "num_strings": len(strings),
        "making_flops": codec.auxiliary.making_flops,
        "flops_per_byte": codec.auxiliary.flops_per_byte,
        **({"num_missing_bytes": len(missing)} if paper else {}),
    }
    if missing:
        click.echo(f"warning: {_what_is_missing(missing, codec.windows)}", err=True)
    text = (
        f"{output}: {codec.name} of {count(len(strings), 'string')}, for {result['making_flops']:.3g} FLOPs of "
        f"training and compiling; use it as --codec {output}"
    )
    show_result(result, text, as_json)


def _what_is_missing(missing: bytes, windows: Any) -> str:
    """Return which bytes cannot be encoded, and what to do, as a sentence."""
    examples = [repr(chr(byte)) for byte in missing if chr(byte).isascii() and chr(byte).isprintable()][:5]
    return (
        f"{len(missing)} of 256 bytes{', such as ' + ' '.join(examples) + ',' if examples else ''} take more than a "
        f"window of {windows.bits} bits, and texts with one of them cannot be encoded; use --bits {windows.precision}, "
        "which has room for every byte, or a RUN that predicts better"
    )


def _compile(run: Run, bits: int, token_bits: int | None, *, paper: bool) -> Any:
    """Return an EqualInfoCodec, or a CompiledPaperCodec."""
    from fastcompress.codec import AuxiliaryModel, CompiledPaperCodec, EqualInfoCodec
    from fastcompress.equal_info import Codebook
    from fastcompress.equal_info.compiled_paper import CompiledWindows
    from fastcompress.models.next_byte import NextByteWeights

    model = NextByteWeights(run.model)
    windows = CompiledWindows.of_model(model, bits) if paper else Codebook.from_model(model, bits)
    per_byte = run.model.flops().forward_per_token
    auxiliary = AuxiliaryModel(float(run.flops + model.num_positions * per_byte), float(per_byte))
    if isinstance(windows, CompiledWindows):
        return CompiledPaperCodec(windows, token_bits, keeps_wrong=True, auxiliary=auxiliary)
    return EqualInfoCodec(windows, token_bits, auxiliary=auxiliary)
