"""Models with their codecs as folders of Hugging Face's `transformers`, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from fastcompress._files import write_atomically
from fastcompress.codec import Codec
from fastcompress.codec.tokenizer_json import codec_of_tokenizer, tokenizer_files
from fastcompress.data.rows import num_symbols
from fastcompress.errors import ConfigError, DataError, FormatError, MismatchError, OutputError
from fastcompress.models.gpt import GPT
from fastcompress.models.huggingface import from_huggingface, to_huggingface
from fastcompress.models.protocol import LanguageModel

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"


def export_huggingface(model: LanguageModel, codec: Codec, folder: Path) -> None:
    """Write a folder that `transformers` loads, with equal logits and equal ids; files of these names are replaced.

    Args:
        model: A GPT with the architecture of Llama or Qwen3 (``models/huggingface.py``).
        codec: Its codec: bytes, or a byte-pair vocabulary, with the marks of chats or without.
        folder: Made if it is missing.

    Raises:
        ConfigError: Model or codec have no counterpart there; nothing is written.
        OutputError: The folder cannot be written.
    """
    if not isinstance(model, GPT):
        raise ConfigError(f"a model of kind {model.config.kind} has no counterpart in transformers; export a gpt")
    fields, tensors = to_huggingface(model)
    files = tokenizer_files(codec, model.context_length)
    ids = {"bos_token_id": files.end, "eos_token_id": files.stop_ids}
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({error.strerror}); choose another folder") from error
    write_atomically(Path(folder) / WEIGHTS, save(tensors, {"format": "pt"}))
    for name, content in (
        (TOKENIZER, files.tokenizer),
        ("tokenizer_config.json", files.config),
        ("generation_config.json", ids),
        (CONFIG, {**fields, **ids}),
    ):
        write_atomically(Path(folder) / name, json.dumps(content, ensure_ascii=False, indent=1).encode() + b"\n")


def import_huggingface(folder: Path) -> tuple[GPT, Codec]:
    """Read the model and the codec of a folder that ``export_huggingface`` wrote, or one like it.

    Raises:
        DataError: A file is missing.
        FormatError: A file is damaged.
        ConfigError: The model or its tokenizer have no counterpart here.
    """
    fields, tokenizer = _read_json(Path(folder) / CONFIG), _read_json(Path(folder) / TOKENIZER)
    ends = fields.get("eos_token_id")
    if ends is None or ends == []:
        raise ConfigError(f"{folder}: eos_token_id is missing; it must be the id that ends a document")
    try:
        codec = codec_of_tokenizer(tokenizer, max(ends) if isinstance(ends, list) else ends)
        model = from_huggingface(fields, _read_tensors(Path(folder)))
    except (KeyError, TypeError) as error:
        raise FormatError(f"{folder}: {CONFIG} or {TOKENIZER} is damaged ({error}); export it again") from error
    if model.vocab_size != num_symbols(codec):
        raise MismatchError(
            f"{folder}: its model has {model.vocab_size} ids and its tokenizer {num_symbols(codec)}; they must be equal"
        )
    return model, codec


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise DataError(f"{path}: is missing; name a folder that export wrote") from None
    except (OSError, ValueError) as error:
        raise FormatError(f"{path}: cannot be read as JSON ({error}); export it again") from error
    if not isinstance(content, dict):
        raise FormatError(f"{path}: is no JSON object; export it again")
    return content


def _read_tensors(folder: Path) -> dict[str, Tensor]:
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise DataError(f"{folder / WEIGHTS}: is missing; name a folder that export wrote")
    return {name: tensor.float() for file in files for name, tensor in _load(file).items()}


def _load(file: Path) -> dict[str, Tensor]:
    try:
        return load_file(file)
    except (SafetensorError, OSError) as error:
        raise FormatError(f"{file}: truncated or damaged ({error}); export it again") from error
