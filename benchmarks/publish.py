"""What is published: the results files behind the tables and the picture, and the command that measures each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

from engines import ENGINES, TRAINERS


@dataclass(frozen=True)
class Measurement:
    """One results file.

    Attributes:
        name: What the file's name says after the date, which is also the name of its table on the page.
        suite: The suite that measures it.
        options: The options that it is published with.
        neighbour: Whether it is measured beside a process that streams through 64 MB.
    """

    name: str
    suite: str
    options: tuple[str, ...] = ()
    neighbour: bool = False

    def __str__(self) -> str:
        return self.name + "-neighbour" * self.neighbour


LISTS = ("--outputs", "list", "--forms", "documents", "--vocabularies", "cl100k", "--threads", "1")
PUBLISHED = (
    Measurement("encode", "encode", ("--threads", "1")),
    Measurement("encode-lists", "encode", LISTS),
    Measurement("encode-2-threads", "encode", ("--threads", "2")),
    Measurement("encode", "encode", ("--threads", "1", "--forms", "documents"), neighbour=True),
    Measurement("encode-lists", "encode", LISTS, neighbour=True),
    Measurement("worst", "worst"),
    Measurement("decode", "decode"),
    Measurement("small", "small"),
    Measurement("load", "load"),
    Measurement("train", "train", ("--threads", "1")),
    Measurement("lz77", "lz77"),
    Measurement("lz77", "lz77", neighbour=True),
    Measurement("arithmetic", "arithmetic"),
    Measurement("codebook", "codebook"),
    Measurement("compressors", "compressors"),
)


def arguments(measurement: Measurement, command: click.Command, given: dict[str, Any]) -> list[str]:
    """Return the arguments of the command line that makes a measurement.

    Args:
        measurement: The results file wanted.
        command: The suite's command. Options that it does not have are left out.
        given: The options given to `publish`, by parameter name.
    """
    words = [measurement.suite, *measurement.options]
    if measurement.name != measurement.suite:
        words += ["--name", measurement.name]
    if measurement.neighbour:
        words.append("--neighbour")
    known = TRAINERS if measurement.suite == "train" else ENGINES
    for parameter in command.params:
        value = given.get(str(parameter.name))
        if parameter.name == "engines" and value:
            value = [name for name in value if name in known]
        if value is not None and value is not False:
            words += flag(parameter.opts[0], value)
    return words


def flag(option: str, value: Any) -> Iterator[str]:
    """Yield an option and its value as words of a command line."""
    yield option
    if value is not True:
        yield ",".join(value) if isinstance(value, list) else str(value)


def chosen(names: tuple[str, ...]) -> list[Measurement]:
    """Return the measurements of these names, in the order of `PUBLISHED`; all of them without names."""
    return [measurement for measurement in PUBLISHED if not names or str(measurement) in names]
