"""The parts of a data set, each encoded by a worker of a Ray cluster (`fastcompress.data.ray`)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fastcompress.data.dataset_parts import EncodeProgress, Part, encode_part
from fastcompress.data.ray import on_cluster

if TYPE_CHECKING:
    from fastcompress.codec import Codec
    from fastcompress.data.manifest import EncodeSettings


def encode_on_cluster(
    parts: Sequence[Part], codec: Codec, settings: EncodeSettings, folder: Path, *, num_threads: int | None = None
) -> Generator[EncodeProgress]:
    """Encode parts into a folder as `encode_part` does, and yield the last state of each, in order.

    When the generator is closed, no worker writes any more.

    Args:
        parts: The parts, without standard input.
        codec: The codec, which is sent to each machine once.
        settings: The settings.
        folder: The folder, which every worker sees under this path.
        num_threads: The number of threads, and of cores, per part; None for 1.

    Raises:
        ConfigError: Ray is not installed.
        WorkerError: A part failed with its worker, again and again.

    Errors of `encode_part` are raised as they are.
    """
    threads = num_threads or 1
    yield from on_cluster(_encode_part, parts, codec, settings, folder.absolute(), threads, threads_per_part=threads)


def _encode_part(part: Part, codec: Codec, settings: EncodeSettings, folder: Path, num_threads: int) -> EncodeProgress:
    """Encode a part and return its last state; runs in a worker."""
    states = [EncodeProgress()]

    def keep(state: EncodeProgress) -> None:
        states[0] = state

    encode_part(part, codec, settings, folder, num_threads=num_threads, progress=keep)
    return states[0]
