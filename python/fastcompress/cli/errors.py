"""One line for every error, in the terms of the command that failed: flags instead of Python parameters."""

from __future__ import annotations

import re

import click

from fastcompress.cli.streams import ReaderGoneError
from fastcompress.errors import FastcompressError

BROKEN_PIPE_CODE = 141  # 128 + SIGPIPE, as shells report a program that lost its reader
_TRAIN_PACKAGES = {"torch", "safetensors", "tqdm"}


def describe(error: Exception, command: click.Command | None) -> tuple[str, int]:
    """Return a one-line description of `error` for users, and the exit code."""
    message, code = _message(error, command)
    if isinstance(error, FastcompressError) and command is not None:
        message = in_flags(message, command)
    return " ".join(message.split()), code


def _message(error: Exception, command: click.Command | None) -> tuple[str, int]:
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        hint = f"; see {context.command_path} --help" if context is not None else ""
        return error.format_message().rstrip(".") + hint, error.exit_code
    if isinstance(error, ReaderGoneError):
        return str(error), BROKEN_PIPE_CODE
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in _TRAIN_PACKAGES:
        return f"this needs {error.name}, which is not installed: pip install 'fastcompress[train]'", 1
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return f"out of memory; use {_less_memory(command)}", 1
    if isinstance(error, FastcompressError) or (isinstance(error, OSError) and error.strerror is None):
        return str(error), 1
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror), 1
    return f"{type(error).__name__}: {error}; this is a bug: please report it with --traceback's output", 1


def in_flags(message: str, command: click.Command) -> str:
    """Return a message of the library in which the names of Python parameters are replaced by flags of `command`.

    Only names that cannot be mistaken for a common word or a part of a path are replaced: those with an underscore,
    those before "=" and a value, and the one that a message begins with, as in "split is 'a b'; it must be ...".
    """
    message, known, names = message.partition("; known: ")  # a list of settings
    for option in command.params:
        if not isinstance(option, click.Option) or option.name is None:
            continue
        name, flag = option.name, option.opts[0]
        pattern = rf"(?<![\w./'\"-]){name}=(True|\.\.\.)?(?=(\S?))"
        message = re.sub(pattern, lambda match, flag=flag: _flag(match, flag), message)  # type: ignore[misc]
        message = re.sub(rf"(?<![\w./'\"-]){name}(?=: ')", flag, message)
        message = re.sub(rf"^{name}(?= is .*; it must )", flag, message)
        if "_" in name:
            message = re.sub(rf"(?<![\w./'\"-]){name}(?![\w/'\"-]|\.\w)", flag, message)
    return message + known + names


def _flag(match: re.Match[str], flag: str) -> str:
    """Return the flag for a match: alone for `overwrite=True`, with a space after it for `pattern=` and a value."""
    return flag if match[1] or not match[2] else f"{flag} "


def _less_memory(command: click.Command | None) -> str:
    names = {option.name for option in command.params} if command is not None else set()
    if "micro_batch_size" in names:
        return "a smaller --batch-size or --micro-batch-size, or a smaller corpus"
    ways = [flag for name, flag in (("batch_size", "a smaller --batch-size"), ("threads", "fewer --threads"),
                                    ("max_bytes", "a smaller --max-bytes")) if name in names]  # fmt: skip
    return " or ".join([*ways, "a smaller input"])
