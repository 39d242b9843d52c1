"""The options of `fastcompress train`, generated from the settings: names, types, defaults and help."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import click

from fastcompress.models.presets import PRESETS
from fastcompress.training.config import SECTIONS, TrainConfig, setting_names
from fastcompress.training.trackers import TRACKERS

# The options of the common model's settings; others are set with --set model.NAME=VALUE.
MODEL_OPTIONS = {
    "preset": click.option("--preset", type=click.Choice(list(PRESETS)),
                           help="Named settings of a model; see docs/training.md.  [default: modern]"),
    "depth": click.option("--depth", type=int, help="Number of layers and of heads; the width is 64 times it."),
    "num_layers": click.option("--layers", "num_layers", type=int,
                               help="Transformer blocks.  [default: the preset's, 6 for modern]"),
    "num_heads": click.option("--heads", "num_heads", type=int,
                              help="Attention heads.  [default: the preset's, 6 for modern]"),
    "width": click.option("--width", type=int,
                          help="Size of the residual stream.  [default: the preset's, 384 for modern]"),
    "context_length": click.option("--context", "context_length", type=int,
                                   help="Tokens that the model sees.  [default: the preset's, 256 for modern]"),
    "dropout": click.option("--dropout", type=float,
                            help="Dropout probability.  [default: 0.2 for workshop, else 0]"),
}  # fmt: skip
_FLAGS = {"num_threads": "--threads"}  # where an option has another name than its setting
_HELP = {
    "steps": "Train for this many steps.",
    "tokens": "Train for as many steps as fit into this many tokens.",
    "flops": "Train for as many steps as fit into this many floating-point operations.",
    "seconds": "Train for this much wall time. Evaluations count; they get at most a quarter of it, apart from the "
    "first and the last one.",
    "schedule": "Schedule of the learning rate.",
    "optimizer": "Optimizer of the weights.",
}
Command = TypeVar("Command", bound=Callable[..., Any])
tracker_option = click.option("--track", "trackers", multiple=True, type=click.Choice(TRACKERS),
                              help="Also send the figures there, if it is installed; may be given twice.")  # fmt: skip


def training_options(command: Command) -> Command:
    """Give a command an option for each setting of a model and of training."""
    for option in [*MODEL_OPTIONS.values(), *map(_option, setting_names())][::-1]:
        command = option(command)
    return command


def _option(name: str) -> Callable[[Command], Command]:
    owner, field = _field_of(name)
    flag = _FLAGS.get(name, "--" + name.replace("_", "-"))
    annotation = typing.get_type_hints(owner)[field.name]
    is_choice = typing.get_origin(annotation) is Literal
    kinds = [kind for kind in typing.get_args(annotation) if kind is not type(None)] or [annotation]
    if name in SECTIONS:
        kinds = list(SECTIONS[name])
    default = _default(name, field)
    text = _HELP.get(name) or _help(owner, field.name)
    if kinds == [bool]:
        return click.option(f"{flag}/--no-{flag[2:]}", name, default=None, help=text)
    value_type = click.Choice(list(map(str, kinds))) if is_choice else kinds[0]
    return click.option(flag, name, type=value_type, help=text + default)


def _default(name: str, field: dataclasses.Field[Any]) -> str:
    """Return the text on a default: the first kind's, and those of other kinds of the section that differ from it."""
    section, _, own_name = setting_names()[name].rpartition(".")
    others = {
        kind: other.default
        for kind, owner in (SECTIONS[section].items() if section and own_name != "kind" else ())
        for other in dataclasses.fields(owner)
        if other.name == own_name and other.default != field.default
    }
    words = [str(field.default)] if field.default is not None else []
    words += [f"{'none' if default is None else default} for {kind}" for kind, default in others.items()]
    return f"  [default: {', '.join(words)}]" if words else ""


def _field_of(name: str) -> tuple[type[Any], dataclasses.Field[Any]]:
    """Return the class that has a setting, and its field."""
    section, _, own_name = setting_names()[name].rpartition(".")
    owners = list(SECTIONS[section].values()) if section else [TrainConfig]
    for owner in owners:
        for field in dataclasses.fields(owner):
            if field.name == own_name:
                return owner, field
    raise AssertionError(f"{name} is a setting of no class")


def _help(owner: type[Any], name: str) -> str:
    """Return the first sentence about a setting in the docstring of its class."""
    documentation = owner.__doc__ or ""
    found = re.search(rf"^\s+(?:\w+, )*{name}(?:, \w+)*: (.*?(?:\.(?=\s)|;|\n\s*\w+(?:, \w+)*: |\Z))", documentation,
                      re.MULTILINE | re.DOTALL)  # fmt: skip
    sentence = " ".join(found[1].split()) if found else ""
    return sentence.replace("``", "").rstrip(";.") + "." if sentence else ""
