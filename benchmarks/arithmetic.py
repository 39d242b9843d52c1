"""The range coder beside constriction's, in one process.

python -m pip install constriction
python benchmarks/arithmetic.py --out benchmarks/results/MACHINE/DATE-arithmetic.json [--rounds 9]

CPU time of one thread, medians of the rounds, the two one after the other in every round. Each decodes its own message,
which must give the symbols back, before anything is timed. Rows of floats become frequencies inside both;
constriction's models are the fastest of those that its documentation shows (eager or lazy, float32 or float64: all are
measured).
"""

from __future__ import annotations

import argparse
import importlib.metadata
import statistics
import sys
from pathlib import Path
from typing import Any

import constriction
import numpy as np

import results_file
from fastcompress import arithmetic

Categorical = constriction.stream.model.Categorical
Queue = constriction.stream.queue
PRECISION = 16


def static_case(num_symbols: int) -> dict[str, Any]:
    """One table of 256 symbols for all: a steep one, like that of text."""
    random = np.random.default_rng(0)
    weights = 1 + (1e6 * np.exp(-np.arange(256) / 20)).astype(np.int64)
    probabilities = weights / weights.sum()
    symbols = random.choice(256, num_symbols, p=probabilities).astype(np.int32)
    table = arithmetic.quantize(weights, PRECISION)
    frequencies = np.diff(table.astype(np.int64))
    entropy = float((PRECISION - np.log2(frequencies[symbols])).sum()) / 8

    def ours_encode() -> bytes:
        encoder = arithmetic.Encoder()
        encoder.encode(symbols, table)
        return encoder.finish()

    def theirs_encode() -> Any:
        encoder = Queue.RangeEncoder()
        encoder.encode(symbols, Categorical(probabilities, perfect=False))
        return encoder.get_compressed()

    return {
        "symbols": symbols,
        "entropy_bytes": entropy,
        "ours": (ours_encode, lambda message: arithmetic.Decoder(message).decode(table, num_symbols)),
        "constriction": (
            theirs_encode,
            lambda message: Queue.RangeDecoder(message).decode(Categorical(probabilities, perfect=False), num_symbols),
        ),
    }


def rows_case(num_symbols: int, one_by_one: bool) -> dict[str, Any]:
    """One row of 256 softmax probabilities a symbol, float32, in one call or a call a symbol."""
    random = np.random.default_rng(1)
    logits = 3 * random.standard_normal((num_symbols, 256), np.float32)
    rows = np.exp(logits - logits.max(1, keepdims=True))
    rows /= rows.sum(1, keepdims=True)
    symbols = (rows.cumsum(1) < random.random((num_symbols, 1))).sum(1).clip(0, 255).astype(np.int32)
    case: dict[str, Any] = {"symbols": symbols}
    if one_by_one:
        case["ours"] = (lambda: _ours_singly(symbols, rows), lambda message: _ours_decode_singly(message, rows))
    else:
        case["ours"] = (
            lambda: _ours_rows(symbols, rows),
            lambda message: arithmetic.Decoder(message).decode_weights(rows, PRECISION),
        )
        tables = arithmetic.quantize(rows, PRECISION)
        case["ours, tables made before"] = (
            lambda: _ours_tables(symbols, tables),
            lambda message: arithmetic.Decoder(message).decode(tables),
        )
    for name, settings in (("eager", {"perfect": False}), ("lazy", {"perfect": False, "lazy": True})):
        for dtype in (np.float32, np.float64):
            given = rows.astype(dtype)
            if one_by_one:
                coders = (
                    lambda given=given, settings=settings: _theirs_singly(symbols, given, settings),
                    lambda message, given=given, settings=settings: _theirs_decode_singly(message, given, settings),
                )
            else:
                coders = (
                    lambda given=given, settings=settings: _theirs_rows(symbols, given, settings),
                    lambda message, given=given, settings=settings: Queue.RangeDecoder(message).decode(
                        Categorical(**settings), given
                    ),
                )
            case[f"constriction {name} {np.dtype(dtype).name}"] = coders
    return case


def _ours_rows(symbols: Any, rows: Any) -> bytes:
    encoder = arithmetic.Encoder()
    encoder.encode_weights(symbols, rows, PRECISION)
    return encoder.finish()


