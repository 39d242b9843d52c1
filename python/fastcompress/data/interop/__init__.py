"""Token files of other trainers, both ways: nanoGPT, llm.c and modded-nanogpt, Megatron, datatrove.

Each format is one small class, and TOKEN_FORMATS is the table of them. Documents are arrays of ids, as
`TokenDataset.documents` yields them and `fastcompress.data.write_encoded` takes them::

    write_encoded(directory, "train", TOKEN_FORMATS["llm.c"].documents(paths, end_of_text=50256), codec)
    TOKEN_FORMATS["megatron"].write(path, dataset.documents(), end_of_text=50256)
"""

from __future__ import annotations

from pathlib import Path

from fastcompress.data.interop.datatrove import Datatrove
from fastcompress.data.interop.megatron import Megatron
from fastcompress.data.interop.parts import write_parts
from fastcompress.data.interop.streams import LlmC, NanoGPT
from fastcompress.data.interop.token_format import TokenFormat

__all__ = ["TOKEN_FORMATS", "TokenFormat", "detect_format", "write_parts"]

TOKEN_FORMATS: dict[str, TokenFormat] = {form.name: form for form in (NanoGPT(), LlmC(), Megatron(), Datatrove())}


def detect_format(path: Path) -> TokenFormat | None:
    """Return the format that a file's first bytes or the files beside it tell; None if nothing does, as for nanoGPT."""
    return next((form for form in TOKEN_FORMATS.values() if form.is_recognized(Path(path))), None)
