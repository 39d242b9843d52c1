"""Attention of symbols to the patches that they know: the cross-attention of local to global networks.

Pagnoni et al., "Byte Latent Transformer" (arXiv 2412.09871), the decoder's.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fastcompress.models.attention import plain_attention
from fastcompress.models.protocol import AttentionKind


class PatchAttention(nn.Module):
    """Symbols attend to the patches known to them; ``x [B, S, d], latents [B, P + 1, D] -> [B, S, d]``."""

    def __init__(self, width: int, latent_width: int, num_heads: int, num_latents: int, kind: AttentionKind) -> None:
        super().__init__()
        self.num_heads, self.num_latents, self.kind = num_heads, num_latents, kind
        self.query = nn.Linear(width, width, bias=False)
        self.key_value = nn.Linear(latent_width, 2 * width, bias=False)
        self.output = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, latents: Tensor, known: Tensor) -> Tensor:
        """``known int64[B, S]``: the first so many latents, and one more, are visible."""
        query, key, value = (
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for part in (self.query(x), *self.key_value(latents).chunk(2, dim=-1))
        )  # [B, H, S, K], 2 x [B, H, P + 1, K]
        visible = torch.arange(latents.size(1), device=x.device) <= known[:, None, :, None]  # bool[B, 1, S, P + 1]
        query, key = (F.rms_norm(z, (z.size(-1),)).to(value.dtype) for z in (query, key))
        if self.kind == "plain":
            mixed = plain_attention(query, key, value, dropout=0.0, visible=visible)  # [B, H, S, K]
        else:
            mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=visible)  # [B, H, S, K]
        added: Tensor = self.output(mixed.transpose(1, 2).flatten(2))  # [B, S, d]
        return added

    def activation_flops_per_token(self) -> int:
        """Scores and weighted sum over all latents, 2 per multiply-add."""
        return 4 * self.query.out_features * self.num_latents
