"""A trained model of bytes as a function from contexts to the weights of the next byte: the M1 of equal-info windows.

`equal_info.Codebook.from_model` and `equal_info.paper` take such functions. A window is predicted from its own bytes
only, as if the text began in the middle: so a context is read as rows of training are, without an end of document
before it. Before the first byte of a window there is nothing to read. The weights there are the shares that the bytes
have in the long run if each is drawn given only the one before it, which the model does know.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from fastcompress.codec import ByteCodec
from fastcompress.errors import ConfigError
from fastcompress.models.protocol import LanguageModel, device_of, evaluation_mode
from fastcompress.models.tokens import NextTokenModel

_UNIT = 1 << 24  # weights are rounded to probabilities in units of 2**-24, plus 1
_ROUNDS = 256  # of the chain of bytes, which forgets its first one long before


class NextByteWeights:
    """A `NextByteModel` of a trained model.

    Batches have a fixed number of rows, as long as the next power of two, so that an answer does not depend on which
    other contexts are asked for. Even so, another machine or release of torch may round differently: compile a codebook
    once, and keep it.

    Attributes:
        num_positions: The number of bytes that the model has read so far, padding included.
    """

    def __init__(self, model: LanguageModel, batch_size: int = 32) -> None:
        """Make the function.

        Args:
            model: A model of byte ids and the end of a document, on any device.
            batch_size: Rows of a batch; a single context costs as much as a full batch.

        Raises:
            ConfigError: The model is of another kind or vocabulary.
        """
        if not isinstance(model, NextTokenModel) or model.vocab_size != ByteCodec().vocab_size + 1:
            raise ConfigError("the model does not predict the next byte; train one with --codec byte")
        if batch_size < 1:
            raise ConfigError(f"batch_size is {batch_size}; it must be at least 1")
        self._model, self._batch_size = model, batch_size
        self.num_positions = 0
        self._first = self._long_run_shares()  # int64[256]

    def __call__(self, contexts: Sequence[bytes]) -> npt.NDArray[np.int64]:
        """Return the weights after each context, of which the last ``context_length`` bytes count: int64[n, 256]."""
        rows = np.empty((len(contexts), 256), np.int64)
        longest = self._model.context_length
        by_length: dict[int, list[int]] = {}  # a power of two, or the context of the model
        for index, context in enumerate(contexts):
            by_length.setdefault(min(1 << max(0, len(context) - 1).bit_length(), longest), []).append(index)
            if not context:
                rows[index] = self._first
        for length, indices in by_length.items():
            known = [index for index in indices if contexts[index]]
            for begin in range(0, len(known), self._batch_size):
                part = known[begin : begin + self._batch_size]
                rows[part] = self._read([contexts[index][-longest:] for index in part], length)
        return rows

    @torch.inference_mode()
    def _read(self, contexts: Sequence[bytes], length: int) -> npt.NDArray[np.int64]:
        """Return the weights after contexts of 1 to ``length`` bytes, at most ``batch_size`` of them: int64[n, 256]."""
        padded = np.zeros((self._batch_size, length), np.int64)  # on the right, which a causal model does not see
        for row, context in zip(padded, contexts, strict=False):
            row[: len(context)] = np.frombuffer(context, np.uint8)
        self.num_positions += padded.size
        tokens = torch.from_numpy(padded).to(device_of(self._model))  # int64[B, L]
        ends = [len(context) - 1 for context in contexts]
        last = torch.tensor(ends + [0] * (self._batch_size - len(ends)), device=tokens.device)  # int64[B]
        with evaluation_mode(self._model):
            logits = self._model.next_logits(tokens, last, None, None)[: len(contexts), :256]  # [n, 256]
        weights: npt.NDArray[np.int64] = _rounded(torch.softmax(logits.double(), dim=-1).cpu().numpy())
        return weights

    def _long_run_shares(self) -> npt.NDArray[np.int64]:
        every = [bytes([byte]) for byte in range(256)]
        size = self._batch_size
        follows = np.concatenate([self._read(every[i : i + size], 1) for i in range(0, 256, size)]).astype(np.float64)
        follows /= follows.sum(axis=1, keepdims=True)
        shares = np.full(256, 1 / 256)
        for _ in range(_ROUNDS):
            shares = shares @ follows
        return _rounded(shares)


def _rounded(probabilities: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    return np.floor(probabilities * _UNIT).astype(np.int64) + 1
