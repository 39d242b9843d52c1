"""Sample text from a model and hand it out as it comes, in whole characters.

A symbol may end inside a UTF-8 character, so bytes go through an incremental decoder and a character appears only when
it is complete. What the symbols are, and how the model is asked for the next one, is the model's affair (its stepper).
"""

from __future__ import annotations

import codecs
from collections.abc import Collection, Iterator, Sequence

import torch
from torch import Tensor

from fastcompress._arguments import as_integer, as_number
from fastcompress.codec import Codec
from fastcompress.errors import ConfigError
from fastcompress.models.protocol import LanguageModel, Stepper
from fastcompress.models.tokens import check_incremental


def generate(
    model: LanguageModel,
    codec: Codec,
    prompt: bytes,
    *,
    max_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    stop: Sequence[str] = (),
    seed: int = 0,
) -> Iterator[str]:
    """Continue ``prompt``: yield the new text in pieces, until the end of document, a stop string or ``max_tokens``.

    Args:
        model: Trained with ``codec``; its mode is left as found.
        prompt: Raw bytes, may be empty: then a document is begun. A character cut at its end is completed.
        max_tokens: Most symbols to draw. Beyond the context the oldest ones drop out of sight, half a context at a
            time: the windows are those of ``evaluate`` at its default stride.
        temperature: Divides the logits; 0 takes the likeliest token.
        top_k: Draw among the k likeliest only.
        top_p: Draw among the fewest likeliest tokens whose probabilities reach p (after top_k).
        stop: Strings before the first of which the new text ends; text that may be the beginning of one is held back.
        seed: Of a private generator; the global one is neither read nor moved.

    Invalid or unfinished UTF-8 shows as U+FFFD, as ``bytes.decode("utf-8", "replace")`` has it. The same
    arguments give the same text on one machine. With a model that has a cache, each symbol costs a pass over one
    position, and every half context a pass over as many.

    Raises:
        TypeError: A setting or a prompt of a wrong type (at once, not at the first ``next()``).
        ConfigError: A setting out of range, or a codec whose ids cannot be decoded as they come.
        DataError: The codec cannot spell the prompt.
        MismatchError: The model's vocabulary is not the codec's.
    """
    pieces = generate_batch(
        model, codec, [prompt], max_tokens=max_tokens, temperature=temperature, top_k=top_k, top_p=top_p, stop=stop,
        seed=seed,
    )  # fmt: skip
    return (text for _, text in pieces)


def generate_batch(
    model: LanguageModel,
    codec: Codec,
    prompts: Sequence[bytes],
    *,
    max_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    stop: Sequence[str] = (),
    seed: int = 0,
) -> Iterator[tuple[int, str]]:
    """Continue several prompts together: yield (the prompt's number, a piece of its new text) as they come.

    Args:
        prompts: Raw bytes each. Prompt number i is continued as ``generate`` continues it with seed ``seed + i``, up to
            rounding in the model.
        model, codec, max_tokens, temperature, top_k, top_p, stop, seed: As for ``generate``, which raises the same.
    """
    max_tokens = as_integer(max_tokens, "max_tokens", 0, 1 << 62)
    seed = as_integer(seed, "seed", 0, (1 << 63) - len(prompts))
    if isinstance(stop, str) or any(not isinstance(text, str) or not text for text in stop):
        raise ConfigError(f"stop is {stop!r}; it must be a list of strings that are not empty")
    for prompt in prompts:
        if not isinstance(prompt, bytes):
            raise TypeError(
                f"a prompt is of type {type(prompt).__name__}; it must be bytes, as str.encode() gives them"
            )
    samplers = [
        Sampler(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed + lane) for lane in range(len(prompts))
    ]
    if not prompts:
        return iter(())
    check_incremental(codec)
    stepper = model.stepper(codec, len(prompts))
    stepper.begin(prompts)
    return draw_text(stepper, samplers, [LaneText(prompt, stop) for prompt in prompts], max_tokens)


