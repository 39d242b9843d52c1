"""The one place where this package uses the network: a download of published files by their address."""

from __future__ import annotations

import os

from fastcompress.errors import MissingFileError

TIMEOUT_SECONDS = 20.0
"""The time that a download waits for an answer, or for more of one."""


def download(address: str, max_bytes: int = -1) -> bytes:
    """Return the content at a web address.

    Args:
        address: The address, http or https.
        max_bytes: Return at most this many bytes of the content; -1 for no limit.

    Raises:
        MissingFileError: The content cannot be downloaded, or the environment variable FASTCOMPRESS_OFFLINE is set (to
            anything but ``0``).
    """
    if os.environ.get("FASTCOMPRESS_OFFLINE", "0") not in ("", "0"):
        raise MissingFileError(f"{address}: FASTCOMPRESS_OFFLINE is set")
    import http.client  # here, since they take longer to import than the package
    import urllib.request

    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_SECONDS) as answer:
            content: bytes = answer.read(max_bytes)
    except (OSError, http.client.HTTPException) as error:  # urllib's errors and timeouts are OSErrors
        reason = getattr(error, "reason", None) or error
        raise MissingFileError(f"{address}: the download failed: {reason}") from error
    return content
