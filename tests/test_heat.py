"""HEAT: segments by definition, no byte of the future, every end of a segment paid, and the whole way of a run."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from fastcompress import lz77
from fastcompress.bpe import BPE
from fastcompress.cli import main
from fastcompress.codec import BPECodec, ByteCodec, CharCodec, Codec, GreedyDictionaryCodec, LZ77Codec
from fastcompress.data import TokenDataset
from fastcompress.data.segment_rows import DISTANCE, LENGTH, Places, segment_columns
from fastcompress.data.segments import END_OF_SEGMENT, LZ77Segmenter, SegmentCodec, TokenSegmenter
from fastcompress.errors import ConfigError, MismatchError
from fastcompress.evaluation import evaluate, event_nats, generate, make_receipt, read_receipt
from fastcompress.greedy_dictionary import GreedyDictionary
from fastcompress.models import Kernels, make_model_config
from fastcompress.models.heat import HEAT, Buckets, HEATConfig
from fastcompress.models.threads import limited_threads
from fastcompress.training import TrainConfig, TrainResult, load_run, train
from fastcompress.training.selfcheck import redraw_weights, self_check
from tests.reference import segments as reference

BYTES = ByteCodec()
END = END_OF_SEGMENT + 1
SENTENCE = b"to be or not to be, that is the question; "
WORDS = GreedyDictionaryCodec(GreedyDictionary.train(SENTENCE * 3, size=270))
MERGES = BPECodec(BPE.train([SENTENCE.decode()], vocab_size=270))
CODECS: dict[str, Codec] = {"lz77": BYTES, "words": WORDS, "bpe": MERGES}
SMALL = {
    "context_length": 48, "width": 32, "num_layers": 1, "num_heads": 2, "local_width": 16, "encoder_layers": 1,
    "decoder_layers": 1, "local_heads": 2, "local_window": 8,
}  # fmt: skip
PARSE = LZ77Segmenter(lz77.Params(window=40, min_length=3, max_length=9), max_literals=4)
texts = st.one_of(
    st.text("ab c", max_size=50).map(str.encode),
    st.lists(st.sampled_from([b"the ", b"they", b" ", b"\n", b"\xc3\xa9", b"abcabc"]), max_size=14).map(b"".join),
    st.binary(max_size=40),
)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Models this small lose time to a second one, most of all on a busy machine."""
    with limited_threads(1):
        yield


def settings_of(segments: str, **changes: Any) -> dict[str, Any]:
    return {"kind": "heat", "segments": "lz77" if segments == "lz77" else "tokens", **SMALL, **changes}


def make(segments: str = "lz77", **changes: Any) -> HEAT:
    """A model in which every path is active."""
    torch.manual_seed(0)
    model = make_model_config(settings_of(segments, **changes), CODECS[segments]).build()
    assert isinstance(model, HEAT)
    redraw_weights(model)
    with torch.no_grad():
        model.start.normal_()
    return model.eval()


def symbols_of(segments: str, text: bytes) -> list[int]:
    return [END, *make(segments).rows(CODECS[segments]).spelling.encode(text).tolist()]  # type: ignore[attr-defined]


# --- segments, their spelling and their columns ----------------------------------------------------------


@given(texts)
def test_segments_are_phrases_of_the_parse(text: bytes) -> None:
    codec = SegmentCodec(BYTES, PARSE)
    segments = reference.phrases(text, lz77.parse(text, PARSE.params), PARSE.max_literals)
    expected = [symbol for segment in segments for symbol in (*segment, END_OF_SEGMENT)][:-1]
    ids = codec.encode(text)
    assert ids.tolist() == expected
    assert codec.decode(ids) == text
    assert int(codec.byte_lengths(ids).sum()) == len(text)


@given(texts, st.sampled_from([WORDS, MERGES]))
def test_tokens_can_be_the_segments(text: bytes, base: Codec) -> None:
    codec = SegmentCodec(base, TokenSegmenter(base))
    tokens = [base.decode([number]) for number in base.encode(text).tolist()]
    ids = codec.encode(text).tolist()
    assert ids == [symbol for token in tokens for symbol in (*token, END_OF_SEGMENT)][:-1]
    assert codec.decode(ids) == text


