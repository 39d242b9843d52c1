"""Reading ``tokenizer.json``, the file of Hugging Face's `tokenizers`, for byte-level BPE models.

GPT-2, GPT-NeoX, Llama 3, Qwen, DeepSeek, gpt-oss, ModernBERT and their like: a BPE model over the byte-level alphabet,
a ``ByteLevel`` pre-tokenizer, perhaps with splits before it, and at most NFC for a normalizer. Everything else is
refused by name. What decides no id (post-processor, decoder, truncation, padding ...) is kept in `TokenizerJson.rest`.
"""

from __future__ import annotations

from fastcompress.formats.tokenizer_json.fields import MODEL_SETTINGS, OTHER_PARTS
from fastcompress.formats.tokenizer_json.reader import AddedToken, TokenizerJson, read_tokenizer_json
from fastcompress.formats.tokenizer_json.steps import BEHAVIORS

__all__ = ["BEHAVIORS", "MODEL_SETTINGS", "OTHER_PARTS", "AddedToken", "TokenizerJson", "read_tokenizer_json"]
