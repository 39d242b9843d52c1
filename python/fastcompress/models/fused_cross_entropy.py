"""Cross entropy of a linear head on a card: the logits are written once, read once, and become their own gradient.

For an event with hidden state h, logits z = W h and target y,

    nats = ln sum_v exp(l_v) - l_y,    l = z, or c tanh(z / c) under a soft cap c,
    d nats / d z_v = (exp(l_v) / sum_u exp(l_u) - [v = y]) (1 - (l_v / c)^2)      (the last factor under a cap only).

All of that is known in the forward pass, but for the factor by which the loss weighs the event. So a kernel goes over
each row of logits while it is in the cache and leaves the slopes S in its place; the backward pass, given the factors
g, is two matrix products, S W with rows scaled by g, and S^T (g h). Left to the compiler, the logits of 32,768 events
and 50,257 ids (3.3 GB in bfloat16) are read three times and written twice. Gradients in the forward pass: Hsu et al.,
"Liger Kernel" (arXiv 2410.10989), where the factors must be known, too.

Where slopes are wanted of logits in half precision under a cap, tanh is the card's own, good to a relative 2^-11: less
than the 2^-9 that rounds such logits. Scores are computed without slopes, and have the full tanh. At 65,536 events and
32,768 ids that takes an H200 3.0 ms instead of 5.2.

Rows of W are padded to a multiple of 64: on an H200 a product with 50,257 columns in bfloat16 took seven times as long
as one with 50,304.

On request, two of the three products are in float8 (``float8.py``): W h and S W, for which the kernel writes S once
more. S^T h would read S by columns, and a transposed copy of it costs what the product would save.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from fastcompress.models import float8

try:
    import triton  # type: ignore[import-not-found, unused-ignore]
    import triton.language as tl  # type: ignore[import-not-found, unused-ignore]
except ImportError:  # torch for CPUs comes without it
    HAS_KERNEL = False
else:
    HAS_KERNEL = True

ALIGNMENT = 64  # rows of the head
SLOPE_SCALE = 32768.0  # of slopes in float8: they are in [-1, 1], mostly near 1 / V
BLOCK, WARPS = 4096, 16  # logits that a program looks at together, and the warps that do
LARGEST_BOUND = 40.0  # of a cap c in whose place no maximum is needed: exp(-2 c) is a normal float32


def fused_nats(
    hidden: Tensor, rows: Tensor, targets: Tensor, softcap: float | None, *, in_float8: bool = False
) -> Tensor:
    """Cross entropy in nats under the logits ``hidden @ rows.T``, ``float32[N]``; differentiable by the first two.

    Args:
        hidden: ``float[N, D]``.
        rows: ``float[V, D]``. Both are converted as autocast would.
        targets: ``int64[N]``, in [0, V).
        softcap: c; None: no cap.
        in_float8: Multiply in float8 what would be multiplied in bfloat16, where gradients are wanted and D and N are
            multiples of 16.
    """
    device = hidden.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
    padded = F.pad(rows.to(dtype), (0, 0, 0, -len(rows) % ALIGNMENT))  # [V', D]
    hidden = hidden.to(dtype)
    needs_slopes = torch.is_grad_enabled()
    eighths: list[Tensor | None] = [None] * 4
    if in_float8 and needs_slopes and float8.is_for(hidden):
        with torch.no_grad():
            eighths = [*float8.to_float8(hidden, float8.VALUES), *float8.to_float8(padded, float8.VALUES)]
    nats: Tensor = _fused_nats(hidden, padded, targets, len(rows), softcap or 0.0, needs_slopes, *eighths)[0]
    return nats


@torch.library.custom_op("fastcompress::fused_nats", mutates_args=())
def _fused_nats(
    hidden: Tensor,
    rows: Tensor,
    targets: Tensor,
    vocab_size: int,
    softcap: float,
    needs_slopes: bool,
    hidden8: Tensor | None,
    hidden_scale: Tensor | None,
    rows8: Tensor | None,
    rows_scale: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return nats, ``float32[N]``, and slopes, ``[N, V']`` of the logits' type (empty if they are not needed).

    The third result is the slopes times ``SLOPE_SCALE`` in float8, if factors in float8 are given; otherwise empty.
    """
    slopes8 = hidden.new_empty(0, dtype=float8.GRADIENTS)
    if hidden8 is None or hidden_scale is None or rows8 is None or rows_scale is None:
        logits = hidden @ rows.T  # [N, V']
    else:
        logits = float8.float8_product(hidden8, rows8, hidden_scale, rows_scale, hidden.dtype)  # [N, V']
        slopes8 = torch.empty_like(logits, dtype=float8.GRADIENTS)  # [N, V']
    nats = logits.new_empty(len(logits), dtype=torch.float32)  # [N]
    slopes_of = _slopes_by_kernel if HAS_KERNEL and logits.is_cuda else _slopes_by_torch
    slopes_of(logits, targets, nats, vocab_size, softcap, needs_slopes, slopes8)
    return nats, logits if needs_slopes else logits.new_empty(0), slopes8