def _ours_tables(symbols: Any, tables: Any) -> bytes:
    encoder = arithmetic.Encoder()
    encoder.encode(symbols, tables)
    return encoder.finish()


def _theirs_rows(symbols: Any, rows: Any, settings: dict[str, bool]) -> Any:
    encoder = Queue.RangeEncoder()
    encoder.encode(symbols, Categorical(**settings), rows)
    return encoder.get_compressed()


def _ours_singly(symbols: Any, rows: Any) -> bytes:
    encoder = arithmetic.Encoder()
    encode = encoder.encode_weights
    for symbol, row in zip(symbols.tolist(), rows, strict=True):
        encode(symbol, row, PRECISION)
    return encoder.finish()


def _ours_decode_singly(message: bytes, rows: Any) -> list[int]:
    decode = arithmetic.Decoder(message).decode_symbol_weights
    return [decode(row, PRECISION) for row in rows]


def _theirs_singly(symbols: Any, rows: Any, settings: dict[str, bool]) -> Any:
    encoder = Queue.RangeEncoder()
    encode = encoder.encode
    for symbol, row in zip(symbols.tolist(), rows, strict=True):
        encode(symbol, Categorical(row, **settings))
    return encoder.get_compressed()


def _theirs_decode_singly(message: Any, rows: Any, settings: dict[str, bool]) -> list[int]:
    decode = Queue.RangeDecoder(message).decode
    return [decode(Categorical(row, **settings)) for row in rows]


def measure(case: dict[str, Any], rounds: int) -> dict[str, Any]:
    """Million symbols a second each way, and bytes, of every coder."""
    symbols = case.pop("symbols")
    entropy = case.pop("entropy_bytes", None)
    messages = {}
    for name, (encode, decode) in case.items():
        messages[name] = encode()
        if not np.array_equal(decode(messages[name]), symbols):
            raise SystemExit(f"{name} does not give back what it was given")
    seconds: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in case}
    for _ in range(rounds):
        for name, (encode, decode) in case.items():
            seconds[name][0].append(results_file.cpu_seconds(encode))
            seconds[name][1].append(results_file.cpu_seconds(lambda decode=decode, name=name: decode(messages[name])))
    figures: dict[str, Any] = {}
    for name, (encoding, decoding) in seconds.items():
        message = messages[name]
        figures[name] = {
            "encode": len(symbols) / 1e6 / statistics.median(encoding),
            "decode": len(symbols) / 1e6 / statistics.median(decoding),
            "bytes": len(message) if isinstance(message, bytes) else message.nbytes,
        }
        if entropy is not None and name == "ours":
            figures[name]["over_entropy_percent"] = 100 * (figures[name]["bytes"] / entropy - 1)
    return figures


def table(results: dict[str, Any]) -> str:
    """Ratios to the best figure that constriction reached in any of its ways."""
    lines = ["| case | encode | decode | bytes, ours / constriction |", "| --- | --- | --- | --- |"]
    for case, figures in results.items():
        theirs = {name: row for name, row in figures.items() if name.startswith("constriction")}
        for name, row in figures.items():
            if name in theirs:
                continue
            cells = []
            for way in ("encode", "decode"):
                best = max(figure[way] for figure in theirs.values())
                cells.append(f"{row[way] / best:.2f} ({row[way]:.3g} / {best:.3g} M/s)")
            least = min(figure["bytes"] for figure in theirs.values())
            over = f" ({row['over_entropy_percent']:+.4f} % of the entropy)" if "over_entropy_percent" in row else ""
            lines.append(f"| {case}{name[4:]} | {' | '.join(cells)} | {row['bytes']:,} / {least:,}{over} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    rounds = arguments.rounds
    results = {
        "one table, 10,000,000 symbols": measure(static_case(10_000_000), rounds),
        "a row a symbol, 200,000 x 256": measure(rows_case(200_000, one_by_one=False), rounds),
        "a call a symbol, 20,000 x 256": measure(rows_case(20_000, one_by_one=True), rounds),
    }
    versions = {"constriction": importlib.metadata.version("constriction")}
    code = Path(arithmetic.__file__).parent
    results_file.write_single(arguments.out, "arithmetic", code, versions=versions, rounds=rounds, cases=results)
    sys.stdout.write(table(results) + "\n")


if __name__ == "__main__":
    main()
