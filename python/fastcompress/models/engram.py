"""Engram: a memory of hashed n-grams, which adds vectors for the last few tokens to the residual stream.

Cheng et al., "Conditional Memory via Scalable Lookup" (arXiv 2601.07372). With c_t the canonical id of token t (tokens
that differ in case, accents, width or surrounding space share one), for each order n and each head j

    hash_t = xor over k < n of  c_{t-k} m_k,    e = concat over (n, j) of  table_{n,j}[hash_t mod p_{n,j}],

with odd multipliers m_k, different in each layer, and a different prime p for each table. The stream h gates it, and a
short causal convolution mixes in neighbouring positions:

    s = RMS(W_k e) . RMS(h) / sqrt(D),    u = sigmoid(sign(s) sqrt|s|) W_v e,    y = u + silu(conv(RMS(u))).

Norms have no gains here. Tables and the convolution start at zero, so a model starts equal to the one without, and
n-grams that training never met add nothing. Dense Adam takes steps of full size for rows that are rarely met, which can
hurt (in one unpublished run with tables of 2^17 rows, bits per byte rose from 1.458 to 1.528); tune ``memory_rate``.
"""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fastcompress.errors import ConfigError
from fastcompress.models.attention import RMS_EPSILON
from fastcompress.models.roles import MemoryTable
from fastcompress.models.trunk import Context

CONVOLUTION_TAPS = 4
MAX_ORDER = 16
MAX_ROWS = 1 << 30  # of a table; primes beyond take long to find


def canonical_ids(tokens: Sequence[bytes]) -> list[int]:
    """Map tokens that differ only in case, accents, width or surrounding space to the smallest of their ids.

    >>> canonical_ids([b"the", b" The", b"caf\\xc3\\xa9", b"CAFE", b"\\xff", b" ", b""])
    [0, 0, 2, 2, 4, 5, 6]
    """
    first: dict[str, int] = {}
    numbers = []
    for number, token in enumerate(tokens):
        try:
            text = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", token.decode()).lower())
        except UnicodeDecodeError:  # part of a character
            text = ""
        folded = "".join(letter for letter in text if not unicodedata.combining(letter)).strip()
        numbers.append(first.setdefault(folded, number) if folded else number)
    return numbers


def check_tables(prefix: str, orders: Sequence[int], rows: int) -> None:
    """Check the settings ``{prefix}_orders`` and ``{prefix}_rows`` of hashed tables. Raises ConfigError."""
    if max(orders, default=0) > MAX_ORDER:
        raise ConfigError(f"{prefix}_orders is {list(orders)}; its numbers must be at most {MAX_ORDER}")
    if rows > MAX_ROWS:
        raise ConfigError(f"{prefix}_rows is {rows}; it must be at most {MAX_ROWS}")


def table_sizes(rows: int, num_tables: int) -> list[int]:
    """Return the first ``num_tables`` primes from ``rows`` on.

    >>> table_sizes(10, 3)
    [11, 13, 17]
    """
    primes: list[int] = []
    candidate = rows
    while len(primes) < num_tables:
        if candidate > 1 and all(candidate % divisor for divisor in range(2, math.isqrt(candidate) + 1)):
            primes.append(candidate)
        candidate += 1
    return primes


