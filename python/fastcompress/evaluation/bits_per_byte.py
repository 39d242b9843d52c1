"""Score a model on a fixed list of documents, in bits per raw byte: the one number all tokenizations share.

Loss per token cannot compare models whose tokens differ in length. Bits per byte can, if the protocol is
honest:
  * the document list is fixed; each document is scored alone, as [end-of-document] + tokens -> tokens +
    [end-of-document];
  * every symbol is scored exactly once, the end-of-document symbol too, so a model pays for knowing where
    texts stop;
  * the denominator is the raw bytes, and the codec's byte lengths must add up to them;
  * cross entropy in float32, its sum in float64 and in document order: batching and padding change rounding
    only;
  * long documents slide a window of ``context_length`` by ``stride``: the first window scores all its
    symbols, a later one only its last ``stride``, which so see at least ``context_length - stride`` symbols.
    The stride changes the figure (more context, fewer bits), so it is published with it.

A codec that could spell the same bytes in several ways (BPE) wastes probability on the spellings it never
uses: then the figure is an upper bound on the model's bits for those bytes, and ``is_exact`` says so.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fastcompress.codec import Codec
from fastcompress.data.rows import WEIGHT, Row, Rows, scoring_windows
from fastcompress.errors import ConfigError, DataError
from fastcompress.models.allocation import memory_errors
from fastcompress.models.protocol import LanguageModel, device_of, evaluation_mode

__all__ = [
    "Evaluation",
    "bits_per_byte",
    "device_of",
    "evaluate",
    "evaluation_mode",
    "event_nats",
    "scoring_windows",
]


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """A score and the protocol behind it.

    Attributes:
        bits_per_byte: All symbols, end of document included, over raw bytes.
        bits_per_byte_text: The same without the end-of-document symbols.
        perplexity_per_token: exp(nats / (num_tokens + num_documents)); comparable within one codec only.
        nats: All symbols' cross entropy.
        num_bytes, num_documents: Raw.
        num_tokens: The codec's; end-of-document symbols are not among them.
        is_exact: False: an upper bound, since the codec has more than one spelling.
        context_length, stride: Window and slide, in tokens.
        uniform_bits_per_byte: What a model that has learned nothing scores: the same probability for each id. Tokens
            of a good compressor score well for nothing, so the gain over this is what was learned. None where ids are
            masked.
        boundary_bits_per_byte: The part of ``bits_per_byte`` that is paid for the ends of segments, by models that
            predict them (HEAT); None for others.
    """

    bits_per_byte: float
    bits_per_byte_text: float
    perplexity_per_token: float
    nats: float
    num_bytes: int
    num_tokens: int
    num_documents: int
    is_exact: bool
    context_length: int
    stride: int
    uniform_bits_per_byte: float | None = None
    boundary_bits_per_byte: float | None = None

    @property
    def gain_over_uniform(self) -> float | None:
        """The bits per byte that the model saves over one that has learned nothing; None: not known."""
        return None if self.uniform_bits_per_byte is None else self.uniform_bits_per_byte - self.bits_per_byte

    def to_json(self) -> dict[str, Any]:
        """The fields as plain values, ready for ``json.dumps``."""
        return dataclasses.asdict(self)


def bits_per_byte(nats: float, num_bytes: float) -> float:
    """Convert a sum of nats over ``num_bytes`` raw bytes; ``DataError`` when there are none."""
    if num_bytes <= 0:
        raise DataError("bits per byte need at least one byte of text")
    return nats / math.log(2) / num_bytes


@memory_errors()
def evaluate(
    model: LanguageModel,
    codec: Codec,
    documents: Sequence[bytes],
    *,
    stride: int | None = None,
    batch_size: int = 32,
    device: torch.device | str | None = None,
    autocast: contextlib.AbstractContextManager[Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
    rows: Rows | None = None,
) -> Evaluation:
    """Bits per byte of ``model`` on ``documents``, each scored alone; this file's head states the protocol.

    Args:
        model: Any kind of model; put into eval mode and back.
        codec: What the model was trained with.
        documents: Raw bytes; empty ones are fine and pay for their end. At least one byte in all.
        stride: Slide of the window, 1 .. context_length; default half the context.
        batch_size: Windows in one forward pass; affects speed only.
        device: Where the model is; default: where its parameters are.
        autocast: Reusable context of the forward pass, such as ``torch.autocast(...)``; default float32.
        progress: Called after each batch with (windows scored, windows in all).
        rows: How documents become rows; default: as the model reads text.

    Raises:
        ConfigError: ``stride`` or ``batch_size`` out of range.
        DataError: No bytes, the codec's lengths do not add up, or the model returns infinite or NaN loss.
        MismatchError: The model does not read this codec's rows.

    Memory: 4 bytes an event, and one row a document. Deterministic for one machine, device and batch size.
    """
    rows = model.rows(codec) if rows is None else rows
    stride = max(1, rows.context_length // 2) if stride is None else stride
    if not 1 <= stride <= rows.context_length:
        raise ConfigError(f"stride must be in 1 .. {rows.context_length} (the context), not {stride}")
    if batch_size < 1:
        raise ConfigError(f"batch_size must be at least 1, not {batch_size}")
    num_bytes = sum(map(rows.num_bytes, documents))
    if num_bytes == 0:
        raise DataError("no bytes to evaluate on: all documents are empty")
    boundary: int | None = getattr(rows, "boundary_symbol", None)
    nats, is_boundary = _scored_events(
        model, rows, documents, boundary, stride=stride, batch_size=batch_size, device=device, autocast=autocast,
        progress=progress,
    )  # fmt: skip  # float32[events] and bool[events] for each document
    is_masked = getattr(rows, "canonical", None) is not None
    score = _evaluation(nats, num_bytes, rows, stride, None if is_masked else model.uniform_nats())
    if boundary is None:
        return score
    of_boundaries = float(np.concatenate(nats)[np.concatenate(is_boundary)].astype(np.float64).sum())
    return dataclasses.replace(score, boundary_bits_per_byte=bits_per_byte(of_boundaries, num_bytes))


def _evaluation(
    nats: Sequence[NDArray[np.float32]], num_bytes: int, rows: Rows, stride: int, uniform: float | None
) -> Evaluation:
    """The figures of each document's events, the last of which is its end; `uniform`: the nats of an unlearned one."""
    total = float(np.concatenate(nats).astype(np.float64).sum())
    ends = float(np.array([document[-1] for document in nats], np.float64).sum())
    num_events = sum(map(len, nats))
    return Evaluation(
        bits_per_byte=bits_per_byte(total, num_bytes),
        bits_per_byte_text=bits_per_byte(total - ends, num_bytes),
        perplexity_per_token=math.exp(min(total / num_events, 700.0)),  # 700: the last exponent a float64 holds
        nats=total,
        num_bytes=num_bytes,
        num_tokens=num_events - len(nats),
        num_documents=len(nats),
        is_exact=rows.is_exact,
        context_length=rows.context_length,
        stride=stride,
        uniform_bits_per_byte=None if uniform is None else bits_per_byte(num_events * uniform, num_bytes),
    )


