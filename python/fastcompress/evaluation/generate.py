"""Sample text from a model and hand it out as it comes, in whole characters.

A symbol may end inside a UTF-8 character, so bytes go through an incremental decoder and a character appears only when
it is complete. What the symbols are, and how the model is asked for the next one, is the model's affair (its stepper).
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator

import torch
from torch import Tensor

from fastcompress.codec import Codec
from fastcompress.errors import ConfigError
from fastcompress.models.protocol import LanguageModel, Stepper


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
        max_tokens: Most symbols to draw. Beyond the context the oldest ones drop out of sight, half a context at a
            time: the windows are those of ``evaluate`` at its default stride.
        temperature: Divides the logits; 0 takes the likeliest token.
        top_k: Draw among the k likeliest only.
        top_p: Draw among the fewest likeliest tokens whose probabilities reach p (after top_k).
        seed: Of a private generator; the global one is neither read nor moved.

    Invalid or unfinished UTF-8 shows as U+FFFD, as ``bytes.decode("utf-8", "replace")`` has it. The same
    arguments give the same text on one machine. With a model that has a cache, each symbol costs a pass over one
    position, and every half context a pass over as many.

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
    stepper = model.stepper(codec)
    stepper.begin([prompt])
    sampler = Sampler(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    return _stream(stepper, prompt, max_tokens, sampler)


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


def _stream(stepper: Stepper, prompt: bytes, max_tokens: int, sampler: Sampler) -> Iterator[str]:
    characters = codecs.getincrementaldecoder("utf-8")(errors="replace")
    characters.decode(prompt)  # not shown, but the next byte may complete its last character
    num_shown = 0
    for _ in range(max_tokens):
        piece = stepper.push([sampler.draw(stepper.weights()[0])])[0]
        if stepper.done[0]:
            break
        num_shown += len(piece)
        text = characters.decode(piece)
        if text:
            yield text
    if num_shown and (rest := characters.decode(b"", final=True)):
        yield rest
