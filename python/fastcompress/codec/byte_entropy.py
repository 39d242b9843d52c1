"""Bytes with the entropy of the next one: what a byte-latent model needs to cut text where it becomes hard to predict.

The entropies are those of a small n-gram model, kept as a table of integers from contexts to entropies. So they are the
same on every machine and in every batch, which those of a neural network are not: patches that differ in one place
between training and generation would make the model another one. A look-up costs no multiply-adds, so there is no
auxiliary model to charge.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fastcompress._arguments import as_integer, as_texts
from fastcompress.codec.basic import ByteCodec
from fastcompress.codec.files import CodecKind, from_text, register_codec, to_text
from fastcompress.codec.protocol import Text, as_bytes
from fastcompress.equal_info.models import ENTROPY_BITS, byte_entropies
from fastcompress.errors import ConfigError, DataError

_MAX_ORDER = 6
_SHIFT = 6  # of a count, for each byte of its context: of 4, 6, 8 and 10 the best on held-out English
_SAMPLE_BYTES = 1 << 24  # so the largest weights take 24 + 6 * 6 bits
_CHUNK = 1024  # contexts whose entropies are computed at a time

Codes = npt.NDArray[np.uint64]  # contexts of one length, each read as a big-endian number


class EntropyByteCodec(ByteCodec):
    """Bytes as ids, and the entropy of the next byte after each of them.

    The entropy after a text is that of its longest last context in the table.

    >>> codec = EntropyByteCodec.train([b"to be or not to be"] * 4, order=2)
    >>> codec.decode(codec.encode("to be"))
    b'to be'
    >>> before_e, after_to = codec.entropies(b"to b")[[4, 2]] / 2**12  # in bits
    >>> bool(before_e < after_to)
    True
    """

    def __init__(self, table: Mapping[bytes, int]) -> None:
        """Make a codec of a table.

        Args:
            table: The entropy of the next byte after each context, in units of 2**-12 bits. Contexts have at most 6
                bytes; the empty one must be among them.

        Raises:
            ConfigError: A context is too long, an entropy is not from 0 to 8 bits, or the empty context is missing.
        """
        if b"" not in table:
            raise ConfigError("the table lacks the empty context, whose entropy holds where no other is known")
        longest = max(map(len, table))
        as_integer(longest, "the length of the longest context", 0, _MAX_ORDER)
        as_integer(min(table.values()), "the lowest entropy", 0, 8 << ENTROPY_BITS)
        as_integer(max(table.values()), "the highest entropy", 0, 8 << ENTROPY_BITS)
        self.table = dict(sorted(table.items()))
        self._by_length = [_keys_and_values(self.table, length) for length in range(longest + 1)]
        self.name = f"byte-entropy-{longest}"
        self.fingerprint = hashlib.sha256(
            b"fastcompress byte-entropy codec, version 1\n" + b"".join(map(_packed, self._by_length))
        ).hexdigest()

    def _arguments(self) -> dict[str, Any]:
        return {"table": self.table}

    @classmethod
    def train(cls, documents: Iterable[Text], order: int = 4, max_contexts: int = 1 << 16) -> EntropyByteCodec:
        """Make the table of an n-gram model of some text.

        The weight of a byte is 1 plus the sum over s = 0, ..., order of 64**s times the number of times that it
        followed the last s bytes.

        Args:
            documents: The text to learn from, of which the first 16 MiB are used.
            order: The length of the longest context in bytes, 0 to 6.
            max_contexts: The number of contexts to keep, at least 1: the most frequent ones, and of equally frequent
                ones the shorter, then the smaller.

        Raises:
            ConfigError: A setting is out of range.
            DataError: There is no text.

        Takes about 1 s per MB.
        """
        order = as_integer(order, "order", 0, _MAX_ORDER)
        max_contexts = as_integer(max_contexts, "max_contexts", 1, 1 << 24)
        grams = _count_grams([as_bytes(text) for text in as_texts(documents, "documents")], order)
        if not len(grams[0][0]):
            raise DataError("there is no text to learn entropies from; give documents that are not empty")
        table: dict[bytes, int] = {}
        for length, contexts in enumerate(_most_frequent(grams, max_contexts)):
            for begin in range(0, len(contexts), _CHUNK):
                chunk = contexts[begin : begin + _CHUNK]
                names = [int(code).to_bytes(length, "big") for code in chunk]
                rows = _weights(grams, chunk, length)
                table.update(zip(names, byte_entropies(lambda _, rows=rows: rows, names).tolist(), strict=True))
        return cls(table)

    def entropies(self, text: Text) -> npt.NDArray[np.int64]:
        """Return the entropy of the next byte after 0, 1, ..., len(text) bytes, in units of 2**-12 bits: int64[n + 1].

        What stands at n is a function of ``text[:n]``.
        """
        data = np.frombuffer(as_bytes(text), np.uint8).astype(np.uint64)
        found = np.full(len(data) + 1, self._by_length[0][1][0], np.int64)
        codes = np.zeros(len(data) + 1, np.uint64)  # of the last `length` bytes, from position `length` on
        for length, (keys, values) in enumerate(self._by_length[1:], 1):
            if length > len(data):
                break
            codes = codes[:-1] << np.uint64(8) | data[length - 1 :]
            if len(keys):
                places = np.minimum(np.searchsorted(keys, codes), len(keys) - 1)
                is_known = keys[places] == codes
                found[length:][is_known] = values[places[is_known]]
        return found


def _keys_and_values(table: Mapping[bytes, int], length: int) -> tuple[Codes, npt.NDArray[np.int64]]:
    """Return the contexts of one length in ascending order, and their entropies."""
    contexts = [context for context in table if len(context) == length]
    keys = np.array([int.from_bytes(context, "big") for context in contexts], np.uint64)
    return keys, np.array([table[context] for context in contexts], np.int64)


def _packed(part: tuple[Codes, npt.NDArray[np.int64]]) -> bytes:
    keys, values = part
    return len(keys).to_bytes(8, "little") + keys.astype("<u8").tobytes() + values.astype("<u2").tobytes()


def _unpacked(blob: bytes) -> EntropyByteCodec:
    """Return the codec whose parts `_packed` gave, one after the other."""
    table: dict[bytes, int] = {}
    length = position = 0
    while position < len(blob):
        size = int.from_bytes(blob[position : position + 8], "little")
        end = position + 8 + 10 * size
        keys = np.frombuffer(blob, "<u8", size, position + 8)  # raises ValueError if the blob is cut off
        if size and int(keys.max()) >> 8 * length:
            raise ValueError(f"a context is longer than its {length} bytes")
        values = np.frombuffer(blob, "<u2", size, end - 2 * size)
        table.update((int(key).to_bytes(length, "big"), int(v)) for key, v in zip(keys, values, strict=True))
        length, position = length + 1, end
    return EntropyByteCodec(table)


def _count_grams(texts: list[bytes], order: int) -> list[tuple[Codes, npt.NDArray[np.int64]]]:
    """Return for 1 to order + 1 bytes the strings of that length within texts, ascending, and their counts."""
    data = np.frombuffer(b"".join(texts)[:_SAMPLE_BYTES], np.uint8).astype(np.uint64)
    owner = np.repeat(np.arange(len(texts)), [len(text) for text in texts])[: len(data)]  # of each byte
    grams = []
    codes = np.zeros(len(data) + 1, np.uint64)
    for size in range(1, order + 2):
        codes = codes[:-1] << np.uint64(8) | data[size - 1 :]
        is_within = owner[: len(codes)] == owner[size - 1 :]
        grams.append(np.unique(codes[is_within], return_counts=True))
    return grams


def _most_frequent(grams: list[tuple[Codes, npt.NDArray[np.int64]]], max_contexts: int) -> list[Codes]:
    """Return the contexts to keep, by length, ascending; the empty one is the most frequent."""
    by_length = []
    for codes, counts in grams:
        contexts, places = np.unique(codes >> np.uint64(8), return_inverse=True)
        by_length.append((contexts, np.bincount(places, counts, len(contexts)).astype(np.int64)))
    lengths = np.repeat(np.arange(len(by_length)), [len(contexts) for contexts, _ in by_length])
    codes = np.concatenate([contexts for contexts, _ in by_length])
    kept = np.lexsort((codes, lengths, -np.concatenate([counts for _, counts in by_length])))[:max_contexts]
    return [np.sort(codes[kept[lengths[kept] == length]]) for length in range(len(by_length))]


def _weights(grams: list[tuple[Codes, npt.NDArray[np.int64]]], contexts: Codes, length: int) -> npt.NDArray[np.int64]:
    """Return the weights of all bytes after contexts of this length: int64[n, 256]."""
    rows = np.ones((len(contexts), 256), np.int64)
    for size, (codes, counts) in enumerate(grams[: length + 1]):
        suffixes = contexts & np.uint64((1 << 8 * size) - 1)
        begins = np.searchsorted(codes, suffixes << np.uint64(8))
        ends = np.searchsorted(codes, suffixes << np.uint64(8) | np.uint64(255), "right")
        sizes = ends - begins
        owners = np.repeat(np.arange(len(contexts)), sizes)
        places = np.arange(len(owners)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(begins, sizes)
        rows[owners, (codes[places] & np.uint64(255)).astype(np.int64)] += counts[places] << (_SHIFT * size)
    return rows


register_codec(
    CodecKind(
        "byte-entropy",
        EntropyByteCodec,
        lambda codec: {"table": to_text(b"".join(map(_packed, codec._by_length)))},
        lambda state: _unpacked(from_text(state["table"])),
    )
)
