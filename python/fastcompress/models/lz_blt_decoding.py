"""Decoding an LZ-BLT token by token, and three ways to keep its tokens those of the text that they spell.

sample      A token stands as it was drawn. After a few, they are no longer those that the parser would have made of the
            text, which are all that the model was trained on: the pointers drift.
recompress  The bytes of each token are appended to an incremental parser, and the model goes on from the tokens of the
            parse of all bytes so far ("iterative re-compression"). At most
            ``max_unstable_tokens`` of the codec change, and the new ones follow.
legal       Only tokens are drawn that the parser would have next, so that to parse again changes nothing, which is
            asserted after each token. Greedy parses only.

What a model has read of a lane is kept by position. If the context changes from token j on (its own positions), those
before j stay as they are, since no layer sees later positions, and j and all after it are read anew: attention writes
their keys and values over the old ones before any position reads them, and a patch that was known with token j or
later is read again when it is known again. So the cache is cut back to exactly j, and what follows equals a computation
from the beginning (``tests/test_lz_blt.py``).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from fastcompress.codec import Codec
from fastcompress.data.lz_buckets import Integers
from fastcompress.data.lz_fields import END, Choices, Mask
from fastcompress.data.lz_rows import LZRows
from fastcompress.data.rows import spell
from fastcompress.errors import ConfigError
from fastcompress.lz77 import MATCH, IncrementalParser, LZTokens, Token
from fastcompress.models.allocation import memory_errors
from fastcompress.models.protocol import device_of, evaluation_mode
from fastcompress.models.tokens import checked_stride, window_begin
from fastcompress.models.trunk import Cache

if TYPE_CHECKING:
    from fastcompress.models.lz_blt import LZBLT


class LaneTokens:
    """The tokens of one document that grows.

    Attributes:
        tokens: What the model reads of the document, as (kind, value, length).
        drawn: The tokens that were pushed, as they were.
        text: The bytes.
        num_kept: So many of the first tokens are what they were when the caller last set this.
    """

    def __init__(self, rows: LZRows, prompt: bytes, generation: str) -> None:
        """Begin with the parse of a prompt."""
        self.rows, self.generation = rows, generation
        self.tokens: list[tuple[int, int, int]] = list(rows.lz77.columns(spell(rows.codec, prompt)))
        self.drawn: list[Token] = []
        self.text = bytearray(prompt)
        self.num_kept = len(self.tokens)
        self.parser: IncrementalParser | None = None
        if generation != "sample":
            self.parser = IncrementalParser(rows.lz77.params)
            self.parser.append(prompt)

    def push(self, token: Token) -> bytes:
        """Append a token and return its bytes."""
        piece = self.bytes_of(token)
        self.text += piece
        self.drawn.append(token)
        if self.generation == "recompress":
            self._parse_again(piece)
            return piece
        self.tokens.append(token)
        if self.parser is not None:
            assert self.parser.is_legal(token), "the token is not legal"
            first, tail = self.parser.extend(piece)
            assert tail == self.tokens[first:], "a legal token changed the parse"
        return piece

    def _parse_again(self, piece: bytes) -> None:
        """Replace the tokens that the new bytes change, and add the new ones."""
        assert self.parser is not None
        first, tail = self.parser.extend(piece)
        before = self.tokens[first:]
        self.tokens[first:] = tail
        pairs = zip(before, tail, strict=False)
        same = next((index for index, (old, new) in enumerate(pairs) if old != new), min(len(before), len(tail)))
        self.num_kept = min(self.num_kept, first + same)

    def bytes_of(self, token: Token) -> bytes:
        """Return the bytes of a token that follows the text; a match may reach into its own."""
        if token.kind != MATCH:
            return bytes([token.value])
        begin = len(self.text) - token.value
        pattern = bytes(self.text[begin : begin + token.length])
        return (pattern * -(-token.length // len(pattern)))[: token.length]


class LZStepper:
    """Decodes tokens field by field, in a window that slides as in evaluations (``NextTokenModel.stepper``).

    Each token takes as many symbols as there are fields; fields that a token lacks have one legal symbol, 0. The end of
    a document is its kind alone.

    Attributes:
        texts: The documents; `LaneTokens.drawn` is what was pushed.
    """

    def __init__(self, model: LZBLT, codec: Codec, lanes: int, stride: int | None, generation: str) -> None:
        """See ``LZBLT.stepper``."""
        stride = checked_stride(stride, model.context_length)
        if lanes < 1:
            raise ConfigError(f"lanes is {lanes}; it must be at least 1")
        rows = model.rows(codec)
        assert isinstance(rows, LZRows)
        if generation == "legal" and rows.lz77.params.parse != "greedy":
            raise ConfigError(f"parse is {rows.lz77.params.parse!r}; it must be 'greedy', whose legal tokens are known")
        self.model, self.rows, self.fields = model, rows, rows.fields
        self.lanes, self.stride, self.generation = lanes, stride, generation
        self.done = [False] * lanes
        self.texts: list[LaneTokens] = []
        self._begins: list[int] = []  # of the windows, in positions of documents, where 0 is the end before them
        self._cache: Cache | None = None
        self._start_token()

    def _start_token(self) -> None:
        self._field = 0
        self._symbols = np.zeros((self.lanes, self.fields.num_fields), np.int64)  # of the token, as far as pushed
        self._state: Tensor | None = None  # float[lanes, d], u of the field
        self._choices: list[Choices | None] = [None] * self.lanes

    def begin(self, prompts: Sequence[bytes]) -> None:
        """Begin a document with these bytes in each lane."""
        if len(prompts) != self.lanes:
            raise ConfigError(f"{len(prompts)} prompts were given for {self.lanes} lanes; give one for each")
        self.texts = [LaneTokens(self.rows, prompt, self.generation) for prompt in prompts]
        self.done = [False] * self.lanes
        self._begins, self._cache = [], None
        self._start_token()

    def symbols(self, document: bytes) -> list[int]:
        """Return the symbols of a document and its end."""
        symbols: list[int] = (
            self.fields.symbols(self.rows.lz77.columns(spell(self.rows.codec, document))).ravel().tolist()
        )
        return [*symbols, END]

    def weights(self) -> Tensor:
        """Return the logits of the next field of each lane, ``float[lanes, A]``; -inf for illegal symbols."""
        if self._state is None:
            self._state = self._compute()
        with torch.inference_mode():
            logits = self.model.field_logits(self._state, self._field)  # [lanes, A]
            return logits.masked_fill(~torch.from_numpy(self._legal()).to(logits.device), float("-inf"))  # [lanes, A]

    def push(self, symbols: Sequence[int]) -> list[bytes]:
        """Append a symbol to the token of each lane that is not done; one that is not legal ends the document, too."""
        legal, field = self._legal(), self._field
        for lane, symbol in enumerate(symbols):
            is_legal = 0 <= symbol < legal.shape[1] and legal[lane, symbol]
            self.done[lane] = self.done[lane] or not is_legal or (field == 0 and symbol == END)
            if self.done[lane]:
                continue
            self._symbols[lane, field] = symbol
            if field + 1 == self.fields.length_field:
                self._know_distance(lane)
        if field + 1 < self.fields.num_fields:
            if self._state is None:
                self._state = self._compute()
            pushed = torch.from_numpy(self._symbols[:, field]).to(self._state.device)  # int64[lanes]
            with evaluation_mode(self.model), torch.inference_mode():
                self._state = self.model.next_state(self._state, field, pushed)  # [lanes, d]
            self._field += 1
            return [b""] * self.lanes
        tokens = [
            None if done else self.fields.token(row)
            for done, row in zip(self.done, self._symbols.tolist(), strict=True)
        ]
        self._start_token()
        return [b"" if token is None else text.push(token) for token, text in zip(tokens, self.texts, strict=True)]

    def _legal(self) -> Mask:
        """The legal symbols of the field, ``bool[lanes, A]``; a lane that is done has one, 0."""
        return np.concatenate([self._legal_in(lane) for lane in range(self.lanes)])

    def _legal_in(self, lane: int) -> Mask:
        row = self._symbols[lane : lane + 1]  # int64[1, F]
        if self.done[lane]:
            only_first: Mask = np.arange(self.fields.sizes[self._field])[None] == 0
            return only_first
        text, field = self.texts[lane], self._field
        choices = self._choices[lane]
        if choices is None:
            if self.generation == "legal":
                assert text.parser is not None
                choices = self.rows.choices(text.parser)
            else:
                choices = self.fields.any_match(np.array([len(text.text)]))
            self._choices[lane] = choices
        return self.fields.legal(row, field, choices)

    def _know_distance(self, lane: int) -> None:
        """Let the lengths that are legal be those of the distance that is known now."""
        choices, parser, row = self._choices[lane], self.texts[lane].parser, self._symbols[lane]
        if self.generation == "legal" and row[0] == MATCH:
            assert choices is not None
            assert parser is not None
            self._choices[lane] = self.rows.with_distance(choices, parser, self.fields.distance(row.tolist()))

    @memory_errors()
    def _compute(self) -> Tensor:
        """Read what is new in each lane, and return z after its last token, ``float[lanes, d]``."""
        context = self.model.context_length
        begins = [window_begin(1 + len(text.tokens), context, self.stride) for text in self.texts]
        lengths = [1 + len(text.tokens) - begin for text, begin in zip(self.texts, begins, strict=True)]
        with evaluation_mode(self.model), torch.inference_mode():
            if self._cache is None or begins != self._begins:
                self._cache = self.model.new_cache(self.lanes)
                first = [0] * self.lanes
            else:
                num_new = max(1, *(1 + len(text.tokens) - (1 + text.num_kept) for text in self.texts))
                # A lane with fewer new ones reads old ones again, which changes nothing.
                first = [max(0, length - num_new) for length in lengths]
            windows = [
                self._window(text, begin + start, begin + length)
                for text, begin, start, length in zip(self.texts, begins, first, lengths, strict=True)
            ]
            state = self._read(windows, first)
        self._begins = begins
        for text in self.texts:
            text.num_kept = len(text.tokens)
        return state

    def _window(self, text: LaneTokens, begin: int, end: int) -> Integers:
        """The symbols at positions of a document, ``int64[end - begin, F]``; position 0 is the end before it."""
        tokens = LZTokens.from_tokens(itertools.starmap(Token, text.tokens[max(0, begin - 1) : end - 1]))
        symbols = self.fields.symbols(tokens)  # int64[n, F]
        if begin > 0:
            return symbols
        before = np.zeros((1, self.fields.num_fields), np.int64)
        before[0, 0] = END
        return np.concatenate((before, symbols))

    def _read(self, windows: list[Integers], first: list[int]) -> Tensor:
        """Return z after the last token of each window; shorter ones are padded on the right, which is masked."""
        longest, device = max(map(len, windows)), device_of(self.model)
        padded = np.zeros((self.lanes, longest, self.fields.num_fields), np.int64)
        padded[..., 0] = END
        for lane, window in enumerate(windows):
            padded[lane, : len(window)] = window
        last = torch.tensor([len(window) - 1 for window in windows], device=device)  # int64[lanes]
        positions = None
        if self._cache is not None:
            starts = torch.tensor(first, device=device)[:, None]  # int64[lanes, 1]
            positions = starts + torch.arange(longest, device=device)  # int64[lanes, T]
        return self.model.next_hidden(torch.from_numpy(padded).to(device), last, self._cache, positions)  # [lanes, d]
