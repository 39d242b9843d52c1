"""The base class of models over one column of token ids, and their decoding.

``NextTokenModel`` needs ``forward(tokens) -> logits``, a vocabulary and a context; everything else follows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor

from fastcompress.codec import ChatCodec, Codec, ProxyCodec
from fastcompress.data.canonical_rows import CanonicalRows
from fastcompress.data.proxy_rows import ProxyRows, reads_bytes_alone
from fastcompress.data.rows import Rows, TokenRows, num_symbols, spell
from fastcompress.errors import ConfigError, DataError, MismatchError
from fastcompress.models.allocation import memory_errors
from fastcompress.models.cross_entropy import next_token_loss, only_legal
from fastcompress.models.flops import Flops, count_flops
from fastcompress.models.protocol import Batch, LanguageModel, Stepper, device_of, evaluation_mode
from fastcompress.models.trunk import Cache


def token_rows(codec: Codec, vocab_size: int, context_length: int) -> TokenRows:
    """Return rows of ids for a model. Raises ConfigError if ``vocab_size`` is not that of the codec."""
    if vocab_size != num_symbols(codec):
        raise ConfigError(
            f"vocab_size is {vocab_size}, but codec {codec.name} and the end of document need {num_symbols(codec)}"
        )
    if reads_bytes_alone(codec):
        return ProxyRows(cast("ProxyCodec | ChatCodec", codec), context_length)
    return TokenRows(codec, context_length)


def token_bytes(codec: Codec) -> list[bytes]:
    """Return the bytes of each id; those of the end of a document are empty.

    Raises ConfigError if an id has no bytes of its own, such as a copy of earlier bytes.
    """
    try:
        return [codec.decode([number]) for number in range(codec.vocab_size)] + [b""]
    except DataError as error:
        raise ConfigError(f"codec is {codec.name}; it must give each id bytes of its own ({error})") from None


class NextTokenModel(LanguageModel):
    """A causal model of ids.

    ``forward(tokens: int64[B, T]) -> logits float[B, T, vocab_size]`` for ``1 <= T <= context_length``; the
    logits at position t may depend on tokens 0 .. t only. The vocabulary includes the end-of-document id.
    """

    context_length: int
    vocab_size: int

    def rows(self, codec: Codec) -> Rows:
        """Return rows of ids. Raises MismatchError if the vocabulary is not the codec's."""
        try:
            return token_rows(codec, self.vocab_size, self.context_length)
        except ConfigError as error:
            raise MismatchError(f"{error}; use the codec that the model was trained with") from None

    def nats(self, batch: Batch) -> Tensor:
        """Return the cross entropy of the targets, float32[B, S]."""
        return next_token_loss(self(batch["input"]), batch["target"], reduction="none")  # [B, S]

    def flops(self) -> Flops:
        """Count the operations of a row of ``context_length`` ids, from the modules."""
        return count_flops(self, self.context_length)

    def uniform_nats(self) -> float | None:
        """Return the logarithm of the vocabulary size."""
        return math.log(self.vocab_size)

    def random_batch(self, num_rows: int, max_events: int) -> dict[str, Tensor]:
        """Draw independent inputs and targets, all of weight 1."""
        num_events = min(self.context_length, max_events)
        both = torch.randint(self.vocab_size, (2, num_rows, num_events)).to(device_of(self))  # int64[2, B, S]
        weight = torch.ones(num_rows, num_events, device=both.device)  # [B, S]
        return {"input": both[0], "target": both[1], "weight": weight}

    def stepper(self, codec: Codec, lanes: int = 1, stride: int | None = None) -> Stepper:
        """Make a stepper, which decodes with the model's cache or else recomputes the window for each symbol."""
        return TokenStepper(self, codec, lanes, stride)

    def new_cache(self, lanes: int) -> Cache | None:
        """Make an empty cache for ``next_logits``; None if the model has none."""
        return None

    def next_logits(self, tokens: Tensor, last: Tensor, cache: Cache | None, positions: Tensor | None) -> Tensor:
        """Return the logits of the id after position ``last`` of each row.

        Args:
            tokens: ``int64[B, T]``.
            last: ``int64[B]``, in [0, T).
            cache: The cache of earlier positions, which these extend.
            positions: ``int64[B, T]``, the positions of these tokens; None without a cache.

        Returns:
            ``float[B, vocab_size]``.
        """
        logits: Tensor = self(tokens)  # [B, T, V]
        return logits[torch.arange(len(tokens), device=tokens.device), last]  # [B, V]


