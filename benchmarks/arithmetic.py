"""The range coder beside constriction's, in one process.

CPU time of one thread, medians of the rounds, the two one after the other in every round. Each decodes its own code,
which must give the symbols back, before anything is timed. Rows of floats become frequencies inside both;
constriction's models are the fastest of those that its documentation shows (eager or lazy, float32 or float64: all are
measured).
"""

from __future__ import annotations

import importlib.metadata
import statistics
from typing import Any

import constriction
import numpy as np

from fastcompress import arithmetic
from single import Settings, cpu_seconds

Categorical = constriction.stream.model.Categorical
Queue = constriction.stream.queue
PRECISION = 16


def static_case(num_symbols: int) -> dict[str, Any]:
    """Return a case with one table of 256 symbols for all: a steep one, like that of text."""
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
        "ours": (ours_encode, lambda code: arithmetic.Decoder(code).decode(table, num_symbols)),
        "constriction": (
            theirs_encode,
            lambda code: Queue.RangeDecoder(code).decode(Categorical(probabilities, perfect=False), num_symbols),
        ),
    }


def rows_case(num_symbols: int, one_by_one: bool) -> dict[str, Any]:
    """Return a case with a row of 256 float32 probabilities for each symbol, coded in one call or in one call each."""
    random = np.random.default_rng(1)
    logits = 3 * random.standard_normal((num_symbols, 256), np.float32)
    rows = np.exp(logits - logits.max(1, keepdims=True))
    rows /= rows.sum(1, keepdims=True)
    symbols = (rows.cumsum(1) < random.random((num_symbols, 1))).sum(1).clip(0, 255).astype(np.int32)
    case: dict[str, Any] = {"symbols": symbols}
    if one_by_one:
        case["ours"] = (lambda: _ours_singly(symbols, rows), lambda code: _ours_decode_singly(code, rows))
    else:
        case["ours"] = (
            lambda: _ours_rows(symbols, rows),
            lambda code: arithmetic.Decoder(code).decode_weights(rows, PRECISION),
        )
        tables = arithmetic.quantize(rows, PRECISION)
        case["ours, tables made before"] = (
            lambda: _ours_tables(symbols, tables),
            lambda code: arithmetic.Decoder(code).decode(tables),
        )
    for name, settings in (("eager", {"perfect": False}), ("lazy", {"perfect": False, "lazy": True})):
        for dtype in (np.float32, np.float64):
            given = rows.astype(dtype)
            if one_by_one:
                coders = (
                    lambda given=given, settings=settings: _theirs_singly(symbols, given, settings),
                    lambda code, given=given, settings=settings: _theirs_decode_singly(code, given, settings),
                )
            else:
                coders = (
                    lambda given=given, settings=settings: _theirs_rows(symbols, given, settings),
                    lambda code, given=given, settings=settings: Queue.RangeDecoder(code).decode(
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


def _ours_decode_singly(code: bytes, rows: Any) -> list[int]:
    decode = arithmetic.Decoder(code).decode_symbol_weights
    return [decode(row, PRECISION) for row in rows]


def _theirs_singly(symbols: Any, rows: Any, settings: dict[str, bool]) -> Any:
    encoder = Queue.RangeEncoder()
    encode = encoder.encode
    for symbol, row in zip(symbols.tolist(), rows, strict=True):
        encode(symbol, Categorical(row, **settings))
    return encoder.get_compressed()


def _theirs_decode_singly(code: Any, rows: Any, settings: dict[str, bool]) -> list[int]:
    decode = Queue.RangeDecoder(code).decode
    return [decode(Categorical(row, **settings)) for row in rows]


def measure_case(case: dict[str, Any], rounds: int) -> dict[str, Any]:
    """Return million symbols per second each way, and bytes, of every coder."""
    symbols = case.pop("symbols")
    entropy = case.pop("entropy_bytes", None)
    codes = {}
    for name, (encode, decode) in case.items():
        codes[name] = encode()
        if not np.array_equal(decode(codes[name]), symbols):
            raise SystemExit(f"{name} does not give back what it was given")
    seconds: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in case}
    for _ in range(rounds):
        for name, (encode, decode) in case.items():
            seconds[name][0].append(cpu_seconds(encode))
            seconds[name][1].append(cpu_seconds(lambda decode=decode, name=name: decode(codes[name])))
    figures: dict[str, Any] = {}
    for name, (encoding, decoding) in seconds.items():
        code = codes[name]
        figures[name] = {
            "encode": len(symbols) / 1e6 / statistics.median(encoding),
            "decode": len(symbols) / 1e6 / statistics.median(decoding),
            "bytes": len(code) if isinstance(code, bytes) else code.nbytes,
        }
        if entropy is not None and name == "ours":
            figures[name]["over_entropy_percent"] = 100 * (figures[name]["bytes"] / entropy - 1)
    return figures


def measure(settings: Settings) -> dict[str, Any]:
    """Return the figures of each case; a hundredth of the symbols if it is to be quick."""
    divisor = 100 if settings.quick else 1
    num_table, num_rows, num_calls = 10_000_000 // divisor, 200_000 // divisor, 20_000 // divisor
    with settings.condition():
        cases = {
            f"one table, {num_table:,} symbols": measure_case(static_case(num_table), settings.rounds),
            f"a row a symbol, {num_rows:,} x 256": measure_case(rows_case(num_rows, False), settings.rounds),
            f"a call a symbol, {num_calls:,} x 256": measure_case(rows_case(num_calls, True), settings.rounds),
        }
    return {"versions": {"constriction": importlib.metadata.version("constriction")}, "cases": cases}
