"""A function for the engines that map over data sets: texts in, ids out, the same in every process.

Such engines (`datasets`, Spark, datatrove) pickle the function and send it to their workers. A `BatchEncoder` pickles
as the path and the fingerprint of its codec, a few hundred bytes. A worker reads the file when it encodes its first
text, keeps the codec for as long as the process lives, and refuses a file that is not the codec that was sent.

The ids are those that `write_shards` would write, and depend on the text alone: not on the batch, nor on the worker.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fastcompress._arguments import as_path, shown
from fastcompress.codec import CODECS_BY_NAME, Codec, codec_from_spec
from fastcompress.codec.protocol import as_bytes
from fastcompress.data.encode import training_encoder
from fastcompress.errors import DataError, FastcompressError, MismatchError, with_place
from fastcompress.formats.published_ranks import PUBLISHED_ENCODINGS

if TYPE_CHECKING:
    import numpy.typing as npt

_TEXT_TYPES = (str, bytes, bytearray, memoryview)
_CODECS_PER_PROCESS = 4


class BatchEncoder:
    """A picklable function from texts to ids, without side effects.

    Call it with a batch of columns, as `datasets` and Ray Data do. `encode_rows` takes an iterator, as Spark's
    `mapPartitions` and the steps of datatrove do; `encode_texts` takes texts::

        dataset.map(encode_batch, batched=True, remove_columns="text")
        rdd.mapPartitions(encode_batch.encode_rows)

    Immutable; safe to share between threads.

    >>> encode_batch = BatchEncoder("byte")
    >>> encode_batch({"text": ["to", "be"]})
    {'input_ids': [array([116, 111], dtype=uint32), array([ 98, 101], dtype=uint32)]}
    >>> list(encode_batch.encode_rows([{"text": "to"}, "be"]))
    [[116, 111], [98, 101]]

    Attributes:
        fingerprint: The fingerprint of the codec.
        text_key: The column, or the key of a row, that holds the text.
        ids_key: The column of the ids.
        end_of_document: Whether each text's ids end with the id `vocab_size` of the codec, as they do in shards.
    """

    def __init__(
        self,
        codec: Codec | str | os.PathLike[str],
        *,
        text_key: str = "text",
        ids_key: str = "input_ids",
        end_of_document: bool = False,
    ) -> None:
        """Load the codec, to learn its fingerprint.

        Args:
            codec: The path of a codec, which every worker must be able to read, or the name of one, as for
                `codec_from_spec`. A codec itself is pickled as a whole, with its vocabulary.
            text_key: The column, or the key of a row, that holds the text.
            ids_key: The column of the ids.
            end_of_document: Whether to end each text's ids with the id `vocab_size` of the codec.

        Raises:
            DataError: There is no such codec.
            FormatError: The file is no codec, or damaged.
            ConfigError: A rank file's pattern is not known.
        """
        self.text_key = text_key
        self.ids_key = ids_key
        self.end_of_document = end_of_document
        self._codec: Codec | None = None
        self._spec = ""
        if isinstance(codec, Codec):
            self._codec = codec
        else:
            self._spec = as_path(codec, "codec")
            if self._spec not in CODECS_BY_NAME and self._spec not in PUBLISHED_ENCODINGS:
                self._spec = os.path.abspath(self._spec)  # a worker may have another working directory
            codec = codec_from_spec(self._spec)
        self.fingerprint = codec.fingerprint

    @property
    def codec(self) -> Codec:
        """The codec. Raises as the constructor does, and MismatchError if the file is now that of another codec."""
        return self._codec if self._codec is not None else _load(self._spec, self.fingerprint)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[npt.NDArray[np.uint32]]]:
        """Encode a batch of columns, for `datasets.map(batched=True)`.

        Args:
            batch: The name of each column and its values.

        Returns:
            The column of ids alone, uint32[n] for each row.

        Raises:
            DataError: There is no column `text_key`, or as for `encode_texts`.
            MismatchError: As for `encode_texts`.
        """
        if self.text_key not in batch:
            names = ", ".join(map(str, batch)) or "none"
            raise DataError(f"the batch has no column {self.text_key!r} but {names}; name the column as text_key")
        return {self.ids_key: list(self._encoded(batch[self.text_key], "row"))}

    def encode_texts(self, texts: Iterable[str | bytes]) -> list[npt.NDArray[np.uint32]]:
        """Return the ids of each text, uint32[n].

        Args:
            texts: The texts, a str as UTF-8.

        Raises:
            DataError: An item is no text, or the codec cannot encode it; its position is named.
            MismatchError: The file of the codec is now that of another one.
            TypeError: `texts` is one text, or not iterable.
        """
        if isinstance(texts, _TEXT_TYPES) or not isinstance(texts, Iterable):
            raise TypeError(f"texts is {shown(texts)}; it must be an iterable of str or bytes")
        return list(self._encoded(texts, "text"))

    def encode_rows(self, rows: Iterable[Any]) -> Iterator[list[int]]:
        """Yield the ids of each row as they are asked for, for Spark's `mapPartitions`.

        Args:
            rows: Texts, or rows (mappings, Spark's `Row`) that hold a text under `text_key`.

        Raises:
            DataError: A row has no text under that key, or the codec cannot encode it; its position is named.
            MismatchError: As for `encode_texts`.
        """
        for ids in self._encoded(map(self._text_of, rows), "row"):
            yield ids.tolist()

    def _text_of(self, row: Any) -> Any:
        if row is None or isinstance(row, _TEXT_TYPES):
            return row
        try:
            return row[self.text_key]
        except (LookupError, TypeError, ValueError):  # Spark's Row raises ValueError for a name that it does not have
            return None

    def _encoded(self, texts: Iterable[Any], what: str) -> Iterator[npt.NDArray[np.uint32]]:
        codec = self.codec
        encode = training_encoder(codec)
        end = np.array([codec.vocab_size] if self.end_of_document else [], np.uint32)
        for position, text in enumerate(texts):
            if not isinstance(text, _TEXT_TYPES):
                raise DataError(
                    f"{what} {position}: holds {shown(text)} instead of a text; remove it, or name its key as text_key"
                )
            try:
                ids = encode(as_bytes(text))
            except FastcompressError as error:
                raise with_place(error, f"{what} {position}") from error
            yield np.concatenate((ids, end)) if len(end) else ids

    def __repr__(self) -> str:
        name = repr(self._spec) if self._spec else self.codec.name
        return f"<BatchEncoder {name} fingerprint={self.fingerprint[:12]}>"


@functools.lru_cache(maxsize=_CODECS_PER_PROCESS)
def _load(spec: str, fingerprint: str) -> Codec:
    codec = codec_from_spec(spec)
    if codec.fingerprint != fingerprint:
        raise MismatchError(
            f"{spec}: is the codec {codec.fingerprint[:12]} here, but {fingerprint[:12]} where the encoder was made; "
            "give every worker the same file"
        )
    return codec
