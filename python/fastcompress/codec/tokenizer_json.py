"""Codecs as the tokenizer files of Hugging Face's `transformers`, with equal ids for every text, and back.

The end of a document and the marks of chats become special tokens of the file. There, unlike here, a text that looks
like one is read as one, unless the tokenizer is told to encode special tokens as text.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fastcompress.bpe import BPE
from fastcompress.codec.basic import BPECodec, ByteCodec
from fastcompress.codec.chat import MARKS, ChatCodec
from fastcompress.codec.protocol import Codec
from fastcompress.errors import ConfigError, FormatError

END_TEXTS = ("<|endoftext|>", "<|end_of_document|>")  # the first that the vocabulary does not have
_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@dataclass(frozen=True)
class TokenizerFiles:
    """What `transformers` reads of a tokenizer.

    Attributes:
        tokenizer: The contents of tokenizer.json.
        config: Those of tokenizer_config.json.
        end: The id of the end of a document, which stands before and after one.
        stop_ids: Ids at which generation stops.
    """

    tokenizer: dict[str, Any]
    config: dict[str, Any]
    end: int
    stop_ids: list[int]


def tokenizer_files(codec: Codec, context_length: int) -> TokenizerFiles:
    """Describe a codec of bytes or of a byte-pair vocabulary, with the marks of chats or without.

    Raises ConfigError for another codec, and for a vocabulary that has a mark as a token or that the file cannot hold.
    """
    base = codec.base if isinstance(codec, ChatCodec) else codec
    document = _document(_vocabulary_of(base))
    known = {*document["model"]["vocab"], *(token["content"] for token in document["added_tokens"])}
    end_text = next((text for text in END_TEXTS if text not in known), None)
    marks = [*MARKS] if isinstance(codec, ChatCodec) else []
    taken = [text for text in marks if text in known] or ([END_TEXTS[0]] if end_text is None else [])
    if taken:
        raise ConfigError(f"the vocabulary of {base.name} has a token {taken[0]!r} of its own; use one without it")
    _add_specials(document, base.vocab_size, [*marks, str(end_text)])
    end = codec.vocab_size
    document["post_processor"] = _begin_with(str(end_text), end, document["post_processor"])
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": end_text,
        "eos_token": end_text,
        "model_max_length": context_length,
        "clean_up_tokenization_spaces": False,
    }
    stop_ids = [end]
    if isinstance(codec, ChatCodec):
        config["chat_template"] = CHAT_TEMPLATE
        stop_ids.insert(0, codec.end_of_message)
    return TokenizerFiles(document, config, end, stop_ids)


def codec_of_tokenizer(document: Mapping[str, Any], end: int) -> Codec:
    """Return the codec of a tokenizer.json.

    Args:
        document: Its contents.
        end: The id that ends a document, which must be the last one.

    Raises:
        FormatError: It is no byte-level BPE, or its last id is not the end of a document.
    """
    added = {token["id"]: token["content"] for token in document.get("added_tokens", [])}
    last = max([*document["model"]["vocab"].values(), *added])
    if last != end or end not in added:
        raise FormatError(
            f"tokenizer.json: its last id is {last}, but a document ends with {end}; only files whose last id is an "
            "added token that ends a document can be imported"
        )
    has_marks = [added.get(end - len(MARKS) + number) for number in range(len(MARKS))] == [*MARKS]
    left_out = {end, *(range(end - len(MARKS), end) if has_marks else ())}
    model = dict(document["model"])
    model["vocab"] = {text: token_id for text, token_id in model["vocab"].items() if token_id not in left_out}
    rest = {**document, "model": model, "post_processor": _BYTE_LEVEL}
    rest["added_tokens"] = [token for token in document["added_tokens"] if token["id"] not in left_out]
    tokenizer = BPE.from_huggingface(rest)
    is_bytes = tokenizer.vocab_size == 256 and _spells_bytes(tokenizer)
    base: Codec = ByteCodec() if is_bytes else BPECodec(tokenizer)
    if base.vocab_size + len(left_out) != end + 1:
        raise FormatError(
            f"tokenizer.json: ids from {base.vocab_size} on are not used; only files without gaps are read"
        )
    return ChatCodec(base) if has_marks else base


def _vocabulary_of(codec: Codec) -> BPE:
    if isinstance(codec, ByteCodec):
        return BPE.train([b"a"], vocab_size=256, pattern="none")  # no merges
    if isinstance(codec, BPECodec):
        return codec.tokenizer
    raise ConfigError(
        f"codec {codec.name} cannot be written as tokenizer.json, which holds bytes and byte-pair vocabularies only"
    )


def _spells_bytes(tokenizer: BPE) -> bool:
    every = bytes(range(256))
    return bool(np.array_equal(tokenizer.encode_ordinary(every), np.frombuffer(every, np.uint8)))


def _document(tokenizer: BPE) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        tokenizer.to_huggingface(path)
        document: dict[str, Any] = json.loads(path.read_bytes())
    return document


def _add_specials(document: dict[str, Any], first_id: int, texts: list[str]) -> None:
    """Add special tokens with the ids from `first_id` on."""
    vocabulary, added = document["model"]["vocab"], document["added_tokens"]
    num_ids = len(vocabulary) + sum(token["content"] not in vocabulary for token in added)
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    for token_id, text in enumerate(texts, first_id):
        added.append({"id": token_id, "content": text, **flags, "special": True})
        if num_ids != first_id:  # ids are unused, and `tokenizers` would number an added token by how many there are
            vocabulary[text] = token_id


def _begin_with(text: str, token_id: int, post_processor: dict[str, Any] | None) -> dict[str, Any]:
    """The post-processor that puts a token before a text, after another one's work."""
    special = {"SpecialToken": {"id": text, "type_id": 0}}
    template = {
        "type": "TemplateProcessing",
        "single": [special, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [special, {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {text: {"id": text, "ids": [token_id], "tokens": [text]}},
    }
    keeps = post_processor is not None and post_processor.get("type") == "ByteLevel"
    return {"type": "Sequence", "processors": [post_processor if keeps else _BYTE_LEVEL, template]}
