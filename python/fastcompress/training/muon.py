"""Muon, and an optimizer that combines it with AdamW.

Muon (Jordan, kellerjordan.github.io/posts/muon; Liu et al., arXiv 2502.16982) updates a matrix W[r, c] with gradient G:

    M <- momentum * M + (1 - momentum) * G
    U  = orthogonalize(momentum * M + (1 - momentum) * G)             Nesterov; U U^T or U^T U is near the identity
    W <- W - rate * weight_decay * W - rate * sqrt(max(1, r / c)) * U

Orthogonalizing takes five Newton-Schulz iterations in bfloat16. torch has this optimizer from 2.9 on; ours computes the
same, serves older releases and cautious weight decay, and iterates on all matrices of a shape at once. Where ranks hold
parts of a matrix (FSDP2), each of them gathers it, orthogonalizes it and keeps its own part of the update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of x, x^3 and x^5: steep at 0, near 1 on the rest of [0, 1]
ITERATIONS = 5
EPSILON = 1e-7

Groups = list[dict[str, Any]]


def orthogonalize(matrices: Tensor) -> Tensor:
    """Return matrices with the same singular vectors and singular values near 1 (0.7 to 1.2).

    Args:
        matrices: ``float[n, r, c]``.

    Returns:
        ``bfloat16[n, r, c]``.
    """
    a, b, c = COEFFICIENTS
    is_tall = matrices.size(-2) > matrices.size(-1)
    x = matrices.bfloat16()  # [n, r, c]
    x = x.mT if is_tall else x
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=EPSILON)
    for _ in range(ITERATIONS):
        gram = x @ x.mT  # [n, m, m] with m = min(r, c)
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if is_tall else x


class Muon(torch.optim.Optimizer):
    """Muon for matrices.

    Args:
        groups: Groups of parameters of two dimensions each, with ``lr`` and ``weight_decay``.
        momentum: Decay of the running mean of gradients.
        cautious: Decay a weight only where the update also moves it towards zero.
    """

    def __init__(self, groups: Groups, *, momentum: float, cautious: bool = False) -> None:
        super().__init__(groups, {"lr": 0.0, "weight_decay": 0.0, "momentum": momentum, "cautious": cautious})
        for group in self.param_groups:
            assert all(parameter.dim() == 2 for parameter in group["params"]), "Muon updates matrices only"

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Update every matrix that has a gradient."""
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            for parameters in _by_shape(group["params"]):
                self._update(parameters, group)
        return loss

    def _update(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        momentum, rate, decay = group["momentum"], group["lr"], group["lr"] * group["weight_decay"]
        directions = []
        for parameter in parameters:
            gradient = parameter.grad
            assert gradient is not None
            state = self.state[parameter]
            if "momentum_buffer" not in state:
                state["momentum_buffer"] = torch.zeros_like(gradient)
            mean = state["momentum_buffer"].lerp_(gradient, 1 - momentum)  # [r, c]
            directions.append(gradient.lerp(mean, momentum).bfloat16())
        num_rows, num_columns = parameters[0].shape
        scale = max(1.0, num_rows / num_columns) ** 0.5
        updates = orthogonalize(torch.stack([_whole(direction) for direction in directions]))  # [n, r, c]
        for parameter, whole_update in zip(parameters, updates, strict=True):
            update = _part_like(parameter, whole_update)
            if group["cautious"]:
                parameter.mul_(1 - decay * (update * parameter >= 0))
            else:
                parameter.mul_(1 - decay)
            if isinstance(rate, Tensor):  # on the card
                parameter.addcmul_(update.to(parameter.dtype), rate, value=-scale)
            else:
                parameter.add_(update, alpha=-rate * scale)


def _is_spread(tensor: Tensor) -> bool:
    """Return whether each rank holds a part of a tensor."""
    return hasattr(tensor, "full_tensor")


def _whole(tensor: Tensor) -> Tensor:
    """Return a tensor with the parts of all ranks."""
    whole: Tensor = tensor.full_tensor() if _is_spread(tensor) else tensor  # type: ignore[attr-defined]
    return whole


def _part_like(parameter: Tensor, whole: Tensor) -> Tensor:
    """Spread a tensor, which every rank has whole, as a parameter is spread. Nothing is sent."""
    if not _is_spread(parameter):
        return whole
    from torch.distributed.tensor import DTensor, Replicate

    own: Any = parameter
    everywhere = [Replicate()] * own.device_mesh.ndim
    spread: Tensor = DTensor.from_local(whole, own.device_mesh, everywhere, run_check=False).redistribute(
        placements=own.placements
    )
    return spread


def _by_shape(parameters: Iterable[Tensor]) -> list[list[Tensor]]:
    """Return the parameters that have gradients, in lists of equal shape."""
    found: dict[tuple[torch.Size, torch.device], list[Tensor]] = {}
    for parameter in parameters:
        if parameter.grad is not None:
            found.setdefault((parameter.shape, parameter.device), []).append(parameter)
    return list(found.values())


class CautiousAdamW(torch.optim.AdamW):
    """AdamW that skips weight decay where it works against the update (arXiv 2510.12402).

    Its groups hold their decay in ``cautious_decay``, with a ``weight_decay`` of 0.
    """

    def __init__(self, groups: Groups, **settings: Any) -> None:
        super().__init__(groups, **settings)
        self._step_supports_amp_scaling = False  # loss scaling must skip the decay, too

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:
        """Decay, then update."""
        for group in self.param_groups:
            beta1, decay = group["betas"][0], group["lr"] * group["cautious_decay"]
            for parameter in group["params"] if group["cautious_decay"] else ():
                if parameter.grad is None:
                    continue
                mean = self.state.get(parameter, {}).get("exp_avg")
                update = parameter.grad if mean is None else mean.lerp(parameter.grad, 1 - beta1)  # its sign counts
                parameter.mul_(1 - decay * (update * parameter >= 0))
        return super().step(closure)


class JoinedOptimizer(torch.optim.Optimizer):
    """Several optimizers as one, with all their groups in order.

    Args:
        parts: Optimizers over different parameters.
    """

    def __init__(self, parts: list[torch.optim.Optimizer]) -> None:
        self.parts = parts
        self.sizes = [len(part.param_groups) for part in parts]
        super().__init__([group for part in parts for group in part.param_groups], {})
        self._share()

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Step every part."""
        loss = closure() if closure is not None else None
        for part in self.parts:
            part.step()
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what ``state_dict`` returned."""
        super().load_state_dict(state_dict)
        self._share()

    def _share(self) -> None:
        """Share the groups and the state of the whole with the parts."""
        begin = 0
        for part, size in zip(self.parts, self.sizes, strict=True):
            part.param_groups, part.state = self.param_groups[begin : begin + size], self.state
            begin += size
