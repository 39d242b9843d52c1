"""Compressed files beside those of other compressors, in one process on one thread.

The engines take turns in every round; times are CPU time, medians of the rounds (of one round where compressing is
slower than 2 MB/s). Every output is decompressed and compared before anything is timed. All engines take and give bytes
in memory. Windows are those of the levels, except for zstd -22 (2^27) and brotli (2^24).
"""

from __future__ import annotations

import bz2
import importlib.metadata
import lzma
import statistics
import tarfile
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import fastcompress as fc
from fastcompress.data.sources import path_documents
from single import Settings, cpu_seconds
from texts import data_folder

OURS = "fastcompress"


@dataclass(frozen=True)
class Engine:
    """A compressor at one level."""

    name: str
    compress: Callable[[bytes], bytes]
    decompress: Callable[[bytes, int], bytes]


def engines(threads: int) -> list[Engine]:
    """Return all engines, ours last."""
    import brotli
    import deflate
    import zstandard

    found = [
        Engine(
            f"zlib -{level}",
            lambda data, level=level: zlib.compress(data, level),
            lambda blob, size: zlib.decompress(blob),
        )
        for level in (6, 9)
    ]
    found += [
        Engine(
            f"libdeflate -{level}",
            lambda data, level=level: bytes(deflate.deflate_compress(data, level)),
            lambda blob, size: bytes(deflate.deflate_decompress(blob, size)),
        )
        for level in (6, 12)
    ]
    for level in (1, 3, 9, 15, 19, 22):
        parameters = zstandard.ZstdCompressionParameters.from_level(level, window_log=27 if level == 22 else 0)
        found.append(
            Engine(
                f"zstd -{level}",
                lambda data, parameters=parameters: zstandard.ZstdCompressor(compression_params=parameters).compress(
                    data
                ),
                lambda blob, size: zstandard.ZstdDecompressor(max_window_size=1 << 27).decompress(blob, size),
            )
        )
    found += [
        Engine(
            f"brotli -{level}",
            lambda data, level=level: brotli.compress(data, quality=level, lgwin=24),
            lambda blob, size: brotli.decompress(blob),
        )
        for level in (5, 9, 11)
    ]
    found += [
        Engine(
            f"xz -{name}",
            lambda data, preset=preset: lzma.compress(data, preset=preset),
            lambda blob, size: lzma.decompress(blob),
        )
        for name, preset in (("0", 0), ("6", 6), ("9e", 9 | lzma.PRESET_EXTREME))
    ]
    found.append(Engine("bz2 -9", lambda data: bz2.compress(data, 9), lambda blob, size: bz2.decompress(blob)))
    for method, levels in (("lz", (1, 6, 8)), ("cm", (4, 5, 7))):
        found += [
            Engine(
                f"{OURS} {method} {level}",
                lambda data, method=method, level=level: fc.compress(
                    data, method=method, level=level, num_threads=threads
                ),
                lambda blob, size: fc.decompress(blob, max_output=size, num_threads=threads),
            )
            for level in levels
        ]
    return found


def texts() -> dict[str, bytes]:
    """Return the validation texts, joined, and the eleven files of the Canterbury corpus, one after the other."""
    folder = data_folder()

    def joined(path: str) -> bytes:
        texts = [document.data for document in path_documents(folder / path)]
        return b"".join(text if text.endswith(b"\n") else text + b"\n" for text in texts)

    with lzma.open(folder / "canterbury/canterbury.tar.xz") as file, tarfile.open(fileobj=file) as tar:
        members = sorted((member.name, member) for member in tar.getmembers() if member.name.startswith("canterbury/"))
        contents = [tar.extractfile(member).read() for _, member in members if member.isfile()]
    assert len(contents) == 11
    return {
        "english/val": joined("english/val.jsonl.xz"),
        "code/code-val": joined("code/code-val.jsonl.xz"),
        "Canterbury": b"".join(contents),
    }


def measure_text(data: bytes, settings: Settings) -> dict[str, dict[str, Any]]:
    """Return bytes, and MB/s of raw data each way, of every engine."""
    blobs: dict[str, bytes] = {}
    figures: dict[str, dict[str, Any]] = {}
    for engine in engines(settings.threads):
        begin = time.process_time()
        blob = engine.compress(data)
        seconds = time.process_time() - begin
        if engine.decompress(blob, len(data)) != data:
            raise SystemExit(f"{engine.name} does not give back what it was given")
        blobs[engine.name] = blob
        figures[engine.name] = {"bytes": len(blob), "compress": [seconds], "decompress": []}
    for _ in range(settings.rounds):
        for engine in engines(settings.threads):
            row = figures[engine.name]
            row["decompress"].append(cpu_seconds(lambda e=engine: e.decompress(blobs[e.name], len(data))))
            if row["compress"][0] < len(data) / 2e6 and len(row["compress"]) < settings.rounds:
                row["compress"].append(cpu_seconds(lambda e=engine: e.compress(data)))
    for row in figures.values():
        for way in ("compress", "decompress"):
            row[way] = len(data) / 1e6 / statistics.median(row[way])
    return figures


def measure(settings: Settings) -> dict[str, Any]:
    """Return the figures of each text; the first 100,000 bytes of each if it is to be quick."""
    found = texts()
    if settings.quick:
        found = {name: data[:100_000] for name, data in found.items()}
    with settings.condition():
        results = {name: {"bytes": len(data), "engines": measure_text(data, settings)} for name, data in found.items()}
    versions = {name: importlib.metadata.version(name) for name in ("zstandard", "brotli", "deflate")}
    return {"versions": versions | {"zlib": zlib.ZLIB_RUNTIME_VERSION}, "texts": results}
