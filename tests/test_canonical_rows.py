"""Masks of illegal ids: every spelling but the encoder's own has no probability, in training, scores and decoding."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
import torch

from fastcompress.bpe import BPE, WORD_PATTERN
from fastcompress.codec import BPECodec, ByteCodec, ChatCodec, Codec, EqualInfoCodec, GreedyDictionaryCodec
from fastcompress.data import TokenDataset
from fastcompress.data.canonical_rows import LEGAL, CanonicalRows
from fastcompress.data.rows import TokenRows
from fastcompress.equal_info import CanonicalSteps, Codebook
from fastcompress.errors import ConfigError, DataError
from fastcompress.evaluation import evaluate, generate
from fastcompress.greedy_dictionary import GreedyDictionary
from fastcompress.models import GPT, GPTConfig
from fastcompress.models.cross_entropy import Head, head_nats, only_legal
from fastcompress.training.selfcheck import redraw_weights

TEXT = b"to be or not to be, that is the  question: whether 'tis nobler\n\nto be " * 3
DICTIONARY = GreedyDictionaryCodec(GreedyDictionary.train(TEXT, size=290))
MERGES = BPECodec(BPE.train([TEXT.decode()] * 3, vocab_size=290, pattern=WORD_PATTERN))
BOOK = EqualInfoCodec(Codebook.train(TEXT, bits=9, within_words=True))
CODECS = [DICTIONARY, MERGES, BOOK]
DOCUMENTS = [TEXT, b"", b"be that  or", "nöt\n".encode(), b"be \n be\n  to  \tbe"]


def make(codec: Codec, **settings: object) -> GPT:
    torch.manual_seed(0)
    shape = {"num_layers": 1, "num_heads": 1, "width": 16, "context_length": 12}
    model = GPT(GPTConfig.from_json({"vocab_size": codec.vocab_size + 1, **shape, **settings}))
    redraw_weights(model)
    return model.eval()


def test_bits_become_infinities() -> None:
    logits, legal = torch.zeros(2, 11), torch.tensor([[0b10000001, 0b10], [255, 0]], dtype=torch.uint8)
    masked = only_legal(logits, legal)
    assert torch.isfinite(masked[0]).nonzero().flatten().tolist() == [0, 7, 9, 10]
    assert torch.isfinite(masked[1]).nonzero().flatten().tolist() == [*range(8), 10]  # the last is the end


@pytest.mark.parametrize("codec", CODECS)
def test_rows_have_the_masks_of_their_documents(codec: Codec) -> None:
    """Wherever a window begins, as if its document had been read from the beginning."""
    rows, plain = CanonicalRows(codec, 7), TokenRows(codec, 7)
    expected: dict[tuple[int, ...], list[bytes]] = {}
    for document in DOCUMENTS:
        ids = codec.encode(document)
        masks = rows.canonical.legal_rows(rows.canonical.states_of(ids))
        expected[tuple(ids.tolist())] = [mask.tobytes() for mask in masks]
        found = [row[LEGAL][row["weight"] > 0] for row in rows.scoring_rows(document, 3)]
        assert [mask.tobytes() for mask in np.concatenate(found)] == expected[tuple(ids.tolist())]
    data = TokenDataset.from_documents(DOCUMENTS, codec)
    stream = [mask for masks in expected.values() for mask in masks]
    for begin in range(data.num_tokens):
        row = rows.training_row(data, begin)
        assert {name: row[name].tolist() for name in ("input", "target")} == {
            name: plain.training_row(data, begin)[name].tolist() for name in ("input", "target")
        }
        wanted = [stream[(begin + 1 + j) % len(stream)] for j in range(7)]
        assert [mask.tobytes() for mask in row[LEGAL]] == wanted
    batch = rows.stack([row, next(iter(rows.scoring_rows(b"to", 3)))])
    assert (batch[LEGAL][1, -1] == 255).all()
    assert rows.is_exact
    assert rows.columns[LEGAL] == (np.dtype(np.uint8), batch[LEGAL].shape[1:])
    assert rows.fingerprint != plain.fingerprint


@pytest.mark.parametrize("codec", CODECS)
def test_the_last_ids_decide_the_state(codec: Codec) -> None:
    """At every place of texts full of white space, whose words begin otherwise than at the beginning of a text."""
    canonical = CanonicalRows(codec, 12).canonical
    pieces = [b" ", b"  ", b"\n", b"\t", b"to", b"be", b"1", b"'tis", b"!!", b"\xc3\xa9", b"\xff"]
    for seed in range(4):
        ids = codec.encode(b"".join(np.random.default_rng(seed).choice(pieces, 400).tolist()))
        states = canonical.states_of(ids)
        for end, state in enumerate(states):
            assert canonical.state_after(ids[max(0, end - canonical.memory) : end]) == state


@pytest.mark.parametrize("codec", CODECS)
def test_each_message_of_a_chat_is_masked_as_a_text_of_its_own(codec: Codec) -> None:
    """Marks are legal everywhere, and after one the encoder begins anew."""
    chat = ChatCodec(codec)
    rows, below = CanonicalRows(chat, 12), CanonicalRows(codec, 12).canonical
    canonical, texts = rows.canonical, [b"to be", b"", b" or not", b"to"]
    ids, expected, ends = [], [], []
    for text in texts:
        own = codec.encode(text).tolist()
        ids += [*own, chat.role_ids["user"]]
        expected += below.states_of(own).tolist()
        ends.append(len(ids))
    states = canonical.states_of(ids)
    assert states.tolist() == [*expected, 0]
    for end, state in enumerate(states):
        assert canonical.state_after(ids[max(0, end - canonical.memory) : end]) == state
        assert canonical.states_of(ids[end:], int(state)).tolist() == states[end:].tolist()
    legal = np.unpackbits(canonical.legal_rows(states), axis=1, count=chat.vocab_size, bitorder="little")
    assert legal[:, codec.vocab_size :].all()
    assert (legal[:, : codec.vocab_size] == np.unpackbits(
        below.legal_rows(states), axis=1, count=codec.vocab_size, bitorder="little")).all()  # fmt: skip
    assert not rows.is_exact  # with marks, which decode to nothing, a text has other spellings


@pytest.mark.parametrize("codec", CODECS)
def test_all_spellings_of_short_texts_share_the_probability_of_one(codec: Codec) -> None:
    """Unmasked, other spellings have some; masked, they have none, and the encoder's has more."""
    model, text = make(codec), b"to be"
    ids = {codec.decode([number]): number for number in range(codec.vocab_size)}
    cuts = [[*places] for n in range(len(text)) for places in itertools.combinations(range(1, len(text)), n)]
    spellings = []
    for places in cuts:
        parts = [text[a:b] for a, b in itertools.pairwise([0, *places, len(text)])]
        if all(part in ids for part in parts):
            spellings.append([ids[part] for part in parts])
    assert len(spellings) > 2
    own = codec.encode(text).tolist()
    states = CanonicalRows(codec, 12).canonical
    legal = []
    for spelling in spellings:
        try:
            states.states_of(spelling)
        except DataError:
            continue
        legal.append(spelling)
    assert legal == [own]
    unmasked = evaluate(model, codec, [TEXT])
    masked = evaluate(model, codec, [TEXT], rows=CanonicalRows(codec, 12))
    assert masked.bits_per_byte < unmasked.bits_per_byte
    assert (masked.is_exact, unmasked.is_exact) == (True, False)


