"""Workers: one process per job, under the interpreter and with the thread settings that the job asks for."""

from __future__ import annotations

import json
import mmap
import os
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from texts import Text
from vocabularies import Vocabulary

RESULT = "result: "  # begins the last line of a worker; libraries may print others


@dataclass(frozen=True)
class Interpreters:
    """Which Python runs an engine: `own` has fastcompress, `peers` all others, so that neither disturbs the other."""

    own: str
    peers: str

    def of(self, engine: str) -> str:
        return self.own if engine.startswith("fastcompress") else self.peers


def touch_memory() -> None:
    """Touch a quarter of the free memory, once.

    In a virtual machine, the host provides a page when it is first touched, which takes many times as long as clearing
    it. Without this, the engine that happens to reach such a page first would pay.
    """
    if "SC_AVPHYS_PAGES" not in os.sysconf_names:
        return
    size = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
    with mmap.mmap(-1, size) as memory:
        for page in range(0, size, mmap.PAGESIZE):
            memory[page] = 1


def environment(threads: int) -> dict[str, str]:
    """The variables that set the thread pools of Rayon, tokenizers and NumPy; tiktoken keeps no copies of files."""
    settings = {
        "RAYON_NUM_THREADS": str(threads),
        "TOKENIZERS_PARALLELISM": "false" if threads == 1 else "true",
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": "1",
        "TIKTOKEN_CACHE_DIR": "",
    }
    return {**os.environ, **settings}


def run(
    script: str, job: dict[str, Any], interpreters: Interpreters, timeout: float = 300.0
) -> tuple[dict[str, Any], str | None]:
    """The result of a job, and what went wrong if something did."""
    command = [interpreters.of(job["engine"]), str(Path(__file__).with_name(script))]
    plain = {key: asdict(value) if isinstance(value, Text | Vocabulary) else value for key, value in job.items()}
    try:
        process = subprocess.run(
            command,
            input=json.dumps(plain),
            capture_output=True,
            text=True,
            timeout=timeout,
            env=environment(job["threads"]),
        )
    except subprocess.TimeoutExpired:
        return {}, f"over {timeout:.0f} s"
    except FileNotFoundError:
        return {}, f"{command[0]} is no interpreter: make the peers' environment, or name its Python by --peers"
    last = process.stdout.rpartition(RESULT)[2]
    if process.returncode == 0 and RESULT in process.stdout:
        return json.loads(last), None
    return {}, (process.stderr.strip().splitlines() or [f"died with status {process.returncode}"])[-1]
