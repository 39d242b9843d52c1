"""The roles of parameters, by which optimizers group them: embedding, matrix, head or vector.

A model may define them (``LanguageModel.parameter_roles``). The rules of ``default_roles`` are:

    embedding   the table of an ``nn.Embedding``, also where a head shares it
    vector      parameters of fewer than two dimensions: biases, gains, scalars
    head        other parameters of modules called ``head``, ``heads``, ``..._head`` or ``..._heads``
    matrix      the rest
"""

from __future__ import annotations

import re
from typing import Literal

from torch import nn

Role = Literal["embedding", "matrix", "head", "vector"]

_HEAD = re.compile(r"(^|\.)(\w+_)?heads?\.")


def default_roles(model: nn.Module) -> dict[str, Role]:
    """Return the role of each parameter by name, a shared one once, in the order of ``named_parameters``."""
    tables = {
        id(parameter)
        for module in model.modules()
        if isinstance(module, (nn.Embedding, nn.EmbeddingBag))
        for parameter in module.parameters(recurse=False)
    }
    roles: dict[str, Role] = {}
    for name, parameter in model.named_parameters():
        if id(parameter) in tables:
            roles[name] = "embedding"
        elif parameter.dim() < 2:
            roles[name] = "vector"
        else:
            roles[name] = "head" if _HEAD.search(name) else "matrix"
    return roles
