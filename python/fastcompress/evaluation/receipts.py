"""Receipts: documents coded with a model, so that a score in bits per byte is the size of a file that decodes.

The coder writes each symbol of each document with the probabilities that the model's stepper gives it (32-bit floats,
quantized to integers that sum to 2^24), and the decoder asks the same stepper the same questions. Several documents,
one a lane, are coded side by side in one code: a step of all lanes, then the next. Both sides make the same calls with
the same shapes in the same order, so on one machine, with one release of torch and one number of threads, they compute
the same floats, to the bit. What the receipt was made on is recorded in it, and another machine is refused: a single
bit of difference would end in noise.

FORMAT, version 1: the line "fastcompress receipt 1", a line of JSON (``Header``), then the arithmetic code.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from fastcompress._arguments import as_integer
from fastcompress.arithmetic import Decoder, Encoder
from fastcompress.codec import Codec
from fastcompress.codec.files import parse_json
from fastcompress.errors import ConfigError, DataError, FormatError, MismatchError
from fastcompress.evaluation.bits_per_byte import evaluate
from fastcompress.models.protocol import LanguageModel, Stepper, device_of

MAGIC = b"fastcompress receipt 1\n"
PRECISION = 24  # bits; at 16, the 1 that every symbol of a large alphabet gets would cost as much as 0.3 %
_MOST = 1 << 62
Progress = Callable[[int, int], None]  # documents done, documents in all


@dataclass(frozen=True)
class Header:
    """What a decoder must know, and have the same.

    Attributes:
        model: A name of the weights, such as a checkpoint's checksum.
        codec: The codec's fingerprint.
        documents: The number of documents.
        lanes: Documents that are coded side by side.
        stride: By how much the window moves on where a document outgrows it.
        sha256: Of the documents, each with its length before it.
        machine: Where it was made.
    """

    model: str
    codec: str
    documents: int
    lanes: int
    stride: int
    sha256: str
    machine: dict[str, str]


@dataclass(frozen=True)
class Receipt:
    """A receipt and its figures.

    Attributes:
        blob: The file.
        num_bytes: Of the documents.
        code_bytes: Of the arithmetic code.
        claimed_bits_per_byte: What ``evaluate`` says with the same stride.
        bits_per_byte: What the code takes.
    """

    blob: bytes
    num_bytes: int
    code_bytes: int
    claimed_bits_per_byte: float

    @property
    def bits_per_byte(self) -> float:
        """The code's size."""
        return 8 * self.code_bytes / self.num_bytes


def machine_of(device: torch.device) -> dict[str, str]:
    """Return what the floats of a model depend on, apart from the model."""
    card = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    threads = str(torch.get_num_threads()) if device.type == "cpu" else "any"
    return {"torch": torch.__version__, "device": device.type, "processor": card, "threads": threads}


