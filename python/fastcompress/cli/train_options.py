"""The options of `fastcompress train`, made from the settings themselves: names, types, defaults and help."""

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
                           help="Settings that belong together; see docs/training.md.  [default: modern]"),
    "depth": click.option("--depth", type=int, help="Layers, from which heads and width follow, 64 a layer."),
    "num_layers": click.option("--layers", "num_layers", type=int, help="Transformer blocks.  [default: 6]"),
    "num_heads": click.option("--heads", "num_heads", type=int, help="Attention heads.  [default: 6]"),
    "width": click.option("--width", type=int, help="Size of the residual stream.  [default: 384]"),
    "context_length": click.option("--context", "context_length", type=int,
                                   help="Tokens the model sees.  [default: 256]"),
    "dropout": click.option("--dropout", type=float, help="[default: 0.2 for workshop, else 0]"),
}  # fmt: skip
_FLAGS = {"num_threads": "--threads"}  # where an option has another name than its setting
_HELP = {
    "steps": "Train for this many steps.",
    "tokens": "Train for as many steps as fit into this many tokens.",
    "flops": "Train for as many steps as fit into this many floating-point operations.",
    "seconds": "Train for this long on the clock. Evaluations count; they are held to a quarter of it, apart from the "
    "first and the last one.",
    "schedule": "Of the learning rate.",
    "optimizer": "What updates the weights.",
}
Command = TypeVar("Command", bound=Callable[..., Any])
tracker_option = click.option("--track", "trackers", multiple=True, type=click.Choice(TRACKERS),
                              help="Show the figures there, too, if it is installed; may be given twice.")  # fmt: skip


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
    """What help says of a default: the first kind's, and those of other kinds of the section that have another one."""
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
    """The class that has a setting, and its field."""
    section, _, own_name = setting_names()[name].rpartition(".")
    owners = list(SECTIONS[section].values()) if section else [TrainConfig]
    for owner in owners:
        for field in dataclasses.fields(owner):
            if field.name == own_name:
                return owner, field
    raise AssertionError(f"{name} is a setting of no class")


def _help(owner: type[Any], name: str) -> str:
    """The first sentence about a setting in the docstring of its class."""
    documentation = owner.__doc__ or ""
    found = re.search(rf"^\s+(?:\w+, )*{name}(?:, \w+)*: (.*?(?:\.(?=\s)|;|\n\s*\w+(?:, \w+)*: |\Z))", documentation,
                      re.MULTILINE | re.DOTALL)  # fmt: skip
    sentence = " ".join(found[1].split()) if found else ""
    return sentence.replace("``", "").rstrip(";.") + "." if sentence else ""
