"""LZ77 beside libdeflate: builds lz77.cc (needs libdeflate's headers and library), runs it, writes the figures.

python benchmarks/lz77.py --out benchmarks/results/MACHINE/DATE-lz77.json [--rounds 5]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import neighbour
import results_file
from texts import prepare

ROOT = Path(__file__).parent.parent
MEGABYTES = 10


def build(folder: Path) -> Path:
    """Build the program in `folder`, which is kept: the next run compiles what has changed only."""
    configure = ["cmake", "-S", str(ROOT), "-B", str(folder), "-DFASTCOMPRESS_BUILD_BENCHMARKS=ON"]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(
        ["cmake", "--build", str(folder), "--target", "bench_lz77", "-j"], check=True, stdout=subprocess.DEVNULL
    )
    return folder / "bench_lz77"


def table(figures: dict[str, dict[str, float]]) -> str:
    """The figures as Markdown: ratios first, rates in MB/s and times beside them."""
    lines = [
        "| text | parse / libdeflate -6 | phrases / exact | append / parse | one append / full parse of 64 KiB | "
        "256 streams, ns a byte | after a fork | legal literals, distances, us "
        "| lazy, reconstruct, MB/s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, f in figures.items():
        lines.append(
            f"| {name} | {f['parse'] / f['libdeflate_6']:.2f} ({f['parse']:.0f} / {f['libdeflate_6']:.0f} MB/s) "
            f"| {f['phrases'] / f['phrases_exact']:.4f} | {f['parse'] / f['append']:.2f} ({f['append']:.0f} MB/s) "
            f"| 1 / {f['reparse_us'] / f['append_us']:,.0f} ({f['append_us'] * 1000:.0f} ns) | {f['stream_ns']:.0f} "
            f"| {f['forked_stream_ns']:.0f} | {f['legal_literals_us']:.0f}, {f['legal_distances_us']:,.0f} "
            f"| {f['parse_lazy']:.0f}, {f['reconstruct']:.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--build", type=Path, default=ROOT / ".cache" / "benchmarks" / "lz77-build", help="kept")
    parser.add_argument("--neighbour", action="store_true", help="beside a process that streams through 64 MB")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = build(arguments.build)
        texts = [
            prepare(spec, MEGABYTES * 1_000_000, 0, Path(folder))[0] for spec in ("english", "code", "multilingual")
        ]
        links = [Path(folder, text.name) for text in texts]
        for text, link in zip(texts, links, strict=True):
            link.symlink_to(text.path)
        with neighbour.running(arguments.neighbour):
            output = subprocess.run([program, str(arguments.rounds), *links], check=True, stdout=subprocess.PIPE).stdout
    figures = json.loads(output)
    results_file.write_single(arguments.out, "lz77", ROOT, neighbour=arguments.neighbour, rounds=arguments.rounds, texts=figures)
    sys.stdout.write(table(figures) + "\n")


if __name__ == "__main__":
    main()