class Sampler:
    """A source of token ids with its own random generator, on the CPU so that all devices draw alike."""

    def __init__(
        self, *, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None, seed: int = 0
    ) -> None:
        """Take settings as ``generate`` describes them.

        Raises TypeError or ConfigError for one of a wrong type or out of range.
        """
        self.temperature = as_number(temperature, "temperature")
        if not self.temperature >= 0.0:
            raise ConfigError(f"temperature is {temperature}; it must be 0 (greedy) or more")
        self.top_k = None if top_k is None else as_integer(top_k, "top_k", 1, 1 << 62)
        self.top_p = None if top_p is None else as_number(top_p, "top_p")
        if self.top_p is not None and not 0.0 < self.top_p <= 1.0:
            raise ConfigError(f"top_p is {top_p}; it must be in (0, 1]")
        self.random = torch.Generator().manual_seed(as_integer(seed, "seed", 0, (1 << 63) - 1))

    def draw(self, logits: Tensor) -> int:
        """Draw one id from ``logits float[V]``; equal logits rank by id, lowest first."""
        scores, ids = logits.float().cpu().sort(descending=True, stable=True)  # float32[V], int64[V]
        if self.temperature == 0.0:
            return int(ids[0])
        scores = scores[: self.top_k]  # float32[k]
        scores = scores[scores > float("-inf")]  # at an infinite temperature, too, those have no probability
        probabilities = ((scores - scores[0]) / self.temperature).softmax(dim=0)  # float32[k], decreasing
        if self.top_p is not None:  # keep a token if those before it do not reach p: the likeliest always stays
            before = probabilities.cumsum(dim=0) - probabilities  # float32[k]
            probabilities = probabilities[before < self.top_p]  # float32[m], a prefix
        return int(ids[torch.multinomial(probabilities, 1, generator=self.random)])


class LaneText:
    """The new text of one lane: whole characters only, and nothing from a stop string on.

    Attributes:
        stopped: A stop string has come, or ``finish`` was called; nothing follows.
    """

    def __init__(self, prompt: bytes = b"", stop: Sequence[str] = ()) -> None:
        self.stop, self.stopped = tuple(stop), False
        self._characters = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._characters.decode(prompt)  # not shown, but the next byte may complete its last character
        self._has_bytes = False
        self._held = ""  # the longest end of the text that a stop string may begin with

    def add(self, piece: bytes) -> str:
        """Take new bytes and return the text that can be shown now."""
        self._has_bytes = self._has_bytes or bool(piece)
        return self._show(self._characters.decode(piece))

    def finish(self) -> str:
        """Return the rest of the text: what was held back, and U+FFFD for an unfinished character."""
        rest = "" if self.stopped else self._show(self._characters.decode(b"", final=True) if self._has_bytes else "")
        self.stopped, held, self._held = True, self._held, ""
        return rest + held

    def _show(self, new: str) -> str:
        text = self._held + new
        ends = [place for place in (text.find(stop) for stop in self.stop) if place >= 0]
        if ends:
            self.stopped, self._held = True, ""
            return text[: min(ends)]
        longest = max(map(len, self.stop), default=1) - 1
        beginnings = (length for length in range(min(longest, len(text)), 0, -1)
                      if any(stop.startswith(text[-length:]) for stop in self.stop))  # fmt: skip
        shown = len(text) - next(beginnings, 0)
        self._held = text[shown:]
        return text[:shown]


def draw_text(
    stepper: Stepper,
    samplers: Sequence[Sampler],
    texts: Sequence[LaneText],
    max_tokens: int,
    end_symbols: Collection[int] = (),
) -> Iterator[tuple[int, str]]:
    """Draw symbols for the lanes of a stepper that has begun, and yield (lane, text) as text becomes known.

    Args:
        stepper: After ``begin``.
        samplers, texts: One a lane.
        max_tokens: Most symbols a lane.
        end_symbols: Symbols that end a lane's text beside the end of its document; they are not pushed.
    """
    for _ in range(max_tokens):
        open_lanes = [lane for lane, text in enumerate(texts) if not (text.stopped or stepper.done[lane])]
        if not open_lanes:
            break
        weights = stepper.weights()  # float[lanes, A]
        weights = weights.float().cpu() if len(open_lanes) > 1 else weights  # one copy from the device for all lanes
        symbols = [
            samplers[lane].draw(weights[lane]) if lane in open_lanes else int(weights[lane].argmax())
            for lane in range(len(texts))  # a lane that has ended reads some legal symbol, which is not shown
        ]
        ended = [lane for lane in open_lanes if symbols[lane] in end_symbols]
        for lane in ended:
            if rest := texts[lane].finish():
                yield lane, rest
        if len(ended) == len(open_lanes):
            continue
        pieces = stepper.push(symbols)
        for lane in open_lanes:
            if not (texts[lane].stopped or stepper.done[lane]) and (text := texts[lane].add(pieces[lane])):
                yield lane, text
    for lane, text_of_lane in enumerate(texts):
        if rest := text_of_lane.finish():
            yield lane, rest


def in_order(pieces: Iterator[tuple[int, str]], num_lanes: int) -> Iterator[tuple[int, str]]:
    """Put pieces of several lanes in the order of the lanes: those of the first at once, later ones when it is done."""
    waiting: list[list[str]] = [[] for _ in range(num_lanes)]
    for lane, text in pieces:
        if lane == 0:
            yield lane, text
        else:
            waiting[lane].append(text)
    for lane, texts in enumerate(waiting):
        if texts:
            yield lane, "".join(texts)
