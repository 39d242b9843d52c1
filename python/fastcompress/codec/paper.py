"""Compiled windows of the published kind as a codec that can be saved, to train on them as the paper did."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastcompress._arguments import as_instance
from fastcompress.codec.auxiliary import AuxiliaryModel, auxiliary_from_state, auxiliary_to_state
from fastcompress.codec.equal_info import PaperEqualInfoCodec
from fastcompress.codec.files import CodecKind, from_text, register_codec, to_text
from fastcompress.equal_info.compiled_paper import CompiledWindows, pack_table, unpack_strings


class CompiledPaperCodec(PaperEqualInfoCodec):
    """Windows as published, from a table in place of a model: a baseline that loses text.

    >>> from fastcompress.equal_info import CountModel
    >>> windows = CompiledWindows.of_model(CountModel(b"to be or not to be " * 20), bits=12, precision=12)
    >>> codec = CompiledPaperCodec(windows, keeps_wrong=True)
    >>> codec.decode(codec.encode("to be"))
    b'to be '
    """

    windows: CompiledWindows

    def __init__(
        self,
        windows: CompiledWindows,
        token_bits: int | None = None,
        *,
        keeps_wrong: bool = False,
        auxiliary: AuxiliaryModel | None = None,
    ) -> None:
        """Make a codec.

        Args:
            windows: The table.
            token_bits: None for the number of bits of a window, or 8 for the halves of 16.
            keeps_wrong: As for `PaperEqualInfoCodec`.
            auxiliary: The cost of the model that the windows were compiled from; does not change the codec.

        Raises:
            ConfigError: `token_bits` does not fit the windows.
        """
        as_instance(windows, CompiledWindows, "windows")
        bits = windows.bits if token_bits is None else token_bits
        super().__init__(windows, windows.fingerprint, bits, keeps_wrong=keeps_wrong)
        self.auxiliary = auxiliary

    def _arguments(self) -> dict[str, Any]:
        return {
            "windows": self.windows,
            "token_bits": self.token_bits,
            "keeps_wrong": self.keeps_wrong,
            "auxiliary": self.auxiliary,
        }


def _to_state(codec: CompiledPaperCodec) -> dict[str, Any]:
    windows = codec.windows
    strings, codes = pack_table(windows)
    return {
        "bits": windows.bits,
        "precision": windows.precision,
        "max_symbols": windows.max_symbols,
        "token_bits": codec.token_bits,
        "keeps_wrong": codec.keeps_wrong,
        "strings": to_text(strings),
        "codes": to_text(codes),
        **auxiliary_to_state(codec.auxiliary),
    }


def _from_state(state: dict[str, Any]) -> CompiledPaperCodec:
    strings = unpack_strings(from_text(state["strings"]))
    codes = np.frombuffer(from_text(state["codes"]), "<u2")
    windows = CompiledWindows(strings, codes, state["bits"], state["precision"], state["max_symbols"])
    auxiliary = auxiliary_from_state(state)
    return CompiledPaperCodec(windows, state["token_bits"], keeps_wrong=state["keeps_wrong"], auxiliary=auxiliary)


register_codec(CodecKind("compiled-paper", CompiledPaperCodec, _to_state, _from_state))
