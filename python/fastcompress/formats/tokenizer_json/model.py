"""The model of a ``tokenizer.json``: its settings, vocabulary and merges."""

from __future__ import annotations

from typing import Any

from fastcompress.formats.rank_file import MAX_IDS
from fastcompress.formats.tokenizer_json.fields import ELSEWHERE, READS, field, refuse, shown


def check_model(model: dict[str, Any]) -> None:
    """Raise FormatError unless the model is BPE with settings that byte-level models have."""
    kind = model.get("type", _kind_by_fields(model))
    if kind != "BPE":
        refuse(f"the model is {shown(kind)}; {READS}; {ELSEWHERE}")
    if model.get("dropout"):
        refuse(
            f"the model's dropout is {shown(model['dropout'])}, so its ids are random; set it to null for "
            "exact ids, and ask for dropout when encoding"
        )
    for key, users in (("continuing_subword_prefix", "BERT"), ("end_of_word_suffix", "CLIP")):
        if model.get(key):
            refuse(f"the model has the {key} {shown(model[key])} (as {users} does); {READS}; {ELSEWHERE}")


def _kind_by_fields(model: dict[str, Any]) -> str:
    """Return the kind of a model that does not state it, as in early files."""
    fields = {"merges": "BPE", "max_input_chars_per_word": "WordPiece", "unk_id": "Unigram"}
    return next((kind for key, kind in fields.items() if key in model), "WordLevel or of an unknown kind")


def read_vocabulary(model: dict[str, Any]) -> dict[str, int]:
    """Return the id of each token of the model, as text. Raises FormatError if an id is invalid or occurs twice."""
    vocabulary: dict[str, int] = field(model, "vocab", dict, "the model")
    for text, token_id in vocabulary.items():
        if type(token_id) is not int or not 0 <= token_id < MAX_IDS or not isinstance(text, str):
            refuse(f"the id of the token {shown(text)} is {shown(token_id)}; it must be an integer in [0, {MAX_IDS})")
    if len(set(vocabulary.values())) < len(vocabulary):
        seen: dict[int, str] = {}
        for text, token_id in vocabulary.items():
            if seen.setdefault(token_id, text) != text:
                refuse(f"the tokens {shown(seen[token_id])} and {shown(text)} have the same id {token_id}")
    return vocabulary


def read_merges(model: dict[str, Any], ids: dict[str, int], tokens: dict[int, bytes]) -> list[tuple[int, int, int]]:
    """Return the merges in rank order.

    Of a pair that is listed twice, the later entry counts, as in `tokenizers`.

    Args:
        model: The model of the file.
        ids: The id of each token, as text.
        tokens: The bytes of each id that has a byte-level token.

    Returns:
        (left, right, result) ids.

    Raises:
        FormatError: An entry is malformed, or one of its tokens is not in the vocabulary.
    """
    merges: dict[tuple[int, int], int] = {}
    for number, entry in enumerate(field(model, "merges", list, "the model")):
        if isinstance(entry, str):
            if entry.startswith("#version"):
                continue
            pair = entry.split(" ")
        else:
            pair = entry
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
            refuse(f"merge {number} is {shown(entry)}; it must be two tokens, such as 'a b' or ['a', 'b']")
        left, right = pair
        for text in (left, right, left + right):
            if ids.get(text) not in tokens:
                refuse(f"merge {number}, {shown(entry)}: {shown(text)} is not a byte-level token of the vocabulary")
        key = ids[left], ids[right]
        merges.pop(key, None)
        merges[key] = ids[left + right]
    return [(left, right, result) for (left, right), result in merges.items()]
