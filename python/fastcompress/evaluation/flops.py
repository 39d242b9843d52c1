"""Count a model's floating-point operations from its modules, so that arms with different tokens can share a budget.

Convention (printed beside every number that rests on it):
  * 2 per multiply-add of every matrix product; element-wise work, norms, softmax and embedding look-ups count
    0;
  * attention is charged at the full window, 4 * heads * head_dim * window per token and layer forward: no
    causal discount;
  * every head counts, a tied one too; training = 3 * forward (each product has two products of its size
    behind it in the backward pass).

``torch.utils.flop_counter.FlopCounterMode`` agrees exactly, forward and backward, on the plain-attention path
at full context (``tests/test_evaluation.py``): the first layer's input gradient is needed too, because the
embedding below it is trained. On the fused path it charges the backward of attention 2.5 times its forward
(recomputed scores); we do not.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from fastcompress.errors import ConfigError

TRAINING_PER_FORWARD = 3


@dataclass(frozen=True)
class Flops:
    """Operations per token: the whole forward pass, a training step, and the forward pass by module name."""

    forward_per_token: int
    training_per_token: int
    by_module: dict[str, int]


def count_flops(model: nn.Module) -> Flops:
    """Count the FLOPs per token of a model whose modules each run once per token.

    Linear layers count ``2 * in * out``; a module that multiplies activations with activations adds what its
    ``activation_flops_per_token()`` returns. O(modules), no forward pass.

    Raises:
        ConfigError: A matrix parameter belongs to a kind of module this count does not know.
    """
    by_module: dict[str, int] = {}
    for name, module in model.named_modules():
        matrices = [p for p in module.parameters(recurse=False) if p.dim() >= 2]
        activation_flops = getattr(module, "activation_flops_per_token", None)
        if isinstance(module, nn.Linear):
            by_module[name] = 2 * module.in_features * module.out_features
        elif activation_flops is not None:
            by_module[name] = int(activation_flops())
        elif matrices and not isinstance(module, nn.Embedding):
            raise ConfigError(
                f"cannot count the FLOPs of {name or 'the model'} ({type(module).__name__}): "
                "use nn.Linear for its matrices or give it activation_flops_per_token()"
            )
    forward = sum(by_module.values())
    return Flops(forward, TRAINING_PER_FORWARD * forward, by_module)