def is_incremental(codec: Codec) -> bool:
    """Return whether a codec's ids can be decoded as they come."""
    return getattr(codec, "is_incremental", True)


def check_incremental(codec: Codec) -> None:
    """Raise ConfigError if a codec's ids cannot be decoded as they come."""
    if not is_incremental(codec):
        raise ConfigError(
            f"codec is {codec.name}, whose ids decode only once a text is complete; to generate text, use a model of a "
            "codec whose ids can be decoded as they come, such as byte or bpe"
        )


def checked_stride(stride: int | None, context_length: int) -> int:
    """Return a stride, for None half the context. Raises ConfigError if it is out of range."""
    stride = max(1, context_length // 2) if stride is None else stride
    if not 1 <= stride <= context_length:
        raise ConfigError(f"stride must be in 1 .. {context_length} (the context), not {stride}")
    return stride


def window_begin(length: int, context_length: int, stride: int) -> int:
    """Return the start of the window from which the id after ``length`` ids is predicted, as evaluations have it."""
    beyond = length - context_length
    return max(0, -(-beyond // stride)) * stride


class TokenStepper:
    """Decodes ids in a window that slides as in evaluations.

    The ids of a document are numbered from 0, the end-of-document id before it. A window begins at a
    multiple of ``stride`` and holds at most ``context_length`` ids; when it is full, it moves on by ``stride`` and its
    ids are read again in one pass. In between, a model with a cache reads one id a step, in buffers of fixed shape.
    """

    def __init__(self, model: NextTokenModel, codec: Codec, lanes: int = 1, stride: int | None = None) -> None:
        stride = checked_stride(stride, model.context_length)
        if lanes < 1:
            raise ConfigError(f"lanes is {lanes}; it must be at least 1")
        rows = model.rows(codec)
        assert isinstance(rows, TokenRows)
        self.model, self.codec, self.lanes, self.stride = model, rows.spelling, lanes, stride
        self.end, self._num_given = rows.end_of_document, rows.num_given
        self._is_incremental = is_incremental(self.codec)
        self._canonical = rows.canonical if isinstance(rows, CanonicalRows) else None
        self._states = [0] * lanes  # of the encoder, if illegal ids are masked
        self.done = [False] * lanes
        self._sequences: list[list[int]] = []  # with the end of document at the front
        self._num_known: list[int] = []  # bytes of each lane that were handed out
        self._begins: list[int] = []  # of the windows
        self._num_read: list[int] = []  # ids of each window that the cache holds
        self._cache: Cache | None = None
        self._weights: Tensor | None = None

    def begin(self, prompts: Sequence[bytes]) -> None:
        """Begin a document in each lane.

        Raises DataError if the codec cannot encode a prompt, and ConfigError if nothing can follow the ids of one.
        """
        if any(prompts):
            check_incremental(self.codec)
        # Nothing is begun by the given ids alone: those of an empty text may end it, as in deflate.
        sizes = [None if prompt else self._num_given for prompt in prompts]
        encoded = [self.codec.encode(prompt)[:size].tolist() for prompt, size in zip(prompts, sizes, strict=True)]
        self.begin_tokens([[self.end, *ids] for ids in encoded])

    def begin_tokens(self, prompts: Sequence[Sequence[int]]) -> None:
        """Begin each lane with ids, the first of which is the end of a document; unlike text, they may be any ids."""
        if len(prompts) != self.lanes:
            raise ConfigError(f"{len(prompts)} prompts were given for {self.lanes} lanes; give one for each")
        self._sequences = [list(prompt) for prompt in prompts]
        self._num_known = [len(self.codec.decode(np.asarray(prompt[1:], np.uint32))) for prompt in prompts]
        if self._canonical is not None:
            self._states = [int(self._canonical.states_of(prompt[1:])[-1]) for prompt in prompts]
        self._begins, self._num_read = [], [0] * self.lanes
        self.done = [False] * self.lanes
        self._cache, self._weights = None, None

    def symbols(self, document: bytes) -> list[int]:
        """Return the ids of a document, without those that are given, and its end."""
        return [*spell(self.codec, document)[self._num_given :].tolist(), self.end]

    def weights(self) -> Tensor:
        """Return the logits of the next id of each lane, ``float[lanes, vocab_size]``; -inf for illegal ones."""
        if self._weights is None:
            self._weights = self._compute()
            if self._canonical is not None:
                legal = torch.from_numpy(self._canonical.legal_rows(self._states)).to(self._weights.device)
                self._weights = only_legal(self._weights, legal)
        return self._weights

    def push(self, symbols: Sequence[int]) -> list[bytes]:
        """Append an id to each lane that is not done; the end of a document ends its lane.

        If the codec is not incremental, all bytes of a document are returned at its end. Otherwise an id that does not
        decode after those before it, such as a copy from before the text, ends its lane too: nothing can follow it.
        """
        self._weights = None
        pieces = []
        for lane, symbol in enumerate(symbols):
            was_done = self.done[lane]
            self.done[lane] = was_done or symbol == self.end
            if not self.done[lane]:
                self._sequences[lane].append(int(symbol))
                if self._canonical is not None:
                    self._states[lane] = int(self._canonical.states_of([symbol], self._states[lane])[-1])
            if not self._is_incremental:
                pieces.append(self._new_bytes(lane) if self.done[lane] and not was_done else b"")
                continue
            try:
                pieces.append(b"" if self.done[lane] else self._new_bytes(lane))
            except DataError:
                self.done[lane] = True
                pieces.append(b"")
        return pieces

    def _new_bytes(self, lane: int) -> bytes:
        if getattr(self.codec, "decodes_by_token", False):
            return self.codec.decode(np.asarray(self._sequences[lane][-1:], dtype=np.uint32))
        data = self.codec.decode(np.asarray(self._sequences[lane][1:], dtype=np.uint32))
        piece, self._num_known[lane] = data[self._num_known[lane] :], len(data)
        return piece

    def _begin_of(self, length: int) -> int:
        """Return the start of the window from which the id after ``length`` ids is predicted."""
        return window_begin(length, self.model.context_length, self.stride)

    @memory_errors()
    def _compute(self) -> Tensor:
        begins = [self._begin_of(len(sequence)) for sequence in self._sequences]
        windows = [sequence[begin:] for sequence, begin in zip(self._sequences, begins, strict=True)]
        is_next = begins == self._begins and all(
            len(window) - num_read <= 1 for window, num_read in zip(windows, self._num_read, strict=True)
        )
        with evaluation_mode(self.model), torch.inference_mode():
            if self._cache is None or not is_next:
                self._cache = self.model.new_cache(self.lanes)
                weights = self._read(windows, [0] * self.lanes)
            else:  # the newest id of each lane; a lane that is done reads its last one once more
                weights = self._read([window[-1:] for window in windows], [len(window) - 1 for window in windows])
        self._begins, self._num_read = begins, list(map(len, windows))
        return weights

    def _read(self, windows: list[list[int]], first_positions: list[int]) -> Tensor:
        """Return the logits after the last id of each window; shorter ones are padded on the right, which is masked."""
        longest = max(map(len, windows))
        device = device_of(self.model)
        tokens = torch.tensor([window + [self.end] * (longest - len(window)) for window in windows], device=device)
        last = torch.tensor([len(window) - 1 for window in windows], device=device)  # int64[lanes]
        positions = None
        if self._cache is not None:
            first = torch.tensor(first_positions, device=device)[:, None]  # int64[lanes, 1]
            positions = first + torch.arange(longest, device=device)  # int64[lanes, T]
        return self.model.next_logits(tokens, last, self._cache, positions)  # [lanes, V]
