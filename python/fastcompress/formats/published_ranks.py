"""The encodings that OpenAI has published, with their rank files, patterns and special tokens."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

_BASE_URL = "https://openaipublic.blob.core.windows.net/"


@dataclasses.dataclass(frozen=True)
class RankSource:
    """A published file that holds ranks: a rank file, or GPT-2's own list of merges (``vocab.bpe``)."""

    path: str
    sha256: str

    @property
    def url(self) -> str:
        """The address of the file; tiktoken's cache names the file by the SHA-1 of it."""
        return _BASE_URL + self.path

    @property
    def is_merge_list(self) -> bool:
        """Whether the file lists merges instead of ranks."""
        return self.path.endswith(".bpe")


@dataclasses.dataclass(frozen=True)
class PublishedEncoding:
    """A published encoding, without its ranks."""

    name: str
    pattern: str
    sources: tuple[RankSource, ...]
    """Files with the same ranks; the first one is downloaded if none is cached."""
    special_tokens: Mapping[str, int]


_R50K = RankSource("encodings/r50k_base.tiktoken", "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930")
_P50K = RankSource("encodings/p50k_base.tiktoken", "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069")
_CL100K = RankSource(
    "encodings/cl100k_base.tiktoken", "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
)
_O200K = RankSource("encodings/o200k_base.tiktoken", "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d")
# GPT-2 was published as merges, and later, as r50k_base, as ranks. Both give the same ids; for "gpt2", tiktoken
# caches the merges.
_GPT2_MERGES = RankSource(
    "gpt-2/encodings/main/vocab.bpe", "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5"
)

_END_OF_TEXT = "<|endoftext|>"
_END_OF_PROMPT = "<|endofprompt|>"
_FILL_IN_THE_MIDDLE = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")


def _numbered(texts: tuple[str, ...], first_id: int) -> dict[str, int]:
    return {text: first_id + number for number, text in enumerate(texts)}


def _harmony_tokens() -> dict[str, int]:
    """Return the special tokens of gpt-oss: the ten named ones, and reserved ones for the ids up to 201087."""
    named = {
        _END_OF_PROMPT: 200018,  # before <|reserved_200018|>, so that the id decodes to this
        "<|startoftext|>": 199998,
        _END_OF_TEXT: 199999,
        "<|return|>": 200002,
        "<|constrain|>": 200003,
        "<|channel|>": 200005,
        "<|start|>": 200006,
        "<|end|>": 200007,
        "<|message|>": 200008,
        "<|call|>": 200012,
    }
    taken = set(named.values()) - {200018}
    return named | {f"<|reserved_{i}|>": i for i in range(200000, 201088) if i not in taken}


_ENCODINGS = [
    PublishedEncoding("gpt2", "gpt2", (_R50K, _GPT2_MERGES), {_END_OF_TEXT: 50256}),
    PublishedEncoding("r50k_base", "gpt2", (_R50K, _GPT2_MERGES), {_END_OF_TEXT: 50256}),
    PublishedEncoding("p50k_base", "gpt2", (_P50K,), {_END_OF_TEXT: 50256}),
    PublishedEncoding("p50k_edit", "gpt2", (_P50K,), {_END_OF_TEXT: 50256, **_numbered(_FILL_IN_THE_MIDDLE, 50281)}),
    PublishedEncoding(
        "cl100k_base",
        "cl100k",
        (_CL100K,),
        {**_numbered((_END_OF_TEXT, *_FILL_IN_THE_MIDDLE), 100257), _END_OF_PROMPT: 100276},
    ),
    PublishedEncoding("o200k_base", "o200k", (_O200K,), {_END_OF_TEXT: 199999, _END_OF_PROMPT: 200018}),
    PublishedEncoding("o200k_harmony", "o200k", (_O200K,), _harmony_tokens()),
]

PUBLISHED_ENCODINGS: Mapping[str, PublishedEncoding] = MappingProxyType({e.name: e for e in _ENCODINGS})
"""The published encodings by name, in the order in which they appeared."""
