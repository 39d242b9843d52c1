"""A GPT with all its options, one position and one head at a time: the oracle of `fastcompress.models.gpt`.

Reads the parameters of a model by name and shares no code with it. One row of ids; plain loops, any float type.
"""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def logits(
    c: Any, p: dict[str, Tensor], ids: Sequence[int], documents: Sequence[int], tokens: Sequence[bytes]
) -> Tensor:
    """Logits [T, V] of a row.

    Args:
        c: The configuration.
        p: Parameters by name.
        ids: Of the row.
        documents: The document of each position; positions begin anew in each.
        tokens: The bytes of each id.
    """
    positions = [sum(d == document for d in documents[:t]) for t, document in enumerate(documents)]
    heads = p["embedding.weight"] if c.tied_head else p["head.weight"]
    x = [p["embedding.weight"][i] for i in ids]
    if c.spelled_bytes:
        x = [a + spelling(c, p["spelled_input.vectors.weight"], tokens[i]) for a, i in zip(x, ids, strict=True)]
        vectors = p["spelled_input.vectors.weight" if c.tied_head else "spelled_head.vectors.weight"]
        heads = torch.stack([row + spelling(c, vectors, token) for row, token in zip(heads, tokens, strict=True)])
    if c.positions == "learned":
        x = [a + p["positions.weight"][t] for a, t in zip(x, positions, strict=True)]
    added: list[list[Tensor]] = [x]  # what each branch added, the embedding first
    first_values: list[list[Tensor]] = []
    for layer in range(c.num_layers):
        name = f"trunk.blocks.{layer}."
        if layer in c.engram_layers:
            added.append(memory(c, p, name, layer, stream(c, p, added), ids, documents, tokens))
        h = [norm(c, p, name + "attention_norm", a) for a in stream(c, p, added)]
        added.append(attention(c, p, name + "attention.", layer, h, documents, positions, first_values))
        h = [norm(c, p, name + "mlp_norm", a) for a in stream(c, p, added)]
        added.append([mlp(c, p, name + "mlp.", a) for a in h])
    out = torch.stack([heads @ norm(c, p, "final_norm", a) for a in stream(c, p, added)])
    return out if c.softcap is None else c.softcap * torch.tanh(out / c.softcap)


