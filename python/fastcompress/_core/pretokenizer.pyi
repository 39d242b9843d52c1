import numpy as np
import numpy.typing as npt

PATTERNS: dict[str, str]
UNICODE_VERSION: str

def split_ends(text: str | bytes, pattern: str) -> npt.NDArray[np.uint64]: ...
