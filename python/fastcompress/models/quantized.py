"""Vector quantization of what a network reads: each vector is replaced by the nearest one of a codebook."""

from __future__ import annotations

from torch import Tensor, nn

from fastcompress.models.blocks import RMSNorm


class VectorQuantizer(nn.Module):
    """Replace vectors by the code in the most similar direction: ``x [B, P, D] -> [B, P, D]``.

        z = RMS(x),  c = RMS(codes),  k = argmax z . c_k,  y = c_k + (z - stop(z))

    The value is the code; the gradient reaches both the code, as if it were read, and x, as if it had not been replaced
    (the straight-through estimator; van den Oord et al., "Neural Discrete Representation Learning", arXiv 1711.00937).
    With directions in place of points, both are trained by the model's loss alone, without a term that ties them
    together (Yu et al., "Vector-quantized Image Modeling with Improved VQGAN", arXiv 2110.04627, compare directions).

    Args:
        num_codes: K, the number of codes.
        width: D.
    """

    def __init__(self, num_codes: int, width: int) -> None:
        super().__init__()
        self.codes = nn.Embedding(num_codes, width)
        self.norm = RMSNorm()

    def forward(self, x: Tensor) -> Tensor:
        own = self.norm(x)  # [B, P, D]
        codes = self.norm(self.codes.weight).to(own.dtype)  # [K, D]
        nearest = (own @ codes.T).argmax(-1)  # int64[B, P]
        quantized: Tensor = codes[nearest] + (own - own.detach())  # [B, P, D]
        return quantized

    def activation_flops_per_token(self) -> int:
        """Count the comparison with every code, 2 per multiply-add."""
        return 2 * self.codes.num_embeddings * self.codes.embedding_dim
