"""Codecs by name, as users of the command line give them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fastcompress.bpe import BPE
from fastcompress.codec.basic import BPECodec, ByteCodec
from fastcompress.codec.equal_info import EqualInfoCodec
from fastcompress.codec.files import codec_from_json, parse_json, read_blob
from fastcompress.codec.gzip import GzipCodec
from fastcompress.codec.lz77 import LZ77Codec, LZPCodec
from fastcompress.codec.protocol import Codec
from fastcompress.equal_info import Codebook
from fastcompress.errors import FormatError

CODECS_BY_NAME: dict[str, Callable[[], Codec]] = {
    "byte": ByteCodec,
    "lz77": LZ77Codec,
    "lz77-buckets": lambda: LZ77Codec(alphabet="buckets"),
    "lzp": LZPCodec,
    "gzip": GzipCodec,
}


def codec_from_spec(spec: str) -> Codec:
    """The codec a user names: one of CODECS_BY_NAME with its default settings, or the path of a codec.json, of a
    saved vocabulary or codebook, or of a tokenizer.json."""
    if spec in CODECS_BY_NAME:
        return CODECS_BY_NAME[spec]()
    blob = read_blob(spec)
    if blob.lstrip()[:1] == b"{":
        if isinstance(document := parse_json(blob), dict) and "model" in document and "format" not in document:
            return BPECodec(BPE.from_huggingface(Path(spec)))
        return codec_from_json(document, spec)
    if Codebook.is_file(blob):
        try:
            return EqualInfoCodec(Codebook.from_bytes(blob))
        except FormatError as error:
            raise FormatError(f"{spec}: {error}") from error
    try:
        return BPECodec(BPE.from_bytes(blob))
    except FormatError as error:
        raise FormatError(
            f"{spec}: neither a codec.json, a tokenizer.json, a codebook nor a BPE vocabulary ({error})"
        ) from error
