"""A reader of ``tokenizer.json``, the file format of Hugging Face's `tokenizers`, for byte-level BPE models.

Such models are GPT-2, GPT-NeoX, Llama 3, Qwen, DeepSeek, gpt-oss, ModernBERT and others: BPE over the byte-level
alphabet, with a ``ByteLevel`` pre-tokenizer, splits before it if any, and NFC as the only possible normalizer.
Unsupported parts raise a FormatError that names them. The parts that do not affect ids (post-processor, decoder,
truncation, padding) are kept in `TokenizerJson.rest`.
"""

from __future__ import annotations

from fastcompress.formats.tokenizer_json.fields import MODEL_SETTINGS, OTHER_PARTS
from fastcompress.formats.tokenizer_json.reader import AddedToken, TokenizerJson, read_tokenizer_json
from fastcompress.formats.tokenizer_json.steps import BEHAVIORS

__all__ = ["BEHAVIORS", "MODEL_SETTINGS", "OTHER_PARTS", "AddedToken", "TokenizerJson", "read_tokenizer_json"]
