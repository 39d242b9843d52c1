"""Archives beside zlib, libdeflate, zstd, brotli, xz and bz2: sizes, and CPU time to compress and decompress.

python -m pip install zstandard brotli deflate
python benchmarks/compressors.py --out benchmarks/results/MACHINE/DATE-compressors.json [--rounds 5]

One process, one thread, engines one after another in every round; times are CPU time, medians of the rounds
(compressing slower than 2 MB/s: of one). Every output is decompressed and compared before anything is timed. All take
and give bytes in memory. Windows are the levels' own, but for zstd -22 (2^27) and brotli (2^24).
"""

from __future__ import annotations

import argparse
import bz2
import importlib.metadata
import lzma
import statistics
import sys
import tarfile
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import fastcompress as fc
import results_file
from fastcompress.data.sources import path_documents
from texts import data_folder

OURS = "fastcompress"


@dataclass(frozen=True)
class Engine:
    """A compressor at one level."""

    name: str
    compress: Callable[[bytes], bytes]
    decompress: Callable[[bytes, int], bytes]


def engines() -> list[Engine]:
    """All of them, ours last."""
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
                lambda data, method=method, level=level: fc.compress(data, method=method, level=level, num_threads=1),
                lambda blob, size: fc.decompress(blob, max_output=size, num_threads=1),
            )
            for level in levels
        ]
    return found


def texts() -> dict[str, bytes]:
    """The validation texts, joined, and the eleven files of the Canterbury corpus, one after the other."""
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


def measure(data: bytes, rounds: int) -> dict[str, dict[str, float]]:
    """Bytes, and MB/s of raw data each way, for every engine."""
    blobs, figures = {}, {}
    for engine in engines():
        begin = time.process_time()
        blob = engine.compress(data)
        seconds = time.process_time() - begin
        if engine.decompress(blob, len(data)) != data:
            raise SystemExit(f"{engine.name} does not give back what it was given")
        blobs[engine.name] = blob
        figures[engine.name] = {"bytes": len(blob), "compress": [seconds], "decompress": []}
    for _ in range(rounds):
        for engine in engines():
            row = figures[engine.name]
            row["decompress"].append(results_file.cpu_seconds(lambda e=engine: e.decompress(blobs[e.name], len(data))))
            if row["compress"][0] < len(data) / 2e6 and len(row["compress"]) < rounds:
                row["compress"].append(results_file.cpu_seconds(lambda e=engine: e.compress(data)))
    for row in figures.values():
        for way in ("compress", "decompress"):
            row[way] = len(data) / 1e6 / statistics.median(row[way])
    return figures


def dominators(name: str, figures: dict[str, dict[str, float]]) -> list[str]:
    """Engines of others that are at least as small and at least as fast to decompress."""
    mine = figures[name]
    return [
        other
        for other, row in figures.items()
        if not other.startswith(OURS) and row["bytes"] <= mine["bytes"] and row["decompress"] >= mine["decompress"]
    ]


def table(name: str, size: int, figures: dict[str, dict[str, float]]) -> str:
    """One text as Markdown, smallest first."""
    least = min(figures["xz -9e"]["bytes"], figures["bz2 -9"]["bytes"])
    lines = [
        f"{name}, {size:,} bytes:",
        "",
        "| engine | bytes | of min(xz -9e, bz2 -9) | bits a byte | compress MB/s | decompress MB/s | |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for engine, row in sorted(figures.items(), key=lambda item: item[1]["bytes"]):
        better = dominators(engine, figures)
        note = f"behind {', '.join(better)}" if better else "on the frontier"
        lines.append(
            f"| {engine} | {row['bytes']:,.0f} | {row['bytes'] / least:.3f} | {8 * row['bytes'] / size:.3f} "
            f"| {row['compress']:.3g} | {row['decompress']:.3g} | {note if engine.startswith(OURS) else ''} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    results = {}
    for name, data in texts().items():
        results[name] = {"bytes": len(data), "engines": measure(data, arguments.rounds)}
        sys.stdout.write(table(name, len(data), results[name]["engines"]) + "\n\n")
        sys.stdout.flush()
    versions = {name: importlib.metadata.version(name) for name in ("zstandard", "brotli", "deflate")}
    versions |= {"zlib": zlib.ZLIB_RUNTIME_VERSION}
    code = Path(fc.__file__).parent
    results_file.write_single(
        arguments.out, "compressors", code, versions=versions, rounds=arguments.rounds, texts=results
    )


if __name__ == "__main__":
    main()
