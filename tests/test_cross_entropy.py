"""The loss: in pieces it is the whole one, with a part of its memory, and weights say what counts."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import nn

from fastcompress.models.cross_entropy import Head, head_nats, next_token_loss
from fastcompress.training.device import weighted_loss


@pytest.mark.parametrize("logits_at_once", [1, 7 * 11, 200, 7 * 33 - 1])
def test_pieces_are_the_whole(logits_at_once: int) -> None:
    """Values and gradients of inputs and head; a vocabulary of 7, and 33 events."""
    torch.manual_seed(0)
    hidden, targets, costs = torch.randn(3, 11, 5), torch.randint(7, (3, 11)), torch.rand(3, 11)
    results = []
    for limit in (None, logits_at_once):
        head = nn.Linear(5, 7, bias=False)
        with torch.no_grad():
            head.weight.copy_(torch.arange(35.0).view(7, 5).sin())
        inputs = hidden.clone().requires_grad_()
        nats = head_nats(inputs, Head(head.weight), targets, limit)
        (nats * costs).sum().backward()
        with torch.no_grad():
            torch.testing.assert_close(head_nats(inputs, Head(head.weight), targets, limit), nats)
        results.append((nats.detach(), inputs.grad, head.weight.grad))
    assert results[0][0].shape == (3, 11)
    for whole, parts in zip(*results, strict=True):
        torch.testing.assert_close(parts, whole)


MEASURE = """
import torch
from torch import nn
from fastcompress.models.cross_entropy import Head, head_nats

def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM:")) * 1024

torch.set_num_threads(1)
head = nn.Linear(16, 65_537, bias=False)
hidden, targets = torch.randn(1, 2048, 16, requires_grad=True), torch.randint(65_537, (1, 2048))
peaks = []
for num_events in (8, 1024, 2048):
    head_nats(hidden[:, :num_events], Head(head.weight), targets[:, :num_events], None).sum().backward()
    peaks.append(peak())
print(peaks[1] - peaks[0], peaks[2] - peaks[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_large_vocabulary_does_not_cost_its_logits() -> None:
    """1,024 events at 65,537 ids: 256 MiB of logits, which took three times that before they were cut; nor do more."""
    done = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True)
    growth, further_growth = map(int, done.stdout.split())
    assert growth < 320 << 20
    assert further_growth < 64 << 20  # 256 MiB more of logits


def test_weights_say_what_counts() -> None:
    nats = torch.tensor([[1.0, 2.0], [4.0, 8.0]])
    weight = torch.tensor([[1.0, 0.0], [0.5, 0.0]])
    assert float(weighted_loss(nats, weight)) == pytest.approx((1.0 + 2.0) / 1.5)
    parts = [weighted_loss(nats[i : i + 1], weight[i : i + 1], weight.sum()) for i in range(2)]
    assert float(sum(parts)) == pytest.approx(2.0)
    assert float(weighted_loss(nats, torch.zeros(2, 2), torch.tensor(3.0))) == 0.0  # a micro-batch of prompts


@pytest.mark.parametrize("shape", [(3, 7), (8, 64), (5, 1000)])
@pytest.mark.parametrize("num_parts", [1, 3])
def test_the_loss_has_the_bits_of_torchs_mean(shape: tuple[int, int], num_parts: int) -> None:
    """So that runs from before there were weights go on as they were, their gradients included."""
    torch.manual_seed(1)
    logits, targets = torch.randn(*shape, 50), torch.randint(50, shape)
    results = []
    for is_weighted in (False, True):
        inputs = logits.clone().requires_grad_()
        if is_weighted:
            nats, weight = next_token_loss(inputs, targets, reduction="none"), torch.ones(shape)
            loss = weighted_loss(nats, weight, num_parts * weight.sum())
        else:
            loss = next_token_loss(inputs, targets) / num_parts
        loss.backward()
        results.append((loss.detach(), inputs.grad))
    for mean, weighted in zip(*results, strict=True):
        assert torch.equal(mean, weighted)
