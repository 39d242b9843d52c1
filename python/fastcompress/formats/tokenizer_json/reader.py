"""The parts of a ``tokenizer.json``, read and checked."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastcompress.errors import FormatError
from fastcompress.formats.byte_level import from_alphabet
from fastcompress.formats.tokenizer_json.fields import (
    MODEL_SETTINGS,
    OTHER_PARTS,
    field,
    refuse,
    shown,
    without_surrogates,
)
from fastcompress.formats.tokenizer_json.model import check_model, read_merges, read_vocabulary
from fastcompress.formats.tokenizer_json.steps import read_pre_tokenizers, reads_nfc


@dataclass(frozen=True)
class AddedToken:
    """A token that is searched for in a text before the text is split into pretokens.

    >>> AddedToken("<|end|>", 50256)
    AddedToken(text='<|end|>', id=50256, special=True, normalized=False, lstrip=False, rstrip=False, single_word=False)

    Attributes:
        text: The text to search for.
        id: The id of the token.
        special: Whether it is a token only where the caller allows it; other added tokens always are.
        normalized: Whether to search for its normalized form in the normalized text, and not in the text as it is.
        lstrip: Whether the token includes the white space before it.
        rstrip: Whether the token includes the white space after it.
        single_word: Whether it is ordinary text next to a word character.
    """

    text: str
    id: int
    special: bool = True
    normalized: bool = False
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False


@dataclass(frozen=True)
class TokenizerJson:
    """The contents of a ``tokenizer.json``.

    Attributes:
        tokens: The bytes of each id, for the entries of the vocabulary that are written in the byte-level alphabet.
        other_tokens: The text of each id, for the other entries. Text encodes to them only if they are added tokens.
        merges: (left, right, result) ids in rank order; each pair occurs once.
        added_tokens: The added tokens in file order, with the ids that `tokenizers` gives them.
        pre_tokenizers: The pre-tokenizers in order, as objects of the file reduced to the keys that matter. The last
            one is ByteLevel.
        nfc: Whether the normalizer is NFC.
        ignore_merges: Whether a pretoken that is in the vocabulary becomes that token, even if no merges make it.
        rest: The OTHER_PARTS as in the file, and under "model" the settings of the model.
    """

    tokens: dict[int, bytes]
    other_tokens: dict[int, str]
    merges: list[tuple[int, int, int]]
    added_tokens: list[AddedToken]
    pre_tokenizers: list[dict[str, Any]]
    nfc: bool
    ignore_merges: bool
    rest: dict[str, Any]


def read_tokenizer_json(source: str | os.PathLike[str] | bytes | Mapping[str, Any]) -> TokenizerJson:
    """Read a ``tokenizer.json``, given as a path, its bytes, or its parsed contents.

    Raises FormatError, which names the part, if the contents are malformed or not supported. O(file).
    """
    name = "tokenizer.json" if isinstance(source, bytes | Mapping) else os.fspath(source)
    try:
        if isinstance(source, Mapping):
            document: Any = dict(source)
        else:
            document = json.loads(source if isinstance(source, bytes) else Path(source).read_bytes())
        return _read(document)
    except FormatError as error:
        raise FormatError(f"{name}: {error}") from None
    except RecursionError:
        raise FormatError(f"{name}: nested too deeply; it is not a tokenizer.json") from None
    except ValueError as error:  # from json.loads, if the bytes are not JSON or not UTF-8
        raise FormatError(f"{name}: not JSON ({error}); is this a tokenizer.json?") from None


def _read(document: Any) -> TokenizerJson:
    if not isinstance(document, dict):
        refuse("not a JSON object; is this a tokenizer.json?")
    version = document.get("version", "1.0")
    if version != "1.0":
        refuse(f"the format version is {version!r}; it must be '1.0'")
    model = field(document, "model", dict, "the file")
    check_model(model)
    pre_tokenizers = read_pre_tokenizers(document.get("pre_tokenizer"), model)
    ids = read_vocabulary(model)
    tokens: dict[int, bytes] = {}
    other_tokens: dict[int, str] = {}
    for text, token_id in ids.items():
        spelled = from_alphabet(text)
        if spelled is None:
            other_tokens[token_id] = without_surrogates(text, "a token")
        elif spelled:
            tokens[token_id] = spelled
    settings = {key: value for key, value in model.items() if key not in ("vocab", "merges", "ignore_merges")}
    return TokenizerJson(
        tokens=tokens,
        other_tokens=other_tokens,
        merges=read_merges(model, ids, tokens),
        added_tokens=_read_added_tokens(document, ids),
        pre_tokenizers=pre_tokenizers,
        nfc=reads_nfc(document.get("normalizer")),
        ignore_merges=field(model, "ignore_merges", bool, "the model", False),
        rest={key: document.get(key) for key in OTHER_PARTS} | {"model": {**MODEL_SETTINGS, **settings}},
    )


def _read_added_tokens(document: dict[str, Any], ids: dict[str, int]) -> list[AddedToken]:
    """Return the added tokens with the ids that `tokenizers` gives them, whatever ids the file states.

    A token whose text is in the vocabulary gets the id from there; the others are numbered from the vocabulary's size
    on. Of two tokens with the same id, the later one counts.
    """
    by_text: dict[str, int] = {}
    by_id: dict[int, AddedToken] = {}
    next_id = len(ids)
    for number, entry in enumerate(field(document, "added_tokens", list, "the file", [])):
        where = f"added token {number}"
        if not isinstance(entry, dict):
            refuse(f"{where} is {shown(entry)}; it must be an object")
        text = field(entry, "content", str, where)
        if not text:
            continue
        token_id = by_text.get(text, ids.get(text))
        if token_id is None:
            token_id, next_id = next_id, next_id + 1
        stated = field(entry, "id", int, where)
        if stated != token_id:
            warnings.warn(
                f"added token {text!r} says its id is {stated}; `tokenizers` gives it {token_id}, which is used here",
                stacklevel=5,  # the caller of BPE.from_huggingface
            )
        special = field(entry, "special", bool, where, False)
        flags = {key: field(entry, key, bool, where, False) for key in ("lstrip", "rstrip", "single_word")}
        normalized = field(entry, "normalized", bool, where, not special)
        by_text[text] = token_id
        by_id[token_id] = AddedToken(text, token_id, special=special, normalized=normalized, **flags)
    return list(by_id.values())