@given(st.lists(st.sampled_from([*b"aab", END_OF_SEGMENT, END_OF_SEGMENT, END]), max_size=60), st.integers(1, 4))
def test_columns_are_the_defined_ones(ids: list[int], min_match: int) -> None:
    """For all sequences, also those that no parse gives, and of every prefix: nothing depends on later symbols."""
    places = Places(64, 4)
    found = segment_columns(np.array(ids, np.int64), places, min_match)
    assert {name: column.tolist() for name, column in found.items()} == reference.columns(ids, places, min_match)
    for length in (len(ids) // 2, len(ids) - 1):
        part = segment_columns(np.array(ids[: max(0, length)], np.int64), places, min_match)
        assert all(column.tolist() == found[name][: len(column)].tolist() for name, column in part.items())
    assert (found["patch_end"] > 0).sum() <= places.number


@given(texts)
def test_distances_are_those_of_the_matches(text: bytes) -> None:
    """Where the parse considers all candidates; so a model sees what the parser found, without asking it."""
    params = lz77.Params(window=None, min_length=3, max_length=9, depth=None)
    phrases = lz77.literal_runs(lz77.parse(text, params), 4)
    ids = SegmentCodec(BYTES, LZ77Segmenter(lz77.Params(64, 3, 9, None), 4)).encode(text)
    columns = segment_columns(np.append(ids, END).astype(np.int64), Places(1000, 1), 3)
    at = np.flatnonzero(np.append(ids, END) >= END_OF_SEGMENT)
    if len(text):
        assert columns[LENGTH][at].tolist() == phrases.length.tolist()
        assert columns[DISTANCE][at].tolist() == np.where(phrases.kind == lz77.MATCH, phrases.value, 0).tolist()


def test_rows_of_one_document_are_cut_as_the_document_is() -> None:
    document = bytes(np.random.default_rng(1).integers(97, 100, 400, np.uint8))
    for codec, segments in CODECS.items():
        config = make_model_config(settings_of(codec), segments)
        assert isinstance(config, HEATConfig)
        rows = config.rows(segments)
        data = TokenDataset.from_documents([b"ab", document, b""], segments)
        whole = "".join(map(chr, rows.spelling.encode(document)))
        first = len(segments.encode(b"ab")) + 1
        for begin in (first, first + 70, first + 90):
            row = rows.training_row(data, begin)
            seen = "".join(map(chr, [*row["input"], row["target"][-1]]))
            if codec == "lz77" and begin > first:  # a parse that begins elsewhere soon goes on as the other does
                seen = seen[20:]
            assert seen in whole
            assert row["target"][:-1].tolist() == row["input"][1:].tolist()
        around = rows.training_row(data, data.num_tokens - 2)
        beginning = [END, END, *rows.spelling.encode(b"ab").tolist(), END]
        assert around["input"][: len(beginning)].tolist() == beginning
        assert rows.num_events(data) == pytest.approx(data.num_bytes * len(whole) / len(document), rel=0.1)


def test_numbers_fall_into_buckets() -> None:
    buckets = Buckets(48, 1)
    with torch.no_grad():
        buckets.table.weight.copy_(torch.arange(len(buckets.table.weight))[:, None])
    found = buckets(torch.arange(60))[:, 0].int().tolist()
    expected = [0, 1, 2, 3, 4, 4, 5, 5, *[6] * 4, *[7] * 4, *[8] * 8, *[9] * 8, *[10] * 16, *[11] * 12]
    assert found == expected


# --- the model -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("segments", CODECS)
def test_bits_of_boundaries_are_told_apart(segments: str) -> None:
    model, codec = make(segments), CODECS[segments]
    documents = [b"to be or not to be, " * 6, b"", b"abcabcabc the they"]  # the first has more than one window
    score = evaluate(model, codec, documents, stride=16)
    nats = event_nats(model, model.rows(codec), documents, stride=16, batch_size=1)
    targets = [[*symbols_of(segments, text)[1:], END] for text in documents]
    bits = [
        float(value) / math.log(2)
        for values, symbols in zip(nats, targets, strict=True)
        for value, symbol in zip(values, symbols, strict=True)
        if symbol == END_OF_SEGMENT
    ]
    assert len(bits) > 10
    assert score.boundary_bits_per_byte == pytest.approx(sum(bits) / sum(map(len, documents)), rel=1e-4)
    assert score.boundary_bits_per_byte < score.bits_per_byte


@pytest.mark.slow
@pytest.mark.parametrize("segments", CODECS)
def test_a_changed_byte_changes_nothing_before_it(segments: str) -> None:
    """Raw bytes are changed and cut anew: all costs before the first symbol that differs stay."""
    model, codec = make(segments, cross_attention=segments == "lz77"), CODECS[segments]
    rows = model.rows(codec)
    text = b"to be or not to be, to be"
    spelling = [*symbols_of(segments, text), END]
    [before] = event_nats(model, rows, [text], stride=48, batch_size=1)
    places = set()
    for position, byte in itertools.product(range(len(text)), b"e, \xff"):
        changed = text[:position] + bytes([byte]) + text[position + 1 :]
        if changed == text:
            continue
        other = [*symbols_of(segments, changed), END]
        same = next(i for i, (one, two) in enumerate(zip(spelling, other, strict=False)) if one != two)
        places.add(same - len(text[:position]) - 1)
        [after] = event_nats(model, rows, [changed], stride=48, batch_size=1)
        np.testing.assert_allclose(after[: same - 1], before[: same - 1], rtol=1e-4, atol=1e-5)
        assert not np.allclose(after[same - 1 :][:1], before[same - 1 :][:1], rtol=1e-3)
    assert len(places) > 1  # an end before the byte may move with it: that is what ends are paid for


def test_ends_are_not_seen_before_they_are_paid() -> None:
    """Two texts that differ in the last byte are cut differently before it, and cost the same up to there."""
    model = make()
    one, two = b"abcdefgh abcd", b"abcdefgh abcX"
    first, second = symbols_of("lz77", one), symbols_of("lz77", two)
    assert (first[11], second[11]) == (END_OF_SEGMENT, ord("a"))  # the run " " ends where a copy begins
    a, b = (model(torch.tensor([ids])) for ids in (first, second))
    torch.testing.assert_close(a[:, :11], b[:, :11])
    assert not torch.allclose(a[:, 11], b[:, 11], atol=1e-3)


def test_sequences_of_symbols_have_probabilities_that_sum_to_one() -> None:
    """All of four symbols, among three: each is scored by itself, so a look ahead would make the sum another."""
    model, total = make(), 0.0
    alphabet = [ord("a"), END_OF_SEGMENT, END]
    sequences = torch.tensor(list(itertools.product(range(3), repeat=4)))  # int64[81, 4]
    for chosen in sequences:
        ids = torch.tensor([END, *(alphabet[number] for number in chosen)])
        with torch.no_grad():
            log_p = model(ids[None])[0, :-1, alphabet].double().log_softmax(-1)  # [4, 3]
        total += float(log_p[range(4), chosen].sum().exp())
    assert total == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("segments", CODECS)
def test_scores_are_those_of_all_symbols(segments: str) -> None:
    """By hand: bytes, ends of segments and the end of the document."""
    model, ids = make(segments), torch.tensor([*symbols_of(segments, SENTENCE[:20]), END])
    with torch.no_grad():
        log_p = model(ids[None, :-1])[0].double().log_softmax(-1)  # [n, 258]
    expected = -float(log_p[range(len(ids) - 1), ids[1:]].sum())
    score = evaluate(model, CODECS[segments], [SENTENCE[:20]])
    assert score.nats == pytest.approx(expected, rel=1e-5)
    assert score.bits_per_byte == pytest.approx(expected / np.log(2) / 20, rel=1e-5)
    assert not score.is_exact


@pytest.mark.parametrize("segments", CODECS)
def test_a_segment_reaches_bytes_beyond_the_window(segments: str) -> None:
    """Through the large network alone: local windows see 8 symbols in each of two layers."""
    model = make(segments)
    a = torch.tensor([symbols_of(segments, b"first words of it, and some more of it.")[:40]])
    b = a.clone()
    b[0, 3] = ord("l")
    assert not torch.allclose(model(a)[:, 30:], model(b)[:, 30:], atol=1e-4)


def test_distance_and_length_are_read() -> None:
    model = make()
    rows = model.rows(BYTES)
    batch = {k: torch.from_numpy(v)[None] for k, v in next(iter(rows.scoring_rows(SENTENCE, 48))).items()}
    ends = batch["patch_end"] > 0
    assert (batch[DISTANCE] > 0).any()
    for name in (DISTANCE, LENGTH):
        other = {**batch, name: torch.where(ends, batch[name] + 16, 0)}
        assert not torch.allclose(model.nats(other), model.nats(batch), atol=1e-3)


class Uncached(HEAT):
    def new_cache(self, lanes: int) -> None:  # type: ignore[override]
        return None


@pytest.mark.parametrize("segments", CODECS)
@pytest.mark.parametrize("cross_attention", [False, True])
def test_cached_logits_are_the_uncached_ones(segments: str, cross_attention: bool) -> None:
    """Lanes of unequal lengths, one of which outgrows the row, with ends where no parse would have them."""
    cached = make(segments, cross_attention=cross_attention)
    uncached = Uncached(cached.config)
    uncached.load_state_dict(cached.state_dict())
    steppers = [model.eval().stepper(CODECS[segments], 3) for model in (cached, uncached)]
    for stepper in steppers:
        stepper.begin([b"a be", b"to be or not to be, that is the question: a", b""])
    text = [*b"to be", 256, *b", to be", 256, 256, *b"or", 256, *b"t", 256, *b" a be that is"]
    for step in range(20):
        found, expected = (stepper.weights() for stepper in steppers)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
        pieces = [stepper.push([text[step], text[(step + 7) % 24], text[step // 2]]) for stepper in steppers]
        assert pieces[0] == pieces[1]
        assert pieces[0][0] == (bytes([text[step]]) if text[step] < 256 else b"")


@pytest.mark.parametrize("segments", CODECS)
def test_self_checks_pass(segments: str) -> None:
    config = make_model_config(settings_of(segments, cross_attention=True), CODECS[segments])
    model = config.build()
    self_check(model, TrainConfig(steps=1))
    size = config.size()
    assert size.parameters == model.num_parameters()
    roles = model.parameter_roles()
    assert size.matrix_parameters == sum(p.numel() for n, p in model.named_parameters() if roles[n] == "matrix")


def test_flops_are_those_that_run() -> None:
    """Plain attention over whole windows, which the counter of torch can see."""
    from torch.utils.flop_counter import FlopCounterMode

    model = HEATConfig.from_json({**SMALL, "local_window": 48, "cross_attention": True}).build(Kernels("plain"))
    rows = model.rows(BYTES)
    row = next(iter(rows.scoring_rows(SENTENCE * 2, 48)))
    batch = {name: torch.from_numpy(column) for name, column in rows.stack([row]).items()}
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model.nats(batch)
    assert counter.get_total_flops() == model.flops().forward


@pytest.mark.parametrize("segments", CODECS)
def test_receipts_have_the_claimed_size_and_decode(segments: str) -> None:
    """Documents of all lengths, one of which outgrows the window; the code may end up to a byte before its bits do."""
    codec, model = CODECS[segments], make(segments, context_length=24)
    documents = [SENTENCE, b"", b"Whether 'tis nobler", b"\xff\x00\n", b"to be"]
    made = make_receipt(model, codec, documents, name="a", lanes=3, stride=9)
    claimed = made.claimed_bits_per_byte * made.num_bytes / 8
    assert 0.999 * claimed - 1 < made.code_bytes <= 1.001 * claimed + 2
    assert read_receipt(model, codec, made.blob, name="a") == documents


# --- runs ------------------------------------------------------------------------------------------------


def run(directory: Path, segments: str, document: bytes, **changes: Any) -> TrainResult:
    codec = CODECS[segments]
    config = make_model_config(settings_of(segments, context_length=72), codec)
    settings = TrainConfig(
        **{"steps": 300, "batch_size": 4, "learning_rate": 0.02, "optimizer": "adamw", "num_evals": 1,
           "device": "cpu", "self_check": False, "log_every": 1, **changes}
    )  # fmt: skip
    data = TokenDataset.from_documents([document] * 8, codec)
    resume = (directory / "config.json").exists()
    return train(config, codec, data, [document], settings, directory, progress=False, resume=resume)


@pytest.mark.parametrize("segments", ["lz77", pytest.param("words", marks=pytest.mark.slow)])
def test_it_learns_a_document_by_heart(segments: str, tmp_path: Path) -> None:
    """To under 0.05 bits per byte, ends of segments and document counted; then scores and continues it, by seed."""
    document = b"to be or not to be, that is the question; not to be."
    result = run(tmp_path, segments, document)
    assert result.best_bits_per_byte < 0.05
    loaded = load_run(tmp_path)
    assert isinstance(loaded.model, HEAT)
    score = evaluate(loaded.model, CODECS[segments], [document], stride=72, batch_size=2)
    assert score.bits_per_byte == pytest.approx(result.best_bits_per_byte, rel=1e-3)
    assert score.num_bytes == len(document)
    assert score.num_tokens == len(loaded.model.rows(CODECS[segments]).spelling.encode(document))  # type: ignore[attr-defined]
    assert not score.is_exact
    prompt, rest = document[:19], document[19:]  # between words, as no segment of the second codec crosses them
    text = "".join(generate(loaded.model, CODECS[segments], prompt, max_tokens=90, temperature=0.0))
    assert text.encode() == rest
    samples = ["".join(generate(loaded.model, CODECS[segments], b"S", max_tokens=30, temperature=3.0, seed=seed))
               for seed in (1, 1, 2)]  # fmt: skip
    assert samples[0] == samples[1] != samples[2]


def test_a_stopped_run_resumes_to_the_same_losses(tmp_path: Path) -> None:
    def losses(directory: Path) -> list[float]:
        records = map(json.loads, (directory / "metrics.jsonl").read_text().splitlines())
        return [record["loss"] for record in records if record["event"] == "train"]

    schedule = {"schedule": "constant"}
    run(tmp_path / "whole", "lz77", SENTENCE * 3, steps=8, **schedule)
    run(tmp_path / "parts", "lz77", SENTENCE * 3, steps=4, **schedule)
    assert run(tmp_path / "parts", "lz77", SENTENCE * 3, steps=8, **schedule).new_steps == 4
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")


@pytest.mark.parametrize("segments", ["lz77", "words"])
def test_the_command_line_takes_it(segments: str, tmp_path: Path) -> None:
    text, dictionary, runs = tmp_path / "text.txt", str(tmp_path / "words.dictionary"), str(tmp_path / "run")
    text.write_bytes(SENTENCE * 40)
    WORDS.dictionary.save(dictionary)

    def fastcompress(*words: str) -> str:
        result = CliRunner().invoke(main, list(words))
        assert result.exit_code == 0, result.output
        return result.stdout

    settings = settings_of(segments).items()
    model = [word for name, value in settings for word in ("--set", f"model.{name}={value}")]
    fastcompress("train", "--corpus", str(text), "--codec", "byte" if segments == "lz77" else dictionary, *model,
                 "--steps", "3", "--batch-size", "2", "--device", "cpu", "--run-dir", runs)  # fmt: skip
    shown = fastcompress("eval", runs, "--device", "cpu")
    assert "an upper bound" in shown
    told = json.loads(fastcompress("eval", runs, "--device", "cpu", "--json"))
    assert told["is_exact"] is False
    assert f"of these, for where segments end: {told['boundary_bits_per_byte']:.4f}\n" in shown
    assert fastcompress("generate", runs, "--prompt", "to be", "--max-tokens", "9").startswith("to be")
    one = tmp_path / "one.txt"
    one.write_bytes(SENTENCE)
    assert "decoded to the same" in fastcompress("receipt", runs, "--data", str(one), "--device", "cpu")
    if segments == "words":  # there are masks for the ids of its codec, but those are not what it predicts
        refused = CliRunner().invoke(main, ["eval", runs, "--device", "cpu", "--canonical"])
        assert "the model does not predict ids of the codec" in str(refused.exception) + refused.output


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="segments of lz77 need byte"):
        make_model_config({"kind": "heat"}, CharCodec("abc"))
    with pytest.raises(ConfigError, match="segments is 'words'; it must be one of lz77, tokens"):
        make_model_config({"kind": "heat", "segments": "words"}, BYTES)
    with pytest.raises(ConfigError, match=r"codec is lz77.*; it must give each id bytes of its own"):
        make_model_config({"kind": "heat", "segments": "tokens"}, LZ77Codec())
    with pytest.raises(ConfigError, match="max_match is 3; it must be at least min_match, 4"):
        HEATConfig(max_match=3)
    with pytest.raises(ConfigError, match="patch_bytes must be a whole number of at least 1"):
        HEATConfig(patch_bytes=0)
    with pytest.raises(ConfigError, match="no limit of distances"):
        LZ77Segmenter(lz77.Params(window=None), 8)
    with pytest.raises(MismatchError, match="segments of lz77 need byte"):
        evaluate(make(), WORDS, [b"to be"])
    rows = [make(codec).rows(CODECS[codec]).fingerprint for codec in CODECS]
    assert len({*rows, HEATConfig(**{**SMALL, "patch_bytes": 7}).rows(BYTES).fingerprint}) == 4