@_fused_nats.register_fake
def _(
    hidden: Tensor,
    rows: Tensor,
    targets: Tensor,
    vocab_size: int,
    softcap: float,
    needs_slopes: bool,
    hidden8: Tensor | None,
    hidden_scale: Tensor | None,
    rows8: Tensor | None,
    rows_scale: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    whole = (len(hidden), len(rows))
    slopes = hidden.new_empty(whole if needs_slopes else (0,))
    slopes8 = hidden.new_empty((0,) if hidden8 is None else whole, dtype=float8.GRADIENTS)
    return hidden.new_empty(len(hidden), dtype=torch.float32), slopes, slopes8


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    hidden, rows, *_, rows8, rows_scale = inputs
    ctx.save_for_backward(hidden, rows, *output[1:], rows8, rows_scale)
    ctx.mark_non_differentiable(*output[1:])


def _backward(ctx: Any, factors: Tensor, *_: Tensor | None) -> tuple[Tensor | None, ...]:
    hidden, rows, slopes, slopes8, rows8, rows_scale = ctx.saved_tensors  # [N, D], [V', D], 2 x [N, V'], [V', D], []
    scale = factors[:, None].to(hidden.dtype)  # [N, 1]
    of_hidden = of_rows = None
    if ctx.needs_input_grad[0] and rows8 is None:
        of_hidden = (slopes @ rows) * scale  # [N, D]
    elif ctx.needs_input_grad[0]:
        slope_scale = torch.full_like(rows_scale, 1 / SLOPE_SCALE)  # []
        by_columns = rows8.t().contiguous()  # [D, V']
        product = float8.float8_product(slopes8, by_columns, slope_scale, rows_scale, hidden.dtype)  # [N, D]
        of_hidden = product * scale
    if ctx.needs_input_grad[1]:
        of_rows = slopes.T @ (hidden * scale)  # [V', D]
    return of_hidden, of_rows, *[None] * 8


_fused_nats.register_autograd(_backward, setup_context=_keep)


def _slopes_by_torch(
    logits: Tensor,
    targets: Tensor,
    nats: Tensor,
    vocab_size: int,
    softcap: float,
    needs_slopes: bool,
    slopes8: Tensor,
) -> None:
    """What the kernel does, written out: its oracle, and what runs where there is no kernel."""
    capped = logits[:, :vocab_size].float()  # [N, V]
    if softcap:
        capped = softcap * torch.tanh(capped / softcap)
    log_sum = capped.logsumexp(dim=1)  # [N]
    nats.copy_(log_sum - capped.gather(1, targets[:, None])[:, 0])
    if needs_slopes:
        slopes = (capped - log_sum[:, None]).exp()  # [N, V]
        slopes.scatter_add_(1, targets[:, None], slopes.new_full((len(slopes), 1), -1.0))
        if softcap:
            slopes *= 1 - (capped / softcap).square()
        logits[:, :vocab_size] = slopes.to(logits.dtype)
        logits[:, vocab_size:] = 0
        if slopes8.numel():
            slopes8.zero_()
            slopes8[:, :vocab_size] = (slopes * SLOPE_SCALE).to(slopes8.dtype)


def _slopes_by_kernel(
    logits: Tensor,
    targets: Tensor,
    nats: Tensor,
    vocab_size: int,
    softcap: float,
    needs_slopes: bool,
    slopes8: Tensor,
) -> None:
    """Write the nats of each row of ``logits [N, V']`` and, if they are needed, its slopes in its place."""
    num_events, width = logits.shape
    has_eighths = slopes8.numel() > 0
    is_rough = needs_slopes and logits.dtype != torch.float32 and torch.version.cuda is not None
    _softmax_in_place[(num_events,)](
        logits, slopes8, targets, nats, vocab_size, width, 1 / (softcap or 1.0), softcap / math.log(2), SLOPE_SCALE,
        softcap != 0.0, 0.0 < softcap <= LARGEST_BOUND, is_rough, needs_slopes, has_eighths, BLOCK, num_warps=WARPS,
    )  # fmt: skip


if HAS_KERNEL:

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _bits(  # type: ignore[no-untyped-def]
        row,
        at,
        end,
        inverse_cap,
        cap_bits,
        has_cap: tl.constexpr,
        is_rough: tl.constexpr,
        is_whole: tl.constexpr,
    ):
        """Logits at some places of a row, in units of ln 2; far below all others from ``end`` on."""
        if is_whole:
            logit = tl.load(row + at).to(tl.float32)
        else:
            logit = tl.load(row + at, mask=at < end, other=0.0).to(tl.float32)
        bits = cap_bits * _tanh(logit * inverse_cap, is_rough) if has_cap else logit * 1.4426950408889634
        if not is_whole:
            bits = tl.where(at < end, bits, -1e30)
        return bits

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _tanh(x, is_rough: tl.constexpr):  # type: ignore[no-untyped-def]
        """tanh(x), or the card's own in one instruction."""
        if is_rough:
            return tl.inline_asm_elementwise(
                "tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
            )
        return 2 * tl.sigmoid(2 * x) - 1

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _write_slopes(  # type: ignore[no-untyped-def]
        row,
        row8,
        begin,
        lanes,
        target,
        sum_bits,
        vocab_size,
        width,
        inverse_cap,
        cap_bits,
        slope_scale,
        has_cap: tl.constexpr,
        is_rough: tl.constexpr,
        has_eighths: tl.constexpr,
        is_whole: tl.constexpr,
    ):
        """Replace a block of logits by slopes, and of padding by zeros; write them in float8, too, on request."""
        at = begin + lanes
        bits = _bits(row, at, vocab_size, inverse_cap, cap_bits, has_cap, is_rough, is_whole)
        slope = tl.exp2(bits - sum_bits)
        if (target >= begin) & (target < begin + lanes.shape[0]):
            slope -= tl.where(at == target, 1.0, 0.0)
        if has_cap:
            bent = bits * (1.0 / cap_bits)  # of the size of 1e29 in padding, where the slope is 0
            slope -= slope * bent * bent
        if is_whole:
            tl.store(row + at, slope.to(row.dtype.element_ty))
        else:
            tl.store(row + at, slope.to(row.dtype.element_ty), mask=at < width)
        if has_eighths:
            eighth = (slope * slope_scale).to(row8.dtype.element_ty)
            if is_whole:
                tl.store(row8 + at, eighth)
            else:
                tl.store(row8 + at, eighth, mask=at < width)

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _softmax_in_place(  # type: ignore[no-untyped-def]
        logits,
        slopes8,
        targets,
        nats,
        vocab_size,
        width,
        inverse_cap,
        cap_bits,
        slope_scale,
        has_cap: tl.constexpr,
        is_bounded: tl.constexpr,
        is_rough: tl.constexpr,
        needs_slopes: tl.constexpr,
        has_eighths: tl.constexpr,
        block: tl.constexpr,
    ):
        """One program a row: running maxima and sums of exponentials, then, from the cache, the slopes.

        Each lane has a maximum and a sum of its own, which are joined at the end. Four blocks at a time share the
        exponential that brings the sum to the new maximum: without that, and with masks everywhere, the kernel was
        bound by its instructions, not by memory. Where a cap bounds the logits, the cap takes the maximum's place.
        """
        event = tl.program_id(0).to(tl.int64)
        row = logits + event * width
        target = tl.load(targets + event)
        lanes = tl.arange(0, block)
        totals = tl.full((block,), 0.0, tl.float32)
        by_four = vocab_size // (4 * block) * (4 * block)
        peaks = tl.full((block,), cap_bits if is_bounded else -1e30, tl.float32)  # finite: no difference is NaN
        for begin in range(0, by_four, 4 * block):
            at = begin + lanes
            first = _bits(row, at, vocab_size, inverse_cap, cap_bits, has_cap, is_rough, True)
            second = _bits(row, at + block, vocab_size, inverse_cap, cap_bits, has_cap, is_rough, True)
            third = _bits(row, at + 2 * block, vocab_size, inverse_cap, cap_bits, has_cap, is_rough, True)
            fourth = _bits(row, at + 3 * block, vocab_size, inverse_cap, cap_bits, has_cap, is_rough, True)
            if not is_bounded:
                higher = tl.maximum(peaks, tl.maximum(tl.maximum(first, second), tl.maximum(third, fourth)))
                totals *= tl.exp2(peaks - higher)
                peaks = higher
            totals += (tl.exp2(first - peaks) + tl.exp2(second - peaks)) + (
                tl.exp2(third - peaks) + tl.exp2(fourth - peaks)
            )
        for begin in range(by_four, vocab_size, block):
            bits = _bits(row, begin + lanes, vocab_size, inverse_cap, cap_bits, has_cap, is_rough, False)
            if not is_bounded:
                higher = tl.maximum(peaks, bits)
                totals *= tl.exp2(peaks - higher)
                peaks = higher
            totals += tl.exp2(bits - peaks)
        peak = tl.max(peaks, axis=0)
        sum_bits = peak + tl.log2(tl.sum(totals * tl.exp2(peaks - peak), axis=0))
        hit = _bits(row, target, vocab_size, inverse_cap, cap_bits, has_cap, is_rough, True)
        tl.store(nats + event, (sum_bits - hit) * 0.6931471805599453)
        if needs_slopes:
            row8 = slopes8 + event * width  # not read or written without has_eighths
            whole = vocab_size // block * block
            for begin in range(0, whole, block):
                _write_slopes(
                    row, row8, begin, lanes, target, sum_bits, vocab_size, width, inverse_cap, cap_bits, slope_scale,
                    has_cap, is_rough, has_eighths, True,
                )  # fmt: skip
            for begin in range(whole, width, block):
                _write_slopes(
                    row, row8, begin, lanes, target, sum_bits, vocab_size, width, inverse_cap, cap_bits, slope_scale,
                    has_cap, is_rough, has_eighths, False,
                )  # fmt: skip
