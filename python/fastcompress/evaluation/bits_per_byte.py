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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fastcompress.codec import Codec
from fastcompress.errors import ConfigError, DataError, MismatchError
from fastcompress.models.allocation import memory_errors
from fastcompress.models.blocks import LanguageModel
from fastcompress.models.gpt import next_token_loss


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

    def to_json(self) -> dict[str, Any]:
        """The fields as plain values, ready for ``json.dumps``."""
        return dataclasses.asdict(self)


class Window(NamedTuple):
    """Symbols ``[begin, end)`` of one document's sequence, of which those from ``scored`` on count."""

    begin: int
    scored: int
    end: int


def bits_per_byte(nats: float, num_bytes: int) -> float:
    """Convert a sum of nats over ``num_bytes`` raw bytes; ``DataError`` when there are none."""
    if num_bytes <= 0:
        raise DataError("bits per byte need at least one byte of text")
    return nats / math.log(2) / num_bytes


def scoring_windows(num_symbols: int, context_length: int, stride: int) -> Iterator[Window]:
    """Windows of at most ``context_length`` whose scored ranges tile ``[0, num_symbols)`` in order."""
    yield Window(0, 0, min(context_length, num_symbols))
    for begin in range(stride, num_symbols - context_length + stride, stride):
        end = begin + context_length
        yield Window(begin, end - stride, min(end, num_symbols))


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
) -> Evaluation:
    """Bits per byte of ``model`` on ``documents``, each scored alone; this file's head states the protocol.

    Args:
        model: ``tokens int64[B, T] -> logits [B, T, codec.vocab_size + 1]``; put into eval mode and back.
        codec: What the model was trained with; the end-of-document id is ``codec.vocab_size``.
        documents: Raw bytes; empty ones are fine and pay for their end. At least one byte in all.
        stride: Slide of the window, 1 .. context_length; default half the context.
        batch_size: Windows in one forward pass; affects speed only.
        device: Where the model is; default: where its parameters are.
        autocast: Reusable context of the forward pass, such as ``torch.autocast(...)``; default float32.
        progress: Called after each batch with (windows scored, windows in all).

    Raises:
        ConfigError: ``stride`` or ``batch_size`` out of range.
        DataError: No bytes, the codec's lengths do not add up, or the model returns infinite or NaN loss.
        MismatchError: The model's vocabulary is not the codec's.

    Memory: 12 bytes a token. Deterministic for one machine, device and batch size.
    """
    stride = max(1, model.context_length // 2) if stride is None else stride
    if not 1 <= stride <= model.context_length:
        raise ConfigError(f"stride must be in 1 .. {model.context_length} (the context), not {stride}")
    if batch_size < 1:
        raise ConfigError(f"batch_size must be at least 1, not {batch_size}")
    encoded = [_encode(codec, data, index) for index, data in enumerate(documents)]  # uint32[n] each
    num_bytes = sum(len(data) for data in documents)
    if num_bytes == 0:
        raise DataError("no bytes to evaluate on: all documents are empty")
    nats = symbol_nats(
        model, encoded, end_of_document=codec.vocab_size, stride=stride, batch_size=batch_size, device=device,
        autocast=autocast, progress=progress,
    )  # fmt: skip  # float64[tokens + documents]
    return _evaluation(nats, [len(tokens) for tokens in encoded], num_bytes, codec, model.context_length, stride)


def _evaluation(
    nats: NDArray[np.float64], lengths: Sequence[int], num_bytes: int, codec: Codec, context_length: int, stride: int
) -> Evaluation:
    """The figures of ``nats float64[sum(lengths) + documents]``: every document's tokens, then its end."""
    ends = np.cumsum([length + 1 for length in lengths]) - 1  # int64[documents]: each end-of-document's place
    total = float(nats.sum())
    return Evaluation(
        bits_per_byte=bits_per_byte(total, num_bytes),
        bits_per_byte_text=bits_per_byte(total - float(nats[ends].sum()), num_bytes),
        perplexity_per_token=math.exp(min(total / len(nats), 700.0)),  # 700: the last exponent a float64 holds
        nats=total,
        num_bytes=num_bytes,
        num_tokens=len(nats) - len(lengths),
        num_documents=len(lengths),
        is_exact=codec.unambiguous,
        context_length=context_length,
        stride=stride,
    )


def symbol_nats(
    model: LanguageModel,
    encoded: Sequence[NDArray[np.uint32]],
    *,
    end_of_document: int,
    stride: int,
    batch_size: int,
    device: torch.device | str | None = None,
    autocast: contextlib.AbstractContextManager[Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> NDArray[np.float64]:
    """Cross entropy of every symbol, ``float64[sum(n_i + 1)]`` in document order; arguments as in ``evaluate``."""
    offsets = np.cumsum([0, *(len(tokens) + 1 for tokens in encoded)])  # int64[documents + 1]
    work = [
        (index, window)
        for index, tokens in enumerate(encoded)
        for window in scoring_windows(len(tokens) + 1, model.context_length, stride)
    ]
    work.sort(key=lambda item: item[1].begin - item[1].end)  # longest first; stable, so the order is fixed
    place = device_of(model) if device is None else torch.device(device)
    nats = np.full(offsets[-1], np.nan)  # float64[symbols]; what stays NaN was not scored
    with evaluation_mode(model), torch.inference_mode():
        for first in range(0, len(work), batch_size):
            batch = work[first : first + batch_size]
            inputs, targets = _pad(encoded, batch, end_of_document)  # 2 x int64[B, T]
            losses = _losses(model, inputs.to(place), targets.to(place), end_of_document, autocast)  # float32[B, T]
            rows = losses.cpu().numpy()  # float32[B, T]
            for row, (index, window) in zip(rows, batch, strict=True):
                begin, end = offsets[index] + window.scored, offsets[index] + window.end
                nats[begin:end] = row[window.scored - window.begin : window.end - window.begin]
            if progress is not None:
                progress(first + len(batch), len(work))
    if not np.isfinite(nats).all():
        index = int(np.searchsorted(offsets, np.flatnonzero(~np.isfinite(nats))[0], side="right")) - 1
        raise DataError(f"the model's loss on document {index} is not finite: its weights or logits overflowed")
    return nats


def _encode(codec: Codec, data: bytes, index: int) -> NDArray[np.uint32]:
    tokens = codec.encode(data)  # uint32[n]
    spelled = int(codec.byte_lengths(tokens).sum())
    if spelled != len(data):
        raise DataError(f"codec {codec.name} accounts for {spelled} of the {len(data)} bytes of document {index}")
    return tokens


def _pad(
    encoded: Sequence[NDArray[np.uint32]], batch: Sequence[tuple[int, Window]], end_of_document: int
) -> tuple[Tensor, Tensor]:
    """Inputs and targets of a batch of windows, padded on the right, where a causal model cannot see."""
    longest = max(window.end - window.begin for _, window in batch)
    padded = np.full((len(batch), longest + 1), end_of_document, dtype=np.int64)  # int64[B, T + 1]
    for row, (index, (begin, _, end)) in zip(padded, batch, strict=True):
        symbols = encoded[index][max(0, begin - 1) : end]  # the sequence is [end of document] + tokens + [it again]
        first = 1 if begin == 0 else 0
        row[first : first + len(symbols)] = symbols
    both = torch.from_numpy(padded)  # int64[B, T + 1]
    return both[:, :-1], both[:, 1:]


def _losses(
    model: LanguageModel,
    inputs: Tensor,
    targets: Tensor,
    end_of_document: int,
    autocast: contextlib.AbstractContextManager[Any] | None,
) -> Tensor:
    with autocast or contextlib.nullcontext():
        logits = model(inputs)  # [B, T, V]
    if logits.size(-1) != end_of_document + 1:
        raise MismatchError(
            f"the model predicts {logits.size(-1)} symbols but the codec has {end_of_document}, plus one: "
            "use the codec the model was trained with"
        )
    return next_token_loss(logits, targets, reduction="none")  # float32[B, T]


def device_of(model: nn.Module) -> torch.device:
    """Where the parameters are; the CPU for a model without any."""
    parameter = next(model.parameters(), None)
    return torch.device("cpu") if parameter is None else parameter.device


@contextlib.contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Dropout off inside, every module's own mode as before outside."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, was_training in modes:
            module.training = was_training
