"""Fixtures that several test files share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_directory() -> Path:
    """The folder of test corpora that FASTCOMPRESS_DATA names; without it tests skip, or fail in CI."""
    folder = os.environ.get("FASTCOMPRESS_DATA")
    if folder and Path(folder).is_dir():
        return Path(folder)
    reason = f"FASTCOMPRESS_DATA is {folder!r}, not a folder of test corpora"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
