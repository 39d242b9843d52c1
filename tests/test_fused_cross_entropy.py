"""The loss of cards: values and gradients are those of the loss written out, whatever weighs the events."""

from __future__ import annotations

import pytest
import torch

from fastcompress.models import fused_cross_entropy
from fastcompress.models.cross_entropy import Head, next_token_loss
from fastcompress.models.fused_cross_entropy import HAS_KERNEL, fused_nats

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("softcap", [None, 2.0])
@pytest.mark.parametrize(("num_events", "vocab_size"), [(1, 1), (33, 7), (5, 64), (9, 130), (3, 5000)])
def test_fused_is_written_out(device: str, softcap: float | None, num_events: int, vocab_size: int) -> None:
    if device == "cuda" and not (torch.cuda.is_available() and HAS_KERNEL):
        pytest.skip("no CUDA card with Triton")
    torch.manual_seed(vocab_size)
    hidden, rows = torch.randn(num_events, 16, device=device), torch.randn(vocab_size, 16, device=device)
    targets = torch.randint(vocab_size, (num_events,), device=device)
    factors = torch.rand(num_events, device=device)
    factors[::3] = 0.0  # events that do not count
    results = []
    for is_fused in (False, True):
        inputs = [tensor.clone().requires_grad_() for tensor in (hidden, rows)]
        if is_fused:
            nats = fused_nats(*inputs, targets, softcap)
        else:
            nats = next_token_loss(Head(inputs[1], softcap)(inputs[0]), targets, reduction="none")
        (nats * factors).sum().backward()
        results.append((nats.detach(), *(tensor.grad for tensor in inputs)))
    for expected, found in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(fused_nats(hidden, rows, targets, softcap), results[0][0])


@pytest.mark.parametrize("device", DEVICES)
def test_half_precision_follows_autocast(device: str) -> None:
    """Within bfloat16's rounding; huge logits neither overflow nor lose the target."""
    if device == "cuda" and not (torch.cuda.is_available() and HAS_KERNEL):
        pytest.skip("no CUDA card with Triton")
    torch.manual_seed(0)
    hidden = torch.randn(50, 32, device=device, requires_grad=True)
    rows = torch.randn(300, 32, device=device, requires_grad=True)
    targets = torch.randint(300, (50,), device=device)
    with torch.autocast(device, dtype=torch.bfloat16):
        nats = fused_nats(hidden, rows, targets, None)
        large = fused_nats(1e4 * hidden, rows, targets, None)
    assert nats.dtype == torch.float32
    exact = next_token_loss(hidden @ rows.T, targets, reduction="none")
    torch.testing.assert_close(nats, exact, rtol=0.02, atol=0.1)
    assert large.isfinite().all()
    found = torch.autograd.grad(nats.sum(), (hidden, rows))
    for gradient, expected in zip(found, torch.autograd.grad(exact.sum(), (hidden, rows)), strict=True):
        assert gradient.dtype == torch.float32
        assert (gradient - expected).norm() < 0.02 * expected.norm()


@pytest.mark.gpu
@pytest.mark.skipif(not (torch.cuda.is_available() and HAS_KERNEL), reason="no CUDA card with Triton")
def test_the_kernel_is_what_is_written_out() -> None:
    """Rows of one block and of many, with and without padding."""
    for vocab_size, width in ((1, 64), (64, 64), (4096, 4096), (50_257, 50_304), (65_537, 65_600)):
        logits = 5 * torch.randn(40, width, device="cuda")
        targets = torch.randint(vocab_size, (40,), device="cuda")
        for softcap, has_eighths in ((0.0, False), (3.0, False), (0.0, True), (3.0, True)):
            results = []
            for slopes_of in (fused_cross_entropy._slopes_by_torch, fused_cross_entropy._slopes_by_kernel):
                slopes, nats = logits.clone(), logits.new_empty(40)
                eighths = logits.new_empty((40, width) if has_eighths else 0, dtype=torch.float8_e5m2)
                slopes_of(slopes, targets, nats, vocab_size, softcap, True, eighths)
                results.append((slopes, nats))
                if has_eighths:
                    torch.testing.assert_close(eighths.float(), 32768 * slopes, rtol=0.13, atol=2e-5)  # two bits
            for expected, found in zip(*results, strict=True):
                torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_compiled_losses_use_one_graph() -> None:
    """The compiler takes the loss for one operation, and its gradients stay what they are."""
    torch.manual_seed(0)
    hidden, rows = torch.randn(8, 16, requires_grad=True), torch.randn(70, 16, requires_grad=True)
    targets = torch.randint(70, (8,))

    def loss(hidden: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        return fused_nats(hidden, rows, targets, None).sum()

    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    expected = torch.autograd.grad(loss(hidden, rows), (hidden, rows))
    for gradient, right in zip(torch.autograd.grad(compiled(hidden, rows), (hidden, rows)), expected, strict=True):
        torch.testing.assert_close(gradient, right)
