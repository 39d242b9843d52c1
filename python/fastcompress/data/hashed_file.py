"""Files that are hashed and measured while they are read."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import IO, Any

_CHUNK_BYTES = 1 << 20


class HashedFile(io.RawIOBase):
    """A stream whose bytes are hashed as they are read from its beginning on.

    What is read again after a seek is not hashed again, and what is read beyond a gap not at all; `sha256` reads what
    is still missing.

    Attributes:
        num_bytes: The number of bytes from the beginning on that were hashed.
    """

    def __init__(self, raw: IO[bytes], *, closes: bool = True) -> None:
        """Wrap a stream, which is closed with this one if `closes`."""
        self._raw = raw
        self._closes = closes
        self._position = self.num_bytes = 0
        self._digest = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._raw.seekable()

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self._position = self._raw.seek(offset, whence)
        return self._position

    def readinto(self, buffer: Any) -> int:
        num_bytes: int = self._raw.readinto(buffer)  # type: ignore[attr-defined]
        self._seen(memoryview(buffer).cast("B")[:num_bytes])
        return num_bytes

    def readall(self) -> bytes:
        rest = self._raw.read()
        self._seen(rest)
        return rest

    def close(self) -> None:
        if self._closes:
            self._raw.close()
        super().close()

    def sha256(self, path: Path) -> str:
        """Return the SHA-256 of the whole file at `path`, which this stream has read in part or as a whole."""
        with path.open("rb") as file:
            file.seek(self.num_bytes)
            while part := file.read(_CHUNK_BYTES):
                self._digest.update(part)
                self.num_bytes += len(part)
        return self.hexdigest()

    def hexdigest(self) -> str:
        """Return the SHA-256 of the first `num_bytes` bytes, as 64 hexadecimal digits."""
        return self._digest.hexdigest()

    def _seen(self, part: bytes | memoryview) -> None:
        begin = self.num_bytes - self._position
        if 0 <= begin < len(part):
            self._digest.update(memoryview(part)[begin:])
            self.num_bytes += len(part) - begin
        self._position += len(part)


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, as 64 hexadecimal digits."""
    with path.open("rb") as raw, HashedFile(raw) as file:
        return file.sha256(path)
