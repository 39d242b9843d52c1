"""Reading ``tokenizer.json``, the file of Hugging Face's `tokenizers`, for byte-level BPE models.

GPT-2, GPT-NeoX, Llama 3, Qwen, DeepSeek, gpt-oss, ModernBERT and their like: a BPE model over the byte-level alphabet,
a ``ByteLevel`` pre-tokenizer, perhaps with splits before it, and at most NFC for a normalizer. Everything else is
refused by name. What decides no id (post-processor, decoder, truncation, padding ...) is kept in `TokenizerJson.rest`.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from fastcompress.errors import FormatError
from fastcompress.formats.byte_level import from_alphabet
from fastcompress.formats.rank_file import MAX_IDS

BEHAVIORS = ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")
"""What a Split may do with its matches."""

OTHER_PARTS = ("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder")
"""The parts of a file besides the model, the added tokens and the version."""

MODEL_SETTINGS: Mapping[str, Any] = MappingProxyType(
    {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
    }
)
"""The settings of a byte-level BPE model, as they are where a file does not say."""

_READS = "fastcompress reads byte-level BPE (GPT-2, Llama 3, Qwen, DeepSeek, gpt-oss ...)"
_ELSEWHERE = "for this one use the `tokenizers` package"
_REQUIRED = object()


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
        _refuse("not a JSON object; is this a tokenizer.json?")
    version = document.get("version", "1.0")
    if version != "1.0":
        _refuse(f"format version {version!r}; fastcompress reads version '1.0'")
    model = _field(document, "model", dict, "the file")
    _check_model(model)
    pre_tokenizers = _read_pre_tokenizers(document.get("pre_tokenizer"), model)
    ids = _read_vocabulary(model)
    tokens: dict[int, bytes] = {}
    other_tokens: dict[int, str] = {}
    for text, token_id in ids.items():
        spelled = from_alphabet(text)
        if spelled is None:
            other_tokens[token_id] = _without_surrogates(text, "a token")
        elif spelled:
            tokens[token_id] = spelled
    settings = {key: value for key, value in model.items() if key not in ("vocab", "merges", "ignore_merges")}
    return TokenizerJson(
        tokens=tokens,
        other_tokens=other_tokens,
        merges=_read_merges(model, ids, tokens),
        added_tokens=_read_added_tokens(document, ids),
        pre_tokenizers=pre_tokenizers,
        nfc=_reads_nfc(document.get("normalizer")),
        ignore_merges=_field(model, "ignore_merges", bool, "the model", False),
        rest={key: document.get(key) for key in OTHER_PARTS} | {"model": {**MODEL_SETTINGS, **settings}},
    )


def _refuse(message: str) -> NoReturn:
    raise FormatError(message)


def _field(holder: Mapping[str, Any], key: str, kind: type, where: str, default: Any = _REQUIRED) -> Any:
    """holder[key], which must be of a kind; the default if it is missing or null."""
    value = holder.get(key)
    if value is None and default is not _REQUIRED:
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        found = "is missing" if key not in holder else f"is {_shown(value)}"
        _refuse(f"{where}: {key!r} {found}, expected {kind.__name__}")
    return _without_surrogates(str(value), key) if kind is str else value


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _without_surrogates(text: str, what: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        _refuse(f"{what} {_shown(text)} holds half a surrogate pair, which no text can")
    return text


# --- The model -------------------------------------------------------------------------------------------


def _check_model(model: dict[str, Any]) -> None:
    """Refuses every model but BPE, and every BPE with settings that byte-level ones lack."""
    kind = model.get("type", _kind_by_fields(model))
    if kind != "BPE":
        _refuse(f"the model is {_shown(kind)}; {_READS}: {_ELSEWHERE}")
    if model.get("dropout"):
        _refuse(
            f"the model's dropout is {_shown(model['dropout'])}, so its ids are random; set it to null for "
            "exact ids, and ask for dropout when encoding"
        )
    for key, users in (("continuing_subword_prefix", "BERT"), ("end_of_word_suffix", "CLIP")):
        if model.get(key):
            _refuse(f"the model has the {key} {_shown(model[key])} (as {users} does); {_READS}: {_ELSEWHERE}")


def _kind_by_fields(model: dict[str, Any]) -> str:
    """The kind of a model that does not say it, as in early files."""
    fields = {"merges": "BPE", "max_input_chars_per_word": "WordPiece", "unk_id": "Unigram"}
    return next((kind for field, kind in fields.items() if field in model), "WordLevel or of an unknown kind")


def _read_vocabulary(model: dict[str, Any]) -> dict[str, int]:
    vocabulary: dict[str, int] = _field(model, "vocab", dict, "the model")
    for text, token_id in vocabulary.items():
        if type(token_id) is not int or not 0 <= token_id < MAX_IDS or not isinstance(text, str):
            _refuse(f"the vocabulary gives {_shown(text)} the id {_shown(token_id)}; ids are in [0, {MAX_IDS})")
    if len(set(vocabulary.values())) < len(vocabulary):
        seen: dict[int, str] = {}
        for text, token_id in vocabulary.items():
            if seen.setdefault(token_id, text) != text:
                _refuse(f"the tokens {_shown(seen[token_id])} and {_shown(text)} have the same id {token_id}")
    return vocabulary


def _read_merges(model: dict[str, Any], ids: dict[str, int], tokens: dict[int, bytes]) -> list[tuple[int, int, int]]:
    """The merges in rank order; of a pair that stands twice, the later one, as in `tokenizers`."""
    merges: dict[tuple[int, int], int] = {}
    for number, entry in enumerate(_field(model, "merges", list, "the model")):
        if isinstance(entry, str):
            if entry.startswith("#version"):
                continue
            pair = entry.split(" ")
        else:
            pair = entry
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
            _refuse(f"merge {number} is {_shown(entry)}; expected two tokens, such as 'a b' or ['a', 'b']")
        left, right = pair
        for text in (left, right, left + right):
            if ids.get(text) not in tokens:
                _refuse(f"merge {number}, {_shown(entry)}: {_shown(text)} is no byte-level token of the vocabulary")
        key = ids[left], ids[right]
        merges.pop(key, None)
        merges[key] = ids[left + right]
    return [(left, right, result) for (left, right), result in merges.items()]


# --- Added tokens ----------------------------------------------------------------------------------------


def _read_added_tokens(document: dict[str, Any], ids: dict[str, int]) -> list[AddedToken]:
    """The added tokens with the ids that `tokenizers` gives them, whatever the file says.

    That is: the id the text has in the vocabulary, else the next one past the vocabulary's size. Of two with one id the
    later one counts.
    """
    by_text: dict[str, int] = {}
    by_id: dict[int, AddedToken] = {}
    next_id = len(ids)
    for number, entry in enumerate(_field(document, "added_tokens", list, "the file", [])):
        where = f"added token {number}"
        if not isinstance(entry, dict):
            _refuse(f"{where} is {_shown(entry)}; expected an object")
        text = _field(entry, "content", str, where)
        if not text:
            continue
        token_id = by_text.get(text, ids.get(text))
        if token_id is None:
            token_id, next_id = next_id, next_id + 1
        stated = _field(entry, "id", int, where)
        if stated != token_id:
            warnings.warn(
                f"added token {text!r} says its id is {stated}; `tokenizers` gives it {token_id}, and so it is here",
                stacklevel=5,  # the caller of BPE.from_huggingface
            )
        special = _field(entry, "special", bool, where, False)
        flags = {key: _field(entry, key, bool, where, False) for key in ("lstrip", "rstrip", "single_word")}
        normalized = _field(entry, "normalized", bool, where, not special)
        by_text[text] = token_id
        by_id[token_id] = AddedToken(text, token_id, special=special, normalized=normalized, **flags)
    return list(by_id.values())


# --- Normalizer and pre-tokenizers -----------------------------------------------------------------------


def _flat(step: Any, key: str, what: str) -> list[dict[str, Any]]:
    """The steps of a normalizer or pre-tokenizer, with sequences laid out."""
    if not isinstance(step, dict):
        _refuse(f"the {what} is {_shown(step)}; expected an object")
    if step.get("type") != "Sequence":
        return [step]
    return [flat for part in _field(step, key, list, f"the {what}") for flat in _flat(part, key, what)]


def _reads_nfc(normalizer: Any) -> bool:
    steps = [] if normalizer is None else _flat(normalizer, "normalizers", "normalizer")
    for step in steps:
        if step.get("type") != "NFC":
            _refuse(f"the normalizer {_shown(step.get('type'))} is not supported, only NFC is: {_ELSEWHERE}")
    return bool(steps)


def _read_pre_tokenizers(pre_tokenizer: Any, model: dict[str, Any]) -> list[dict[str, Any]]:
    steps = [] if pre_tokenizer is None else _flat(pre_tokenizer, "pretokenizers", "pre-tokenizer")
    if not any(step.get("type") == "ByteLevel" for step in steps):
        kind = "with byte_fallback, as Llama 2 and Mistral have it" if model.get("byte_fallback") else "over characters"
        _refuse(f"a BPE model {kind}: no ByteLevel pre-tokenizer; {_READS}: {_ELSEWHERE}")
    steps = [_read_step(step) for step in steps]
    if [step["type"] for step in steps].index("ByteLevel") != len(steps) - 1:
        _refuse(f"a pre-tokenizer after ByteLevel is not supported: {_ELSEWHERE}")
    return steps


def _read_step(step: dict[str, Any]) -> dict[str, Any]:
    kind = step.get("type")
    if kind == "ByteLevel":
        return {
            "type": "ByteLevel",
            "add_prefix_space": _field(step, "add_prefix_space", bool, "ByteLevel"),
            "use_regex": _field(step, "use_regex", bool, "ByteLevel", True),
        }
    if kind == "Digits":
        return {"type": "Digits", "individual_digits": _field(step, "individual_digits", bool, "Digits")}
    if kind != "Split":
        _refuse(
            f"the pre-tokenizer {_shown(kind)} is not supported, only Split, Digits and ByteLevel are: {_ELSEWHERE}"
        )
    pattern = _field(step, "pattern", dict, "Split")
    if list(pattern) not in (["Regex"], ["String"]):
        _refuse(f"Split: the pattern {_shown(pattern)} is neither a Regex nor a String")
    [key] = pattern
    behavior = _field(step, "behavior", str, "Split")
    if behavior not in BEHAVIORS:
        _refuse(f"Split: the behavior {_shown(behavior)} is none of {', '.join(BEHAVIORS)}")
    return {
        "type": "Split",
        "pattern": {key: _field(pattern, key, str, "Split")},
        "behavior": behavior,
        "invert": _field(step, "invert", bool, "Split"),
    }