def linear(p: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    y = p[name + ".weight"] @ x
    return y + p[name + ".bias"] if name + ".bias" in p else y


def rms(x: Tensor, epsilon: float | None = None) -> Tensor:
    return x / torch.sqrt((x * x).mean() + (1e-6 if epsilon is None else epsilon))


def norm(c: Any, p: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    if c.norm == "layernorm":
        centred = x - x.mean()
        x = centred / torch.sqrt((centred * centred).mean() + (c.norm_epsilon or 1e-5)) * p[name + ".weight"]
        return x + p[name + ".bias"] if c.bias else x
    x = rms(x, c.norm_epsilon)
    return x * p[name + ".weight"] if c.norm == "rmsnorm_gain" else x


def mlp(c: Any, p: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    if c.mlp == "swiglu":
        gate, up = linear(p, name + "gate_and_up", x).chunk(2)
        return linear(p, name + "output", gate * torch.sigmoid(gate) * up)
    y = linear(p, name + "expand", x)
    y = y.clamp(min=0) ** 2 if c.mlp == "relu2" else y * (1 + torch.erf(y / math.sqrt(2))) / 2
    return linear(p, name + "output", y)


def rotated(c: Any, z: Tensor, position: int) -> Tensor:
    if c.positions != "rope":
        return z
    half = len(z) // 2
    turned = [None] * len(z)
    for i in range(half):
        angle = position * c.rotary_base ** (-2 * i / len(z))
        turned[i] = z[i] * math.cos(angle) - z[i + half] * math.sin(angle)
        turned[i + half] = z[i] * math.sin(angle) + z[i + half] * math.cos(angle)
    return torch.stack(turned)


def attention(
    c: Any,
    p: dict[str, Tensor],
    name: str,
    layer: int,
    h: list[Tensor],
    documents: Sequence[int],
    positions: Sequence[int],
    first_values: list[list[Tensor]],
) -> list[Tensor]:
    size, groups = c.width // c.num_heads, c.kv_heads or c.num_heads
    letter = c.window_pattern[layer % len(c.window_pattern)] if c.window else "L"
    normed = rms if c.qk_norm else lambda z: z
    queries, keys, values = [], [], []  # by position, then by head
    for x, position in zip(h, positions, strict=True):
        parts = linear(p, name + "qkv", x).split(size)
        queries.append([normed(rotated(c, z, position)) for z in parts[: c.num_heads]])
        keys.append([normed(rotated(c, z, position)) for z in parts[c.num_heads : c.num_heads + groups]])
        values.append(list(parts[c.num_heads + groups :]))
    if c.value_residual and layer == 0:
        first_values.extend(values)
    elif c.value_residual:
        a, b = p[name + "value_residual.shares"]
        values = [
            [a * v1 + b * v for v1, v in zip(*both, strict=True)] for both in zip(first_values, values, strict=True)
        ]
    out = []
    for t, x in enumerate(h):
        first = {"L": 0, "S": max(0, t - (c.window or 1) + 1), "C": max(0, t - positions[t] % (c.window or 1))}[letter]
        seen = [u for u in range(first, t + 1) if documents[u] == documents[t]]
        mixed = []
        for head in range(c.num_heads):
            group = head * groups // c.num_heads
            scores = torch.stack([queries[t][head] @ keys[u][group] / math.sqrt(size) for u in seen])
            weights = torch.exp(scores - scores.max()) / torch.exp(scores - scores.max()).sum()
            y = sum(w * values[u][group] for w, u in zip(weights, seen, strict=True))
            own = values[t][group]
            along = (y @ own) / (own @ own) * own
            if c.exclusive_attention == "plain":
                y = y - along
            elif c.exclusive_attention == "gated":
                y = y - torch.tanh(p[name + "exclusive.gate"][head]) * along
            mixed.append(y * torch.sigmoid(p[name + "gate.weight"][head] @ x) if c.attention_gate else y)
        out.append(linear(p, name + "output", torch.cat(mixed)))
    return out


def stream(c: Any, p: dict[str, Tensor], added: list[list[Tensor]]) -> list[Tensor]:
    """What the next branch, or the head, reads after these."""
    if c.attention_residuals == "off" or len(added) == 1:
        return [sum(parts) for parts in zip(*added, strict=True)]
    num_branches = 2 * c.num_layers + len(c.engram_layers)
    size = 1 if c.attention_residuals == "full" else math.ceil(num_branches / c.residual_groups)
    groups = [added[:1]] + [added[i : i + size] for i in range(1, len(added), size)]
    query = p[f"trunk.reads.{len(added) - 2}.query"]
    mixtures = []
    for t in range(len(added[0])):
        sources = [sum(part[t] for part in group) for group in groups]
        weights = torch.stack([query @ rms(source) for source in sources]).softmax(0)
        mixtures.append(sum(w * source for w, source in zip(weights, sources, strict=True)))
    return mixtures


def spelling(c: Any, vectors: Tensor, token: bytes) -> Tensor:
    return sum((vectors[256 * k + byte] for k, byte in enumerate(token[: c.spelled_bytes])), 0 * vectors[0])


def folded(token: bytes) -> str:
    try:
        text = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", token.decode()).lower())
    except UnicodeDecodeError:
        return ""
    return "".join(letter for letter in text if not unicodedata.combining(letter)).strip()


def memory(
    c: Any,
    p: dict[str, Tensor],
    name: str,
    layer: int,
    h: list[Tensor],
    ids: Sequence[int],
    documents: Sequence[int],
    tokens: Sequence[bytes],
) -> list[Tensor]:
    texts = list(map(folded, tokens))
    canonical = [texts.index(text) if text else i for i, text in enumerate(texts)]
    factors = [
        int.from_bytes(hashlib.sha256(f"engram {layer} {k}".encode()).digest()[:8], "little")
        % (2**62 // (c.vocab_size + 1)) | 1
        for k in range(max(c.engram_orders))
    ]  # fmt: skip
    primes = [n for n in range(max(2, c.engram_rows), 20 * c.engram_rows + 99) if all(n % d for d in range(2, n))]

    def before(t: int, distance: int) -> bool:
        return t >= distance and documents[t - distance] == documents[t]

    passed = []
    for t, x in enumerate(h):
        found, table = [], 0
        for order in c.engram_orders:
            mixed = 0
            for k in range(order):
                mixed ^= (canonical[ids[t - k]] if before(t, k) else c.vocab_size) * factors[k]
            for _ in range(c.engram_heads):
                found.append(p[name + "memory.table.weight"][sum(primes[:table]) + mixed % primes[table]])
                table += 1
        e = torch.cat(found)
        s = rms(linear(p, name + "memory.key", e)) @ rms(x) / math.sqrt(c.width)
        passed.append(torch.sigmoid(torch.sign(s) * torch.sqrt(abs(s))) * linear(p, name + "memory.value", e))
    taps = p[name + "memory.convolution.taps"]
    out = []
    for t, u in enumerate(passed):
        back = [k * max(c.engram_orders) for k in range(len(taps))]
        y = sum(tap * rms(passed[t - d]) for tap, d in zip(taps, back, strict=True) if before(t, d))
        out.append(u + y * torch.sigmoid(y))
    return out
