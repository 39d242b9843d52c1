"""Reading a whole ``tokenizer.json``: what it says, part by part."""

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
    """A token that is sought in the text before it is cut into pretokens.

    Attributes:
        text: what is sought.
        id: what it becomes.
        special: it is a token only where the caller allows it; others always are.
        normalized: it is sought in the normalized text (by its own normalized form), not in the text as it is.
        lstrip, rstrip: it takes the white space before it, after it.
        single_word: it is ordinary text where a word character stands beside it.
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
    """What a ``tokenizer.json`` says.

    Attributes:
        tokens: id to bytes, of every entry of the model's vocabulary that is spelled in the byte-level alphabet.
        other_tokens: id to text, of the other entries; no text encodes to them unless they are added tokens.
        merges: (left, right, result) ids in rank order, no pair twice.
        added_tokens: with the ids that `tokenizers` gives them, in file order.
        pre_tokenizers: the steps in order, the last one ByteLevel: the file's objects, checked, without needless keys.
        nfc: the normalizer is NFC.
        ignore_merges: a pretoken that is in the vocabulary is that token, whether or not merges make it.
        rest: OTHER_PARTS as they stand, and under "model" the settings of the model.
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
    """Reads a file, its bytes, or its parsed contents.

    Raises FormatError for what is malformed or not supported, naming it and saying what would do. O(file).
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
        raise FormatError(f"{name}: nested too deeply for a tokenizer.json") from None
    except ValueError as error:  # of json, for bytes that are not JSON or not UTF-8
        raise FormatError(f"{name}: not JSON ({error}); is this a tokenizer.json?") from None


def _read(document: Any) -> TokenizerJson:
    if not isinstance(document, dict):
        refuse("not a JSON object; is this a tokenizer.json?")
    version = document.get("version", "1.0")
    if version != "1.0":
        refuse(f"format version {version!r}; fastcompress reads version '1.0'")
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
    """The added tokens with the ids that `tokenizers` gives them, whatever the file says.

    That is: the id the text has in the vocabulary, else the next one past the vocabulary's size. Of two with one id the
    later one counts.
    """
    by_text: dict[str, int] = {}
    by_id: dict[int, AddedToken] = {}
    next_id = len(ids)
    for number, entry in enumerate(field(document, "added_tokens", list, "the file", [])):
        where = f"added token {number}"
        if not isinstance(entry, dict):
            refuse(f"{where} is {shown(entry)}; expected an object")
        text = field(entry, "content", str, where)
        if not text:
            continue
        token_id = by_text.get(text, ids.get(text))
        if token_id is None:
            token_id, next_id = next_id, next_id + 1
        stated = field(entry, "id", int, where)
        if stated != token_id:
            warnings.warn(
                f"added token {text!r} says its id is {stated}; `tokenizers` gives it {token_id}, and so it is here",
                stacklevel=5,  # the caller of BPE.from_huggingface
            )
        special = field(entry, "special", bool, where, False)
        flags = {key: field(entry, key, bool, where, False) for key in ("lstrip", "rstrip", "single_word")}
        normalized = field(entry, "normalized", bool, where, not special)
        by_text[text] = token_id
        by_id[token_id] = AddedToken(text, token_id, special=special, normalized=normalized, **flags)
    return list(by_id.values())
