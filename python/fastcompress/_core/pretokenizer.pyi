from typing import TypeAlias

import numpy as np
import numpy.typing as npt

_Text: TypeAlias = str | bytes | bytearray | memoryview

PATTERNS: dict[str, str]
ALIASES: dict[str, str]
UNICODE_VERSION: str
ASSIGNED: list[tuple[int, int]]

def split_ends(text: _Text, pattern: str) -> npt.NDArray[np.uint64]: ...
def normalize_nfc(text: _Text) -> bytes: ...