@functools.cache
def pieces_of(codec: Codec) -> list[bytes]:
    return [codec.decode([number]) for number in range(codec.vocab_size)]


def beginnings(codec: Codec, text: bytes) -> list[list[int]]:
    """The encodings whose bytes begin with a text, and of which the last id is the first to reach its end."""
    pieces = pieces_of(codec)
    found, open_ids = [], [[]] if text else []
    while open_ids:
        ids = open_ids.pop()
        rest = text[sum(len(pieces[number]) for number in ids) :]
        for number, piece in enumerate(pieces):
            if piece[: len(rest)] == rest[: len(piece)]:
                longer = [*ids, number]
                if codec.encode(codec.decode(longer)).tolist() == longer:
                    (found if len(piece) >= len(rest) else open_ids).append(longer)
    return found if text else [[]]


@pytest.mark.slow
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("context", [b"", b"be, to b", b"be, be, tt"])
def test_probabilities_of_the_next_byte_sum_to_one(codec: Codec, context: bytes) -> None:
    """Of texts that begin with the context, those that go on with each byte and the one that ends make up the whole.

    A text begins with some bytes as often as with any of the encodings that reach their end first.
    """
    model = make(codec, canonical=True)
    rows = model.rows(codec)

    def costs(texts: list[bytes]) -> torch.Tensor:
        batch = rows.stack([next(iter(rows.scoring_rows(text, 12))) for text in texts])
        with torch.no_grad():
            return model.nats({name: torch.from_numpy(column) for name, column in batch.items()}).double()

    def chances(texts: list[bytes]) -> torch.Tensor:
        """The probabilities that a text begins with each of some, float64[texts]."""
        encodings = [(number, ids) for number, text in enumerate(texts) for ids in beginnings(codec, text)]
        total = torch.zeros(len(texts), dtype=torch.float64)
        for (number, ids), row in zip(encodings, costs([codec.decode(ids) for _, ids in encodings]), strict=True):
            total[number] += (-row[: len(ids)].sum()).exp()
        return total

    (whole,) = chances([context])
    follows = chances([context + bytes([byte]) for byte in range(256)]) / whole  # [256]
    own = codec.encode(context).tolist()
    end = (-costs([context])[0, : len(own) + 1].sum()).exp() / whole
    assert float(follows.sum() + end) == pytest.approx(1.0, abs=1e-5)
    assert (len(beginnings(codec, context)) > 1) == bool(context)  # tokens may reach beyond it


