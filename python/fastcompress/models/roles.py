"""The roles of a model's parameters, by which optimizers treat them.

A model may define them (``LanguageModel.parameter_roles``). The rules of ``default_roles`` are:

    memory      the table of a ``MemoryTable``: of its many rows, a step meets few
    spelled     the table of a ``SpelledTable``: of its few rows, a token reads several
    embedding   the table of any other ``nn.Embedding``, also where a head shares it
    vector      what has fewer than two dimensions: biases, gains, scalars
    head        other parameters of modules called ``head``, ``heads``, ``..._head`` or ``..._heads``
    matrix      the rest
"""

from __future__ import annotations

import re
from typing import ClassVar, Literal

from torch import nn

Role = Literal["embedding", "memory", "spelled", "matrix", "head", "vector"]

_HEAD = re.compile(r"(^|\.)(\w+_)?heads?\.")


class MemoryTable(nn.Embedding):
    """A table of what is remembered of contexts, such as n-grams."""

    role: ClassVar[Role] = "memory"


class SpelledTable(nn.Embedding):
    """A table of parts from which the vectors of tokens are summed, such as their bytes."""

    role: ClassVar[Role] = "spelled"


def default_roles(model: nn.Module) -> dict[str, Role]:
    """Return the role of each parameter by its name, a shared one once, as ``named_parameters`` lists them."""
    tables: dict[int, Role] = {
        id(parameter): getattr(module, "role", "embedding")
        for module in model.modules()
        if isinstance(module, (nn.Embedding, nn.EmbeddingBag))
        for parameter in module.parameters(recurse=False)
    }
    roles: dict[str, Role] = {}
    for name, parameter in model.named_parameters():
        if id(parameter) in tables:
            roles[name] = tables[id(parameter)]
        elif parameter.dim() < 2:
            roles[name] = "vector"
        else:
            roles[name] = "head" if _HEAD.search(name) else "matrix"
    return roles