def event_nats(
    model: LanguageModel,
    rows: Rows,
    documents: Sequence[bytes],
    *,
    stride: int,
    batch_size: int,
    device: torch.device | str | None = None,
    autocast: contextlib.AbstractContextManager[Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[NDArray[np.float32]]:
    """What each event of each document costs, ``float32[events]`` a document; arguments as in ``evaluate``.

    Each event is scored once, in the row in which it has weight 1.
    """
    return _scored_events(
        model, rows, documents, None, stride=stride, batch_size=batch_size, device=device, autocast=autocast,
        progress=progress,
    )[0]  # fmt: skip


def _scored_events(
    model: LanguageModel,
    rows: Rows,
    documents: Sequence[bytes],
    boundary: int | None,
    *,
    stride: int,
    batch_size: int,
    device: torch.device | str | None,
    autocast: contextlib.AbstractContextManager[Any] | None,
    progress: Callable[[int, int], None] | None,
) -> tuple[list[NDArray[np.float32]], list[NDArray[np.bool_]]]:
    """What `event_nats` returns, and which events have the target ``boundary``; with None, no list of these."""
    place = device_of(model) if device is None else torch.device(device)
    num_rows = sum(1 for _ in _scoring_rows(rows, documents, stride)) if progress is not None else 0
    num_done = 0
    scored: dict[tuple[int, int], NDArray[np.float32]] = {}
    marked: dict[tuple[int, int], NDArray[np.bool_]] = {}
    with evaluation_mode(model), torch.inference_mode():
        for batch in _batches(_scoring_rows(rows, documents, stride), rows.context_length, batch_size):
            columns = rows.stack([row for _, row in batch])  # [B, S] each
            tensors = {name: torch.from_numpy(column).to(place) for name, column in columns.items()}
            with autocast or contextlib.nullcontext():
                nats = model.nats(tensors).cpu().numpy()  # float32[B, S]
            for values, (place_of_row, row) in zip(nats, batch, strict=True):
                counts = row[WEIGHT] > 0  # bool[events of the row]
                scored[place_of_row] = values[: len(counts)][counts]  # float32[scored]
                if boundary is not None:
                    marked[place_of_row] = row["target"][counts] == boundary
            num_done += len(batch)
            if progress is not None:
                progress(num_done, num_rows)
    whole = _by_document(scored, len(documents))
    for index, values in enumerate(whole):
        if not np.isfinite(values).all():
            raise DataError(f"the model's loss on document {index} is not finite: its weights or logits overflowed")
    return whole, _by_document(marked, len(documents)) if boundary is not None else []


def _by_document(of_rows: Mapping[tuple[int, int], NDArray[Any]], num_documents: int) -> list[NDArray[Any]]:
    """Join the values of each document's rows, in order; every document has a row."""
    parts: list[list[NDArray[Any]]] = [[] for _ in range(num_documents)]
    for index, number in sorted(of_rows):
        parts[index].append(of_rows[index, number])
    return [np.concatenate(part) for part in parts]


PlacedRow = tuple[tuple[int, int], Row]  # the number of its document, and its own in there


def _scoring_rows(rows: Rows, documents: Sequence[bytes], stride: int) -> Iterator[PlacedRow]:
    index = 0
    try:
        for index, document in enumerate(documents):
            for number, row in enumerate(rows.scoring_rows(document, stride)):
                yield (index, number), row
    except DataError as error:
        raise DataError(f"document {index}: {error}") from error


def _batches(placed: Iterator[PlacedRow], full_length: int, batch_size: int) -> Iterator[list[PlacedRow]]:
    """Batches of rows, the longest first and otherwise in order: padding is computed and thrown away.

    Full rows are passed on as they come; only shorter ones, of which a document has one at most, are kept to be sorted.
    """
    batch: list[PlacedRow] = []
    short: list[PlacedRow] = []
    for item in placed:
        if len(item[1][WEIGHT]) < full_length:
            short.append(item)
            continue
        batch.append(item)
        if len(batch) == batch_size:
            yield batch
            batch = []
    batch += sorted(short, key=lambda item: -len(item[1][WEIGHT]))
    for begin in range(0, len(batch), batch_size):
        yield batch[begin : begin + batch_size]
