"""Equal-info windows as codecs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fastcompress.codec.files import CodecKind, from_text, register_codec, to_text
from fastcompress.codec.protocol import checked_ids
from fastcompress.equal_info import Codebook
from fastcompress.equal_info.paper import PaperWindows
from fastcompress.errors import ConfigError, DataError

_HALF_BITS = 8


class EqualInfoCodec:
    """The tokens of a codebook, or each of them in two halves.

    Whole tokens: vocab_size is the codebook's 2**bits - 1. In halves (token_bits=8, of 16-bit codebooks): the upper
    byte of an id, then the lower one. As ids are ranks in lexicographic order, the upper byte alone says the bytes that
    all strings of its 256 ids begin with.

    Many sequences spell one text, hence not unambiguous; those without forbidden steps (`Codebook.forbidden_first`) are
    one a text.
    """

    lossless = True
    unambiguous = False

    def __init__(self, codebook: Codebook, token_bits: int | None = None) -> None:
        """token_bits: the codebook's (None), or 8 for halves of 16. ConfigError: anything else."""
        self.codebook = codebook
        self.token_bits = codebook.bits if token_bits is None else token_bits
        self._has_halves = self.token_bits == _HALF_BITS and codebook.bits == 2 * _HALF_BITS
        if self.token_bits != codebook.bits and not self._has_halves:
            raise ConfigError(
                f"token_bits is {token_bits}; a codebook of {codebook.bits} bits has tokens of {codebook.bits}"
                + (f" or {_HALF_BITS}" if codebook.bits == 2 * _HALF_BITS else "")
            )
        self.vocab_size = 1 << _HALF_BITS if self._has_halves else codebook.num_tokens
        self.unstable_tail: int | None = 2 if self._has_halves else 1
        if codebook.pattern is not None:
            self.unstable_tail = None  # where pretokens end may depend on what follows, at any distance
        self.name = f"equal-info-{codebook.bits}" + (f"-by-{_HALF_BITS}" if self._has_halves else "")
        self.fingerprint = hashlib.sha256(
            f"fastcompress equal-info codec, version 1\ntoken_bits={self.token_bits}\n{codebook.fingerprint}".encode()
        ).hexdigest()
        if self._has_halves:
            self._prefixes = _common_prefixes(codebook.strings)

    def encode(self, data: bytes) -> npt.NDArray[np.uint32]:
        ids: npt.NDArray[np.uint32] = self.codebook.encode(data)
        return np.stack((ids >> 8, ids & 255), 1).reshape(-1) if self._has_halves else ids

    def decode(self, tokens: npt.ArrayLike) -> bytes:
        """Of an upper half at the end, the bytes that it says alone."""
        ids, left_over = self._windows(tokens)
        return self.codebook.decode(ids) + (b"" if left_over is None else self._prefixes[left_over])

    def byte_lengths(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        ids, left_over = self._windows(tokens)
        lengths = self.codebook.byte_lengths(ids)
        if not self._has_halves:
            return lengths
        known = np.array([len(prefix) for prefix in self._prefixes], np.int64)
        first = known[ids >> 8]
        halves = np.stack((first, lengths - first), 1).reshape(-1)
        return halves if left_over is None else np.append(halves, known[left_over])

    def _windows(self, tokens: npt.ArrayLike) -> tuple[npt.NDArray[np.uint32], int | None]:
        """Ids, and an upper half that stands alone at the end."""
        ids = checked_ids(tokens, self).astype(np.uint32)
        if not self._has_halves:
            return ids, None
        whole = ids[: len(ids) // 2 * 2].reshape(-1, 2)
        joined: npt.NDArray[np.uint32] = (whole[:, 0] << 8 | whole[:, 1]).astype(np.uint32)
        bad = joined >= self.codebook.num_tokens
        if bad.any():
            raise DataError(
                f"tokens {2 * int(np.argmax(bad))} and the next are the window 0xFFFF, which {self.name} has not"
            )
        return joined, int(ids[-1]) if len(ids) % 2 else None


def _common_prefixes(strings: Sequence[bytes]) -> list[bytes]:
    """What the strings of the ids of each upper half have in common: those between the first and the last have it."""
    prefixes = []
    for begin in range(0, len(strings), 1 << _HALF_BITS):
        group = strings[begin : begin + (1 << _HALF_BITS)]
        first, last = group[0], group[-1]
        size = 0
        while size < min(len(first), len(last)) and first[size] == last[size]:
            size += 1
        prefixes.append(first[:size])
    return prefixes


class PaperEqualInfoCodec:
    """Windows as published (`equal_info.paper`), each as one token, or two of 8 bits: the baseline that loses text.

    It can be neither saved nor loaded, since its model is any function.
    """

    lossless = False
    unambiguous = False

    def __init__(
        self, windows: PaperWindows, model_fingerprint: str, token_bits: int = 16, *, keeps_wrong: bool = False
    ) -> None:
        """model_fingerprint: names the model; it goes into the codec's fingerprint.
        keeps_wrong: encode text although its windows decode to other text, to train on it as the paper did;
        otherwise that is a DataError. ConfigError: token_bits is neither the window's number of bits, at most 16, nor 8
        of 16, or the symbols are not bytes."""
        if windows.num_symbols != 256:
            raise ConfigError(f"the windows have {windows.num_symbols} symbols; a codec needs all 256 bytes")
        if windows.bits > 16 or token_bits not in (windows.bits, _HALF_BITS) or windows.bits % token_bits != 0:
            raise ConfigError(f"token_bits is {token_bits} for windows of {windows.bits} bits; give those, or 8 of 16")
        self.windows, self.token_bits, self.keeps_wrong = windows, token_bits, keeps_wrong
        self._num_parts = windows.bits // token_bits
        self.vocab_size = 1 << token_bits
        self.unstable_tail: int | None = self._num_parts
        self.name = f"paper-equal-info-{windows.bits}" + ("" if self._num_parts == 1 else f"-by-{token_bits}")
        self.fingerprint = hashlib.sha256(
            f"fastcompress paper-equal-info codec, version 1\nbits={windows.bits} precision={windows.precision} "
            f"max_symbols={windows.max_symbols} token_bits={token_bits}\n{model_fingerprint}".encode()
        ).hexdigest()

    def encode(self, data: bytes) -> npt.NDArray[np.uint32]:
        """DataError: some windows decode to other text, unless keeps_wrong."""
        codes = [code for code, _ in self.windows.encode(data)]
        if not self.keeps_wrong and self.windows.decode(codes) != data:
            report = self.windows.report(data)
            raise DataError(
                f"{report.num_wrong} of {report.num_windows} windows of {self.name} decode to other text; use a "
                "Codebook, or keeps_wrong=True to train on them all the same"
            )
        windows = np.array(codes, np.uint32)
        if self._num_parts == 1:
            return windows
        return np.stack((windows >> 8, windows & 255), 1).reshape(-1)

    def decode(self, tokens: npt.ArrayLike) -> bytes:
        """Of an upper half at the end, nothing. DataError: also a window that no string has."""
        return b"".join(self._strings(tokens))

    def byte_lengths(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Of what is decoded, which need not be as long as what was encoded."""
        lengths = np.array([len(string) for string in self._strings(tokens)], np.int64)
        if self._num_parts == 1:
            return lengths
        halves = np.zeros(np.size(tokens), np.int64)
        halves[1::2] = lengths
        return halves

    def _strings(self, tokens: npt.ArrayLike) -> list[bytes]:
        ids = checked_ids(tokens, self).astype(np.int64)
        if self._num_parts == 2:
            whole = ids[: len(ids) // 2 * 2].reshape(-1, 2)
            ids = whole[:, 0] << 8 | whole[:, 1]
        return [self.windows.decode_window(code) for code in ids.tolist()]


register_codec(
    CodecKind(
        "equal-info",
        EqualInfoCodec,
        lambda codec: {"token_bits": codec.token_bits, "codebook": to_text(codec.codebook.to_bytes())},
        lambda state: EqualInfoCodec(Codebook.from_bytes(from_text(state["codebook"])), state["token_bits"]),
    )
)
