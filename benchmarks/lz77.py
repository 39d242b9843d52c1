"""LZ77 beside libdeflate: builds lz77.cc, which needs libdeflate's headers and library, and runs it."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from single import Settings
from texts import prepare

ROOT = Path(__file__).parent.parent


def build(folder: Path) -> Path:
    """Build the program in `folder`, which is kept: the next run compiles only what has changed."""
    configure = ["cmake", "-S", str(ROOT), "-B", str(folder), "-DFASTCOMPRESS_BUILD_BENCHMARKS=ON"]
    compile_it = ["cmake", "--build", str(folder), "--target", "bench_lz77", "--parallel", str(os.cpu_count() or 1)]
    for command in (configure, compile_it):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder / "bench_lz77"


def measure(settings: Settings) -> dict[str, Any]:
    """Return the figures of each text, as lz77.cc prints them."""
    program = build(settings.cache / "lz77-build")
    num_bytes = round(settings.megabytes * 1e6)
    texts = [prepare(spec, num_bytes, 0, settings.cache)[0] for spec in settings.corpora]
    with tempfile.TemporaryDirectory() as folder:
        links = [Path(folder, text.name) for text in texts]
        for text, link in zip(texts, links, strict=True):
            link.symlink_to(Path(text.path).resolve())
        with settings.condition():
            process = subprocess.run([program, str(settings.rounds), *links], check=True, stdout=subprocess.PIPE)
    printed = json.loads(process.stdout)
    return {"versions": {"libdeflate": printed["libdeflate"]}, "texts": printed["texts"]}
