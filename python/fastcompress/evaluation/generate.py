"""Sample text from a model and hand it out as it comes, in whole characters.

Two things are easy to get wrong here. A token may end inside a UTF-8 character, so bytes go through an
incremental decoder and a character appears only when complete. And a generator that stays in eval or
inference mode between two ``next()`` calls changes its caller's world, so both are entered and left around
each forward pass.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from fastcompress.codec import Codec
from fastcompress.errors import ConfigError, MismatchError
from fastcompress.evaluation.bits_per_byte import device_of, evaluation_mode
from fastcompress.models.allocation import memory_errors
from fastcompress.models.blocks import LanguageModel


def generate(
    model: LanguageModel,
    codec: Codec,
    prompt: bytes,
    *,
    max_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
) -> Iterator[str]:
    """Continue ``prompt``: yield the new text in pieces, until the end of document or ``max_tokens``.

    Args:
        model: Trained with ``codec``; its mode is left as found.
        prompt: Raw bytes, may be empty: then a document is begun. A character cut at its end is completed.
        max_tokens: Most tokens to draw; beyond the context the oldest tokens drop out of sight.
        temperature: Divides the logits; 0 takes the likeliest token.
        top_k: Draw among the k likeliest only.
        top_p: Draw among the fewest likeliest tokens whose probabilities reach p (after top_k).
        seed: Of a private generator; the global one is neither read nor moved.

    Invalid or unfinished UTF-8 shows as U+FFFD, as ``bytes.decode("utf-8", "replace")`` has it. The same
    arguments give the same text on one machine. One forward pass over at most ``context_length`` tokens for
    each token drawn.

    Raises:
        ConfigError: A setting out of range (at once, not at the first ``next()``).
        DataError: The codec cannot spell the prompt.
        MismatchError: The model's vocabulary is not the codec's.
    """
    if max_tokens < 0:
        raise ConfigError(f"max_tokens is {max_tokens}; it must be at least 0")
    if not temperature >= 0.0:
        raise ConfigError(f"temperature is {temperature}; it must be 0 (greedy) or more")
    if top_k is not None and top_k < 1:
        raise ConfigError(f"top_k is {top_k}; it must be at least 1, or None to draw among all tokens")
    if top_p is not None and not 0.0 < top_p <= 1.0:
        raise ConfigError(f"top_p is {top_p}; it must be in (0, 1]")
    if model.vocab_size != codec.vocab_size + 1:
        raise MismatchError(
            f"the model has {model.vocab_size} symbols, not the {codec.vocab_size + 1} of codec {codec.name} "
            "and the end of document: use the codec the model was trained with"
        )
    sampler = Sampler(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    return _stream(model, codec, prompt, codec.encode(prompt).tolist(), max_tokens, sampler)


class Sampler:
    """A source of token ids with its own random generator, on the CPU so that all devices draw alike."""

    def __init__(self, *, temperature: float, top_k: int | None, top_p: float | None, seed: int) -> None:
        self.temperature, self.top_k, self.top_p = temperature, top_k, top_p
        self.random = torch.Generator().manual_seed(seed)

    def draw(self, logits: Tensor) -> int:
        """Draw one id from ``logits float[V]``; equal logits rank by id, lowest first."""
        scores, ids = logits.float().cpu().sort(descending=True, stable=True)  # float32[V], int64[V]
        if self.temperature == 0.0:
            return int(ids[0])
        scores = scores[: self.top_k]  # float32[k]
        probabilities = ((scores - scores[0]) / self.temperature).softmax(dim=0)  # float32[k], decreasing
        if self.top_p is not None:  # keep a token if those before it do not reach p: the likeliest always stays
            before = probabilities.cumsum(dim=0) - probabilities  # float32[k]
            probabilities = probabilities[before < self.top_p]  # float32[m], a prefix
        return int(ids[torch.multinomial(probabilities, 1, generator=self.random)])


def _stream(
    model: LanguageModel, codec: Codec, prompt: bytes, tokens: list[int], max_tokens: int, sampler: Sampler
) -> Iterator[str]:
    end_of_document = codec.vocab_size
    characters = codecs.getincrementaldecoder("utf-8")(errors="replace")
    characters.decode(prompt)  # not shown, but the next byte may complete its last character
    num_shown = len(prompt)
    for _ in range(max_tokens):
        token = sampler.draw(_next_logits(model, [end_of_document, *tokens]))
        if token == end_of_document:
            break
        tokens.append(token)
        data = codec.decode(np.asarray(tokens, dtype=np.uint32))  # whole: a token's bytes may depend on earlier ones
        text = characters.decode(data[num_shown:])
        num_shown = len(data)
        if text:
            yield text
    if num_shown > len(prompt) and (rest := characters.decode(b"", final=True)):
        yield rest


@memory_errors()
def _next_logits(model: LanguageModel, sequence: list[int]) -> Tensor:
    window = sequence[-model.context_length :]
    with evaluation_mode(model), torch.inference_mode():
        tokens = torch.tensor([window], dtype=torch.int64, device=device_of(model))  # int64[1, T]
        last: Tensor = model(tokens)[0, -1]  # float[V]
    return last