class NGramHash(nn.Module):
    """The table rows of the n-grams that end at each position: ``int64[B, T, orders * heads]``."""

    canonical: Tensor
    sizes: Tensor
    offsets: Tensor

    def __init__(self, vocab_size: int, orders: tuple[int, ...], num_heads: int, rows: int, salt: int) -> None:
        super().__init__()
        self.vocab_size, self.orders, self.num_heads = vocab_size, orders, num_heads
        limit = (1 << 62) // (vocab_size + 1)  # products stay below 2^63
        self.multipliers = [
            int.from_bytes(hashlib.sha256(f"engram {salt} {k}".encode()).digest()[:8], "little") % limit | 1
            for k in range(max(orders))
        ]
        sizes = table_sizes(rows, len(orders) * num_heads)
        self.num_rows = sum(sizes)
        ends = torch.tensor(sizes).cumsum(0)
        self.register_buffer("sizes", torch.tensor(sizes), persistent=False)  # int64[orders * heads]
        self.register_buffer("offsets", ends - torch.tensor(sizes), persistent=False)  # int64[orders * heads]
        self.register_buffer("canonical", torch.arange(vocab_size), persistent=False)  # int64[V]

    def read_tokens(self, tokens: Sequence[bytes]) -> None:
        """Set the bytes of every token, by id."""
        self.canonical.copy_(torch.tensor(canonical_ids(tokens)))

    def forward(self, context: Context) -> Tensor:
        ids = self.canonical[context.ids]  # int64[B, T]
        distances = range(1, max(self.orders))
        before = context.earlier(self, ids, distances, fill=self.vocab_size)  # (n - 1) x int64[B, T]
        mixed, by_order = ids * self.multipliers[0], {}  # int64[B, T]
        for distance, earlier in zip(distances, before, strict=True):
            mixed = mixed ^ (earlier * self.multipliers[distance])
            by_order[distance + 1] = mixed
        hashes = torch.stack([by_order[order] for order in self.orders for _ in range(self.num_heads)], dim=-1)
        return hashes % self.sizes + self.offsets  # int64[B, T, orders * heads]


class CausalConvolution(nn.Module):
    """Each channel's weighted sum of itself at t, t - dilation, t - 2 dilation, ...; ``[B, T, D] -> [B, T, D]``."""

    def __init__(self, width: int, taps: int, dilation: int) -> None:
        super().__init__()
        self.taps = nn.Parameter(torch.zeros(taps, width))  # [taps, D], the first for t itself
        self.dilation = dilation

    @torch.no_grad()
    def init_weights(self) -> None:
        """Start at zero."""
        nn.init.zeros_(self.taps)

    def forward(self, x: Tensor, context: Context) -> Tensor:
        distances = range(self.dilation, self.dilation * len(self.taps), self.dilation)
        inputs = [x, *context.earlier(self, x, distances, fill=0)]  # taps x [B, T, D]
        return sum((tap * y for tap, y in zip(self.taps, inputs, strict=True)), torch.zeros_like(x))  # [B, T, D]

    def activation_flops_per_token(self) -> int:
        """Return 0: channels do not mix, so by convention this is element-wise work."""
        return 0


class Engram(nn.Module):
    """A hashed n-gram memory, gated by the stream; returns what it adds to ``x [B, T, D]``.

    Args:
        width: D.
        vocab_size: V.
        memory_width: E, the number of values per look-up, over all orders and heads.
        orders: The values of n.
        num_heads: The number of tables for each order.
        rows: The smallest number of rows of a table.
        salt: The layer's number, which makes its hashes different.
    """

    def __init__(
        self,
        width: int,
        vocab_size: int,
        *,
        memory_width: int,
        orders: tuple[int, ...],
        num_heads: int,
        rows: int,
        salt: int,
    ) -> None:
        super().__init__()
        self.hash = NGramHash(vocab_size, orders, num_heads, rows, salt)
        self.table = MemoryTable(self.hash.num_rows, memory_width // (len(orders) * num_heads))
        self.key = nn.Linear(memory_width, width, bias=False)
        self.value = nn.Linear(memory_width, width, bias=False)
        self.convolution = CausalConvolution(width, CONVOLUTION_TAPS, max(orders))

    @torch.no_grad()
    def init_weights(self) -> None:
        """Start the table at zero."""
        nn.init.zeros_(self.table.weight)

    def forward(self, x: Tensor, context: Context) -> Tensor:
        found = self.table(self.hash(context)).flatten(-2)  # [B, T, E]
        key, stream = (F.rms_norm(z, (z.size(-1),), eps=RMS_EPSILON) for z in (self.key(found), x))  # [B, T, D] each
        score = (key * stream).sum(-1, keepdim=True) / math.sqrt(x.size(-1))  # [B, T, 1]
        # The clamp keeps the root's slope finite at 0, where every score starts.
        gate = (score.sign() * score.abs().clamp_min(1e-6).sqrt()).sigmoid()  # [B, T, 1]
        passed: Tensor = gate * self.value(found)  # [B, T, D]
        normed = F.rms_norm(passed, (passed.size(-1),), eps=RMS_EPSILON)  # [B, T, D]
        return passed + F.silu(self.convolution(normed, context))  # [B, T, D]
