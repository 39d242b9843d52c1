"""Equal-info windows as codecs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastcompress._arguments import as_instance
from fastcompress.codec.auxiliary import AuxiliaryModel, auxiliary_from_state, auxiliary_to_state
from fastcompress.codec.files import CodecKind, from_text, register_codec, to_text
from fastcompress.codec.protocol import CodecBase, Text, as_bytes, validate_ids
from fastcompress.equal_info import Codebook
from fastcompress.equal_info.paper import PaperWindows
from fastcompress.errors import ConfigError, DataError

_HALF_BITS = 8


class EqualInfoCodec(CodecBase):
    """The ids of a codebook, whole or in two halves.

    Whole ids give a vocab_size of 2**bits - 1. A codebook of 16 bits can also give halves (token_bits=8): the upper
    byte of each id, then the lower one. Because ids are ranks in lexicographic order, the upper byte alone determines
    the bytes that all strings of its 256 ids begin with.

    Not unambiguous: many sequences decode to the same text. If the codebook has no pattern, exactly one of them has no
    illegal step (`Codebook.illegal_next_bytes`).

    >>> codec = EqualInfoCodec(Codebook.train(b"to be or not to be " * 20, bits=9))
    >>> codec.decode(codec.encode("not to be"))
    b'not to be'
    """

    lossless = True
    unambiguous = False

    def __init__(
        self, codebook: Codebook, token_bits: int | None = None, *, auxiliary: AuxiliaryModel | None = None
    ) -> None:
        """Make a codec.

        Args:
            codebook: The codebook whose ids are the tokens.
            token_bits: None for the codebook's own number of bits, or 8 for the halves of 16.
            auxiliary: The cost of the model that the codebook was compiled from; does not change the codec.

        Raises:
            ConfigError: `token_bits` is anything else.
        """
        self.codebook = as_instance(codebook, Codebook, "codebook")
        self.auxiliary = auxiliary
        self.token_bits = codebook.bits if token_bits is None else token_bits
        self._has_halves = self.token_bits == _HALF_BITS and codebook.bits == 2 * _HALF_BITS
        if self.token_bits != codebook.bits and not self._has_halves:
            raise ConfigError(
                f"token_bits is {token_bits}; a codebook of {codebook.bits} bits has tokens of {codebook.bits}"
                + (f" or {_HALF_BITS}" if codebook.bits == 2 * _HALF_BITS else "")
            )
        self.decodes_by_token = not self._has_halves
        self.vocab_size = 1 << _HALF_BITS if self._has_halves else codebook.num_tokens
        self.max_unstable_tokens: int | None = 2 if self._has_halves else 1
        if codebook.pattern is not None:
            self.max_unstable_tokens = None  # where pretokens end may depend on what follows, at any distance
        self.name = f"equal-info-{codebook.bits}" + (f"-by-{_HALF_BITS}" if self._has_halves else "")
        self.fingerprint = hashlib.sha256(
            f"fastcompress equal-info codec, version 1\ntoken_bits={self.token_bits}\n{codebook.fingerprint}".encode()
        ).hexdigest()
        if self._has_halves:
            self._prefixes = _common_prefixes(codebook.strings)

    def _arguments(self) -> dict[str, Any]:
        return {"codebook": self.codebook, "token_bits": self.token_bits, "auxiliary": self.auxiliary}

    def encode(self, data: Text) -> npt.NDArray[np.uint32]:
        ids: npt.NDArray[np.uint32] = self.codebook.encode(as_bytes(data))
        return np.stack((ids >> 8, ids & 255), 1).reshape(-1) if self._has_halves else ids

    def decode(self, tokens: npt.ArrayLike) -> bytes:
        """Decode tokens; an upper half left over at the end decodes to the common prefix of the strings of its 256 ids.

        Raises DataError for an id outside [0, vocab_size), and for two halves that form 0xFFFF, which is no id.
        """
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
        """Return the ids of the codebook, and the upper half that is left over at the end, or None."""
        ids = validate_ids(tokens, self)
        if not self._has_halves:
            return ids, None
        whole = ids[: len(ids) // 2 * 2].reshape(-1, 2)
        joined: npt.NDArray[np.uint32] = (whole[:, 0] << 8 | whole[:, 1]).astype(np.uint32)
        bad = joined >= self.codebook.num_tokens
        if bad.any():
            first = 2 * int(np.argmax(bad))
            raise DataError(f"tokens {first} and {first + 1} form 0xFFFF, which is not an id of {self.name}")
        return joined, int(ids[-1]) if len(ids) % 2 else None


def _common_prefixes(strings: Sequence[bytes]) -> list[bytes]:
    """Return the longest common prefix of the strings of each upper half.

    Strings are sorted, so a common prefix of the first and the last of them is common to all.
    """
    prefixes = []
    for begin in range(0, len(strings), 1 << _HALF_BITS):
        group = strings[begin : begin + (1 << _HALF_BITS)]
        first, last = group[0], group[-1]
        size = 0
        while size < min(len(first), len(last)) and first[size] == last[size]:
            size += 1
        prefixes.append(first[:size])
    return prefixes


class PaperEqualInfoCodec(CodecBase):
    """Windows as published (`equal_info.paper`), each as one token, or as two of 8 bits: a baseline that loses text.

    It can be neither saved nor loaded, because its model can be any function.

    >>> from fastcompress.equal_info import CountModel
    >>> from fastcompress.equal_info.paper import frequencies
    >>> windows = PaperWindows(frequencies(CountModel(b"to be or not to be " * 20)))
    >>> codec = PaperEqualInfoCodec(windows, "my model", keeps_wrong=True)
    >>> len(codec.encode("to be or not to be"))
    1
    """

    lossless = False
    unambiguous = False

    def __init__(
        self, windows: PaperWindows, model_fingerprint: str, token_bits: int = 16, *, keeps_wrong: bool = False
    ) -> None:
        """Make a codec.

        Args:
            windows: The windows, of at most 16 bits and over all 256 bytes.
            model_fingerprint: Identifies the model; part of the codec's fingerprint.
            token_bits: The number of bits of a window, or 8 for the halves of 16.
            keeps_wrong: Whether to encode text even if its windows decode to other text, to train on it as the paper
                did. Otherwise encoding raises DataError for such text.

        Raises:
            ConfigError: The windows are not such windows, or `token_bits` does not fit them.
        """
        as_instance(windows, PaperWindows, "windows")
        if windows.num_symbols != 256:
            raise ConfigError(f"the windows have {windows.num_symbols} symbols; a codec needs all 256 bytes")
        if windows.bits > 16 or token_bits not in (windows.bits, _HALF_BITS) or windows.bits % token_bits != 0:
            raise ConfigError(
                f"token_bits is {token_bits} and windows have {windows.bits} bits; they must have at most 16 bits, and "
                "token_bits must be the same number, or 8 for windows of 16"
            )
        self.windows, self.token_bits, self.keeps_wrong = windows, token_bits, keeps_wrong
        self.model_fingerprint = model_fingerprint
        self._num_parts = windows.bits // token_bits
        self.vocab_size = 1 << token_bits
        self.max_unstable_tokens: int | None = self._num_parts
        self.name = f"paper-equal-info-{windows.bits}" + ("" if self._num_parts == 1 else f"-by-{token_bits}")
        self.fingerprint = hashlib.sha256(
            f"fastcompress paper-equal-info codec, version 1\nbits={windows.bits} precision={windows.precision} "
            f"max_symbols={windows.max_symbols} token_bits={token_bits}\n{model_fingerprint}".encode()
        ).hexdigest()

    def _arguments(self) -> dict[str, Any]:
        return {
            "windows": self.windows,
            "model_fingerprint": self.model_fingerprint,
            "token_bits": self.token_bits,
            "keeps_wrong": self.keeps_wrong,
        }

    def encode(self, data: Text) -> npt.NDArray[np.uint32]:
        """Encode text. Raises DataError if some windows decode to other text, unless `keeps_wrong` is set."""
        data = as_bytes(data)
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
        """Decode tokens; an upper half left over at the end decodes to nothing.

        Raises DataError for an id outside [0, vocab_size), and for a window that no string encodes to.
        """
        return b"".join(self._strings(tokens))

    def byte_lengths(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the lengths of what tokens decode to, which need not be what was encoded."""
        lengths = np.array([len(string) for string in self._strings(tokens)], np.int64)
        if self._num_parts == 1:
            return lengths
        halves = np.zeros(np.size(tokens), np.int64)
        halves[1::2] = lengths
        return halves

    def _strings(self, tokens: npt.ArrayLike) -> list[bytes]:
        ids = validate_ids(tokens, self).astype(np.int64)
        if self._num_parts == 2:
            whole = ids[: len(ids) // 2 * 2].reshape(-1, 2)
            ids = whole[:, 0] << 8 | whole[:, 1]
        return [self.windows.decode_window(code) for code in ids.tolist()]


register_codec(
    CodecKind(
        "equal-info",
        EqualInfoCodec,
        lambda codec: {
            "token_bits": codec.token_bits,
            "codebook": to_text(codec.codebook.to_bytes()),
            **auxiliary_to_state(codec.auxiliary),
        },
        lambda state: EqualInfoCodec(
            Codebook.from_bytes(from_text(state["codebook"])),
            state["token_bits"],
            auxiliary=auxiliary_from_state(state),
        ),
    )
)
