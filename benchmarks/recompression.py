"""Iterative re-compression, as text is generated token by token: incremental parsing beside parsing from scratch.

    python benchmarks/recompression.py TEXT [--context BYTES] [--tokens NUMBER]

The tokens that follow the context in the text's own parse stand for those that a model draws. After each, its bytes are
appended and the tokens are asked for: the changed ones of an `IncrementalParser`, or all of a parse of the whole text
so far. What is done with them is not measured. The fastest of several passes counts, all in one thread.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

from fastcompress import lz77

ROUNDS = 7


def pieces_after(text: bytes, context: int, number: int) -> list[bytes]:
    """Return the bytes of the tokens that follow the first `context` bytes."""
    pieces, begin = [], 0
    for token in lz77.parse(text[: context + 300 * number]):
        if begin >= context and len(pieces) < number:
            pieces.append(text[begin : begin + token.length])
        begin += token.length
    return pieces


def incremental(prompt: bytes, pieces: list[bytes]) -> float:
    """Return the seconds of all steps, and check the result."""
    parser = lz77.IncrementalParser()
    parser.append(prompt)
    tokens = list(parser.tokens())
    begin = time.perf_counter()
    changes = [parser.extend(piece) for piece in pieces]
    seconds = time.perf_counter() - begin
    for num_kept, tail in changes:
        tokens[num_kept:] = tail
    assert tokens == list(lz77.parse(prompt + b"".join(pieces)))
    return seconds


def from_scratch(prompt: bytes, pieces: list[bytes]) -> float:
    """Return the seconds of all steps."""
    text = bytearray(prompt)
    begin = time.perf_counter()
    for piece in pieces:
        text += piece
        lz77.parse(bytes(text))
    return time.perf_counter() - begin


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("--context", type=int, default=16384)
    parser.add_argument("--tokens", type=int, default=500)
    given = parser.parse_args()
    text = given.text.read_bytes()
    pieces = pieces_after(text, given.context, given.tokens)
    start = given.context  # tokens need not begin here: both ways parse the bytes, whatever they are
    ways: dict[str, Callable[[bytes, list[bytes]], float]] = {"incremental": incremental, "from scratch": from_scratch}
    single = [bytes([byte]) for byte in b"".join(pieces)[: given.tokens]]
    for unit, parts in (("token", pieces), ("byte", single)):
        best = {name: min(way(text[:start], parts) for _ in range(ROUNDS)) / len(parts) for name, way in ways.items()}
        ratio = best["from scratch"] / best["incremental"]
        figures = ", ".join(f"{name} {1e6 * seconds:.2f} us" for name, seconds in best.items())
        print(f"a step per {unit} of {len(b''.join(parts)) / len(parts):.2f} bytes: {figures}; ratio {ratio:.0f}")


if __name__ == "__main__":
    main()