@pytest.mark.parametrize("codec", CODECS)
def test_a_model_with_masks_trains_scores_and_generates_by_them(codec: Codec) -> None:
    model = make(codec, canonical=True)
    rows = model.rows(codec)
    assert isinstance(rows, CanonicalRows)
    batch = {name: torch.from_numpy(column) for name, column in
             rows.stack([next(iter(rows.scoring_rows(document, 12))) for document in DOCUMENTS]).items()}  # fmt: skip
    nats = model.nats(batch)
    assert nats.isfinite().all()
    nats.sum().backward()
    assert model.head.weight.grad is not None
    assert model.head.weight.grad.isfinite().all()
    num_masked = 0
    for seed in range(3):  # what is drawn is what the encoder gives for its bytes
        stepper = model.stepper(codec, 2)
        stepper.begin([b"to b", b""])
        generator, drawn = torch.Generator().manual_seed(seed), []
        for _ in range(30):
            weights = stepper.weights()[:, :-1].softmax(-1)  # never the end
            num_masked += int((weights == 0).any(1).sum())
            drawn.append(torch.multinomial(weights, 1, generator=generator).flatten().tolist())
            stepper.push(drawn[-1])
        for lane, prompt in enumerate((b"to b", b"")):
            ids = codec.encode(prompt).tolist() + [symbols[lane] for symbols in drawn]
            assert codec.encode(codec.decode(ids)).tolist() == ids
    assert num_masked > 0
    assert "".join(generate(model, codec, b"to b", max_tokens=10))


def test_pieces_of_the_logits_keep_their_masks() -> None:
    torch.manual_seed(0)
    hidden, head = torch.randn(2, 5, 4, requires_grad=True), Head(torch.randn(20, 4))
    legal = torch.randint(256, (2, 5, 3), dtype=torch.uint8)
    targets = torch.full((2, 5), 19)
    whole = head_nats(hidden, head, targets, None, legal)
    torch.testing.assert_close(head_nats(hidden, head, targets, 60, legal), whole)
    by_hand = -only_legal(head(hidden), legal).log_softmax(-1)[..., 19]
    torch.testing.assert_close(whole, by_hand)
    assert whole.isfinite().all()


def test_codecs_without_masks_are_refused() -> None:
    with pytest.raises(ConfigError, match="codec is byte, for which there is no exact mask"):
        CanonicalRows(ByteCodec(), 4)
    other = BPECodec(BPE.train(["to be or not"], vocab_size=260))
    with pytest.raises(ConfigError, match=r"another pattern than bpe\.WORD_PATTERN"):
        CanonicalRows(other, 4)
    words = EqualInfoCodec(Codebook.train(TEXT, bits=9, pattern="whitespace"))
    with pytest.raises(ConfigError, match=r"has the pattern 'whitespace'; .* within_words"):
        CanonicalRows(words, 4)
    with pytest.raises(ConfigError, match="no exact mask"):
        CanonicalRows(EqualInfoCodec(Codebook.train(TEXT, bits=16), token_bits=8), 4)


def test_ids_of_a_codebook_are_legal_iff_they_are_an_encoding() -> None:
    """Every sequence of three strings over a small alphabet."""
    book = Codebook.train(b"abababba abaab" * 30, bits=9)
    steps = CanonicalSteps(book)
    small = [number for number, string in enumerate(book.strings) if set(string) <= set(b"ab") and len(string) < 4]
    legal = 0
    for ids in itertools.product(small, repeat=3):
        is_encoding = book.encode(book.decode(ids)).tolist() == list(ids)
        try:
            steps.states_of(ids)
        except DataError:
            assert not is_encoding, ids
        else:
            assert is_encoding, ids
            legal += 1
    assert 20 < legal < len(small) ** 3 / 2
    assert steps.legal_tokens(steps.INITIAL).all()
    assert steps.num_states == book.num_tokens + 1