def make_receipt(
    model: LanguageModel,
    codec: Codec,
    documents: Sequence[bytes],
    *,
    name: str,
    lanes: int = 16,
    stride: int | None = None,
    progress: Progress | None = None,
) -> Receipt:
    """Code documents, decode them again, and compare.

    Args:
        model, codec: The model and what it was trained with.
        documents: At least one byte in all.
        name: Of the model's weights; a receipt is only read with the same.
        lanes: Documents side by side.
        stride: As for ``evaluate``.
        progress: Called after each batch of documents of the one and of the other pass.

    Raises:
        TypeError: ``lanes`` or ``stride`` is not an integer.
        ConfigError: The model or codec cannot write the documents exactly, or a setting is out of range.
        DataError: There is no byte, a document does not decode id by id, or what was decoded differs: then this model
            does not compute the same twice.
    """
    if not codec.lossless:
        raise ConfigError(f"codec is {codec.name}, which loses bytes; a receipt needs one that is lossless")
    stride = max(1, model.config.context_length // 2) if stride is None else as_integer(stride, "stride", 1, _MOST)
    lanes = max(1, min(as_integer(lanes, "lanes", 1, _MOST), len(documents)))
    claimed = evaluate(model, codec, documents, stride=stride).bits_per_byte
    header = Header(
        name, codec.fingerprint, len(documents), lanes, stride, _digest(documents), machine_of(device_of(model))
    )
    both = None if progress is None else lambda done, _: progress(done, 2 * len(documents))
    code = _encode(model.stepper(codec, lanes, stride), documents, both)
    blob = MAGIC + json.dumps(dataclasses.asdict(header)).encode() + b"\n" + code
    after = None if progress is None else lambda done, _: progress(len(documents) + done, 2 * len(documents))
    try:
        read_receipt(model, codec, blob, name=name, progress=after)
    except FormatError as error:  # it was never stored, so that nothing can have damaged it
        raise DataError(
            "the code does not decode to the documents: the model does not compute the same twice; use another device"
        ) from error
    return Receipt(blob, sum(map(len, documents)), len(code), claimed)


def read_receipt(
    model: LanguageModel, codec: Codec, blob: bytes, *, name: str, progress: Progress | None = None
) -> list[bytes]:
    """Return the documents of a receipt.

    Args:
        model, codec, name: Those that it was made with.
        blob: The file.
        progress: Called after each batch of documents.

    Raises:
        FormatError: This is no receipt or a damaged one, or its documents do not have the checksum that it holds.
        MismatchError: It was made with another model or codec, or on a machine that computes other floats.
    """
    header, code = _parse(blob)
    if (header.model, header.codec) != (name, codec.fingerprint):
        raise MismatchError("the receipt was made with another model or codec; read it with that one")
    here = machine_of(device_of(model))
    other = next((part for part in here if header.machine.get(part) != here[part]), None)
    if other is not None:
        raise MismatchError(
            f"the receipt was made with {other} {header.machine.get(other)!r}, and here it is {here[other]!r}: floats "
            "would differ; read it where it was made"
        )
    context_length = model.rows(codec).context_length
    if header.stride > context_length:
        raise _damaged(f"the stride of its header is {header.stride}; the model's context is {context_length}")
    try:
        documents = _decode(model.stepper(codec, header.lanes, header.stride), code, header.documents, progress)
    except (DataError, FormatError) as error:  # their remedies are those of the coder and of the codec
        raise _not_the_same() from error
    if _digest(documents) != header.sha256:
        raise _not_the_same()
    return documents


def _parse(blob: bytes) -> tuple[Header, bytes]:
    if not blob.startswith(MAGIC):
        raise FormatError("not a receipt; make one with fastcompress receipt")
    line, separator, code = blob[len(MAGIC) :].partition(b"\n")
    fields = parse_json(line)
    if not separator or not isinstance(fields, dict):
        raise _damaged("its second line is not a JSON object")
    if fields.keys() != _FIELDS.keys():
        raise _damaged(f"its header must have exactly the fields {', '.join(_FIELDS)}")
    for name, (is_valid, wanted) in _FIELDS.items():
        if not is_valid(fields[name]):
            raise _damaged(f"{name} of its header must be {wanted}")
    if fields["lanes"] > fields["documents"]:
        raise _damaged(f"its header has {fields['lanes']} lanes for {fields['documents']} documents")
    return Header(**fields), code


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return type(value) is int and 1 <= value <= _MOST  # a bool is an int, but not of this type


def _is_machine(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == _MACHINE_FIELDS and all(map(_is_text, value.values()))


_MACHINE_FIELDS = {"torch", "device", "processor", "threads"}
_TEXT, _NUMBER = (_is_text, "a string"), (_is_number, "an integer, at least 1")
_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "model": _TEXT,
    "codec": _TEXT,
    "documents": _NUMBER,
    "lanes": _NUMBER,
    "stride": _NUMBER,
    "sha256": _TEXT,
    "machine": (_is_machine, f"an object of the strings {', '.join(sorted(_MACHINE_FIELDS))}"),
}


def _damaged(problem: str) -> FormatError:
    return FormatError(f"the receipt is damaged ({problem}); restore it or make it again")


def _not_the_same() -> FormatError:
    return FormatError(
        "the receipt does not decode to the documents that were coded: its header or its code is damaged, or the model "
        "computes differently now; restore it or make it again"
    )


def _digest(documents: Sequence[bytes]) -> str:
    digest = hashlib.sha256()
    for document in documents:
        digest.update(len(document).to_bytes(8, "little") + document)
    return digest.hexdigest()


def _probabilities(stepper: Stepper) -> npt.NDArray[np.float32]:
    """The probabilities of the next symbol of each lane, ``float32[lanes, A]``."""
    return torch.softmax(stepper.weights().detach().float(), dim=-1).cpu().numpy()


def _encode(stepper: Stepper, documents: Sequence[bytes], progress: Progress | None) -> bytes:
    encoder = Encoder()
    for begin in range(0, len(documents), stepper.lanes):
        part = documents[begin : begin + stepper.lanes]
        symbols = [stepper.symbols(document) for document in part] + [[]] * (stepper.lanes - len(part))
        stepper.begin([b""] * stepper.lanes)
        for step in range(max(map(len, symbols))):
            rows = _probabilities(stepper)
            open_lanes = [lane for lane, own in enumerate(symbols) if step < len(own)]
            encoder.encode_weights([symbols[lane][step] for lane in open_lanes], rows[open_lanes], PRECISION)
            # A lane that is done repeats its last symbol, and one without a document takes the first: both sides alike.
            stepper.push([(own[min(step, len(own) - 1)] if own else 0) for own in symbols])
            for lane in open_lanes:
                if stepper.done[lane] and step + 1 < len(symbols[lane]):
                    raise DataError(
                        f"document {begin + lane} ends after {step + 1} of its {len(symbols[lane])} symbols: its ids "
                        "do not decode as they come; a codec like this must set is_incremental = False"
                    )
        if progress is not None:
            progress(begin + len(part), len(documents))
    return encoder.finish()


def _decode(stepper: Stepper, code: bytes, num_documents: int, progress: Progress | None) -> list[bytes]:
    decoder = Decoder(code, allow_trailing=True)
    documents: list[bytes] = []
    while len(documents) < num_documents:
        number = min(stepper.lanes, num_documents - len(documents))
        last = [0] * stepper.lanes
        pieces: list[list[bytes]] = [[] for _ in range(stepper.lanes)]
        stepper.begin([b""] * stepper.lanes)
        while not all(stepper.done[:number]):
            rows = _probabilities(stepper)
            open_lanes = [lane for lane in range(number) if not stepper.done[lane]]
            found = decoder.decode_weights(rows[open_lanes], PRECISION).tolist()
            for lane, symbol in zip(open_lanes, found, strict=True):
                last[lane] = symbol
            for lane, piece in enumerate(stepper.push(last)):
                pieces[lane].append(piece)
        documents += [b"".join(pieces[lane]) for lane in range(number)]
        if progress is not None:
            progress(len(documents), num_documents)
    decoder.finish()
    if decoder.num_bytes_read != len(code):
        raise FormatError(f"{len(code) - decoder.num_bytes_read} bytes follow the code")
    return documents
