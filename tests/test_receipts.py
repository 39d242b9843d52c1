"""Receipts: what a model claims is the size of a file that decodes to the same bytes, and bad ones are refused."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from fastcompress.arithmetic import ContextMixer
from fastcompress.bpe import BPE
from fastcompress.cli import main
from fastcompress.codec import (
    ArithmeticCodec,
    BPECodec,
    ByteCodec,
    CharCodec,
    ChatCodec,
    Codec,
    GreedyDictionaryCodec,
    GzipCodec,
    LZ77Codec,
    LZPCodec,
    ProxyCodec,
    WindowsCodec,
)
from fastcompress.errors import ConfigError, DataError, FormatError, MismatchError
from fastcompress.evaluation import Receipt, generate, make_receipt, read_receipt
from fastcompress.evaluation.receipts import MAGIC
from fastcompress.greedy_dictionary import GreedyDictionary
from fastcompress.models import LanguageModel, make_model_config
from fastcompress.models.tokens import TokenStepper
from fastcompress.training.selfcheck import redraw_weights
from tests.byte_bigram import ByteBigramConfig

DOCUMENTS = [b"To be, or not to be, that is the question: " * 2, b"", b"Whether 'tis nobler", b"\xff\x00\n", b"to be"]
SMALL = {"num_layers": 1, "num_heads": 1, "width": 16, "context_length": 24}
BYTE_LATENT = {
    "kind": "byte-latent", "context_length": 24, "width": 16, "num_layers": 1, "num_heads": 1, "local_width": 8,
    "encoder_layers": 1, "decoder_layers": 1, "local_heads": 1, "patcher": "lz77", "min_bytes": 2,
}  # fmt: skip
WORDS = GreedyDictionaryCodec(GreedyDictionary.train(b"to be or not to be, that is the question" * 3, size=270))
BPE_CODEC = BPECodec(BPE.train([b"to be or not to be that is the question"], vocab_size=270))


def make(codec: Codec, settings: dict[str, object]) -> LanguageModel:
    torch.manual_seed(0)
    model = make_model_config(settings, codec).build()
    redraw_weights(model)
    return model.eval()


def assert_size(made: Receipt) -> None:
    """As claimed, within 0.1 % and the two bytes that end a code."""
    claimed = made.claimed_bits_per_byte * made.num_bytes / 8
    assert 0.999 * claimed <= made.code_bytes <= 1.001 * claimed + 2


@pytest.mark.parametrize(
    ("codec", "settings"),
    [(ByteCodec(), SMALL), (BPE_CODEC, SMALL), (WORDS, {**SMALL, "canonical": True}), (ByteCodec(), BYTE_LATENT)],
)
@pytest.mark.parametrize("lanes", [1, 3, 99])
def test_the_code_has_the_claimed_size_and_decodes(codec: Codec, settings: dict[str, object], lanes: int) -> None:
    """Documents of all lengths, one of which outgrows the window twice."""
    model = make(codec, settings)
    seen: list[tuple[int, int]] = []
    made = make_receipt(
        model, codec, DOCUMENTS, name="a", lanes=lanes, stride=9, progress=lambda *both: seen.append(both)
    )
    assert made.num_bytes == sum(map(len, DOCUMENTS))
    assert_size(made)
    assert seen[-1] == (2 * len(DOCUMENTS), 2 * len(DOCUMENTS))
    assert read_receipt(model, codec, made.blob, name="a") == DOCUMENTS


def test_a_model_of_several_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ByteBigramConfig().build().eval()
    made = make_receipt(model, ByteCodec(), DOCUMENTS, name="a", lanes=2)
    assert_size(made)


MIXER = ContextMixer.train(DOCUMENTS, log2_table_bytes=16, reset_interval=20).freeze()
NOT_INCREMENTAL: list[Codec] = [
    ArithmeticCodec(MIXER, 8), WindowsCodec(MIXER, 32, 8), GzipCodec(), ChatCodec(GzipCodec()),
]  # fmt: skip


@pytest.mark.parametrize(
    "codec", [*NOT_INCREMENTAL, LZPCodec(order=2), LZ77Codec(alphabet="buckets"), ProxyCodec(GzipCodec())], ids=str
)
@pytest.mark.parametrize("lanes", [1, 3])
def test_codecs_whose_ids_need_not_decode_as_they_come(codec: Codec, lanes: int) -> None:
    """Three lanes for five documents, so that one lane gets ids that no text has."""
    model = make(codec, SMALL)
    made = make_receipt(model, codec, DOCUMENTS, name="a", lanes=lanes)
    assert made.code_bytes == pytest.approx(made.claimed_bits_per_byte * made.num_bytes / 8, abs=2)  # zeros are cut off
    assert read_receipt(model, codec, made.blob, name="a") == DOCUMENTS


def test_a_codec_that_does_not_say_that_it_is_not_incremental(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ArithmeticCodec, "is_incremental", True)
    codec = ArithmeticCodec(MIXER, 8)
    with pytest.raises(DataError, match=r"document 0 ends after .* symbols: .* must set is_incremental = False"):
        make_receipt(make(codec, SMALL), codec, [b"to be or not to be"], name="a")


@pytest.mark.parametrize("codec", NOT_INCREMENTAL, ids=str)
@pytest.mark.parametrize("prompt", [b"", b"to be"])
def test_no_text_is_generated_by_codecs_that_are_not_incremental(codec: Codec, prompt: bytes) -> None:
    with pytest.raises(ConfigError, match=rf"codec is {codec.name}, whose ids decode only once a text is complete"):
        generate(make(codec, SMALL), codec, prompt, max_tokens=3)


def test_a_text_ends_where_its_ids_do_not_decode() -> None:
    codec = LZPCodec()
    stepper = make(codec, SMALL).stepper(codec, 2)
    stepper.begin([b"a", b"a"])
    assert stepper.push([codec.vocab_size - 1, 98]) == [b"", b"b"]  # a match, which nothing before it allows
    assert stepper.done == [True, False]


def test_others_are_refused() -> None:
    model = make(ByteCodec(), SMALL)
    blob = make_receipt(model, ByteCodec(), DOCUMENTS, name="a").blob
    with pytest.raises(MismatchError, match="another model or codec"):
        read_receipt(model, ByteCodec(), blob, name="b")
    head, line, code = blob.split(b"\n", 2)
    header = json.loads(line)
    header["machine"]["torch"] = "1.0"
    with pytest.raises(MismatchError, match=r"made with torch '1\.0', and here it is"):
        read_receipt(model, ByteCodec(), b"\n".join((head, json.dumps(header).encode(), code)), name="a")
    with pytest.raises(FormatError, match="not a receipt; make one"):
        read_receipt(model, ByteCodec(), b"text", name="a")
    lossy = CharCodec("abc")
    with pytest.raises(ConfigError, match="loses bytes"):
        make_receipt(make(lossy, SMALL), lossy, [b"abc"], name="a")
    with pytest.raises(DataError, match="no bytes"):
        make_receipt(model, ByteCodec(), [b""], name="a")


@pytest.mark.parametrize("line", [b"", b"{}", b"[]", b"[" * 100_000, b"\xff", b"1" * 5000, b"null"])
def test_a_line_that_is_no_header(line: bytes) -> None:
    with pytest.raises(FormatError, match=r"the receipt is damaged \(.*\); restore it or make it again"):
        read_receipt(make(ByteCodec(), SMALL), ByteCodec(), MAGIC + line + b"\n", name="a")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *((field, value) for field in ("documents", "lanes", "stride")
          for value in (0, -1, 2.5, 3.0, True, math.nan, None, "3", [], 10**30)),
        ("documents", 1), ("documents", 4), ("documents", 6), ("lanes", 6), ("lanes", 300_000), ("lanes", 4),
        ("stride", 11), ("stride", 25), ("stride", 10**15),
        *(("machine", value) for value in ([], None, {}, {"torch": 1}, "cpu")),
        *((field, value) for field in ("model", "codec", "sha256") for value in (None, 1, [])),
        ("sha256", "0" * 64),
    ],
)  # fmt: skip
def test_one_damaged_field(field: str, value: object) -> None:
    """Refused at once or after decoding something else, in words that do not blame the model alone."""
    model = make(ByteCodec(), SMALL)
    blob = make_receipt(model, ByteCodec(), DOCUMENTS, name="a").blob
    head, line, code = blob.split(b"\n", 2)
    header = json.loads(line)
    header[field] = value
    with pytest.raises(FormatError, match=r"damaged.*; restore it or make it again$") as caught:
        read_receipt(model, ByteCodec(), b"\n".join((head, json.dumps(header).encode(), code)), name="a")
    assert "allow_trailing" not in str(caught.value)
    del header[field]
    with pytest.raises(FormatError, match="must have exactly the fields"):
        read_receipt(model, ByteCodec(), b"\n".join((head, json.dumps(header).encode(), code)), name="a")


def test_a_damaged_code() -> None:
    model = make(ByteCodec(), SMALL)
    blob = make_receipt(model, ByteCodec(), DOCUMENTS, name="a").blob
    begin = blob.index(b"\n", len(MAGIC)) + 1
    flipped = (blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :] for at in range(begin, len(blob), 13))
    for bad in (blob[:begin], blob[:-5], blob + b"more", *flipped):
        with pytest.raises(FormatError, match="its header or its code is damaged, or the model computes differently"):
            read_receipt(model, ByteCodec(), bad, name="a")


def test_a_model_that_does_not_compute_the_same_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make(ByteCodec(), SMALL)
    weights, num_calls = TokenStepper.weights, itertools.count()
    monkeypatch.setattr(TokenStepper, "weights", lambda stepper: weights(stepper) * (1 + 0.01 * next(num_calls)))
    with pytest.raises(DataError, match="does not compute the same twice"):
        make_receipt(model, ByteCodec(), DOCUMENTS, name="a")


def test_the_command(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_bytes(b"The sheep jumped over the fence; then the sheep jumped back.\n" * 30)
    run = str(tmp_path / "run")

    def fastcompress(*words: str) -> str:
        result = CliRunner().invoke(main, list(words))
        assert result.exit_code == 0, result.output
        return result.stdout

    fastcompress("train", "--corpus", str(text), "--codec", "byte", "--run-dir", run, "--steps", "5", "--layers", "1",
                 "--width", "16", "--heads", "1", "--context", "16", "--device", "cpu")  # fmt: skip
    data, kept = str(tmp_path / "one.txt"), str(tmp_path / "one.receipt")
    Path(data).write_bytes(text.read_bytes()[:200])
    shown = fastcompress("receipt", run, "--data", data, "-o", kept, "--device", "cpu", "--stride", "8")
    assert "1 document, 200 bytes, coded in" in shown
    assert "decoded to the same" in shown
    report = json.loads(fastcompress("receipt", run, "--data", data, "--device", "cpu", "--json"))
    assert abs(report["difference"]) < 0.01
    assert fastcompress("receipt", run, "--read", kept, "--device", "cpu") == Path(data).read_text()
    link = tmp_path / "link.txt"
    link.symlink_to(data)
    for source, output in ((data, data), (data, str(link)), (str(link), data), (str(tmp_path), data)):
        before = Path(data).read_bytes()
        result = CliRunner().invoke(main, ["receipt", run, "--data", source, "-o", output, "--force"])
        assert f"{output}: is the input itself" in str(result.output) + str(result.exception)
        assert Path(data).read_bytes() == before
    Path(kept).write_bytes(Path(kept).read_bytes()[:-9])
    result = CliRunner().invoke(main, ["receipt", run, "--read", kept, "--device", "cpu"])
    assert f"{kept}: the receipt does not decode" in str(result.output) + str(result.exception)
    result = CliRunner().invoke(main, ["receipt", run, "--device", "cpu"])
    assert result.exit_code != 0
    assert "give one of --data and --read" in str(result.output) + str(result.exception)
    result = CliRunner().invoke(main, ["receipt", run, "--read", kept, "-o", str(tmp_path / "x"), "--device", "cpu"])
    assert "-o keeps a receipt that is made" in str(result.output) + str(result.exception)
