"""The floating-point operations of a model, which let arms with different tokens share a budget.

Convention (printed with every figure that depends on it):
  * 2 per multiply-add of every matrix product; element-wise work, norms, softmax and embedding look-ups count
    0;
  * attention is charged at the full window, 4 * heads * head_dim * window per token and layer forward: no
    causal discount;
  * every head counts, including a tied one; training = 3 * forward (in the backward pass, each product has two of its
    size).

``torch.utils.flop_counter.FlopCounterMode`` agrees exactly, forward and backward, on the plain-attention path
at full context (``tests/test_evaluation.py``): the first layer's input gradient is needed too, because the
embedding below it is trained. On the fused path it charges the backward pass of attention 2.5 times
its forward pass (recomputed scores); this count does not.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from fastcompress.errors import ConfigError

TRAINING_PER_FORWARD = 3


@dataclass(frozen=True)
class Flops:
    """The operations of one row.

    Attributes:
        num_events: Events per row, S.
        by_part: The operations of a row's forward pass, by the name of the part.
    """

    num_events: int
    by_part: dict[str, int]

    @property
    def forward(self) -> int:
        """The operations of a row's forward pass."""
        return sum(self.by_part.values())

    @property
    def training(self) -> int:
        """The operations of a row's forward and backward pass."""
        return TRAINING_PER_FORWARD * self.forward

    @property
    def forward_per_token(self) -> int:
        """The operations of the forward pass per event."""
        return self.forward // self.num_events

    @property
    def training_per_token(self) -> int:
        """The operations of the forward and backward pass per event."""
        return self.training // self.num_events

    @property
    def by_module(self) -> dict[str, int]:
        """The operations of the forward pass per event, by part."""
        return {name: flops // self.num_events for name, flops in self.by_part.items()}


def count_flops(model: nn.Module, num_events: int | None = None) -> Flops:
    """Count the operations of a model from its modules, each of which runs once per event.

    Linear layers count ``2 * in * out`` per event; a module that multiplies activations with activations adds what its
    ``activation_flops_per_token()`` returns. O(modules), no forward pass. ``LanguageModel.flops`` works for every
    model, including those whose modules run less often.

    Args:
        model: The model.
        num_events: Events per row; default: the model's ``context_length``, or 1 if it has none.

    Raises:
        ConfigError: A matrix parameter belongs to a kind of module this count does not know.
    """
    events = int(getattr(model, "context_length", 1)) if num_events is None else num_events
    by_part: dict[str, int] = {}
    for name, module in model.named_modules():
        matrices = [p for p in module.parameters(recurse=False) if p.dim() >= 2]
        activation_flops = getattr(module, "activation_flops_per_token", None)
        if isinstance(module, nn.Linear):
            by_part[name] = events * 2 * module.in_features * module.out_features
        elif activation_flops is not None:
            by_part[name] = events * int(activation_flops())
        elif matrices and not isinstance(module, nn.Embedding):
            raise ConfigError(
                f"cannot count the FLOPs of {name or 'the model'} ({type(module).__name__}): "
                "use nn.Linear for its matrices or give it activation_flops_per_token()"
            )
    return Flops(events, by_part)
