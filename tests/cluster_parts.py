"""Functions that tests send to the workers of a Ray cluster, in a module that workers can import."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fastcompress.codec import ByteCodec, CodecKind, register_codec
from fastcompress.codec.protocol import Text
from fastcompress.errors import DataError


def square(part: int, offset: int) -> tuple[int, int, str]:
    """The square of a number, and the process and folder that it was made in; even ones take longer."""
    time.sleep(0.05 * (part % 2 == 0))
    return part * part + offset, os.getpid(), os.getcwd()


def killed_once(part: int, folder: Path) -> int:
    """Die by SIGKILL at the first call for each part of 1, 3, 5 ..., and at every call for part 99."""
    mark = folder / str(part)
    if part % 2 and (part == 99 or not mark.exists()):
        mark.write_text("begun")
        os.kill(os.getpid(), signal.SIGKILL)
    return part


def fails(part: int, folder: Path) -> int:
    """Raise for parts 2 and 3, the second of which fails first; leave a file for each part that ended."""
    if part == 3:
        raise OSError("later in order, earlier in time")
    if part == 2:
        time.sleep(0.2)
        raise DataError("part 2: bad text")
    time.sleep(0.2 * (part > 3))
    (folder / str(part)).write_text("ended")
    return part


class FatalCodec(ByteCodec):
    """The byte codec, in whose `encode` the process dies by SIGKILL `num_deaths` times, at documents with "die".

    Its ids and its fingerprint are those of the byte codec.
    """

    def __init__(self, folder: str, num_deaths: int) -> None:
        self.folder = folder
        self.num_deaths = num_deaths

    def _arguments(self) -> dict[str, Any]:
        return {"folder": self.folder, "num_deaths": self.num_deaths}

    def encode(self, data: Text) -> npt.NDArray[np.uint32]:
        ids = super().encode(data)
        if b"die" in ids.astype(np.uint8).tobytes():
            marks = Path(self.folder)
            number = len(list(marks.iterdir()))
            if number < self.num_deaths:
                (marks / str(number)).touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return ids


register_codec(
    CodecKind("fatal-in-tests", FatalCodec, lambda codec: codec._arguments(), lambda state: FatalCodec(**state))
)
