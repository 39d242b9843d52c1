"""Arms that fail, in a module that a cell's process can import."""

from __future__ import annotations

import os
import signal

from fastcompress.codec import Codec
from fastcompress.data import Corpus
from fastcompress.errors import DataError
from fastcompress.study import Arm


def _raises(corpus: Corpus) -> Codec:
    raise DataError("its codec <cannot> be made")


def _dies(corpus: Corpus) -> Codec:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("a killed process went on")


RAISES = Arm(name="raises", label="Raises", make_codec=_raises)
DIES = Arm(name="dies", label="Dies", make_codec=_dies)
