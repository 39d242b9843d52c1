"""Properties of single codecs: an alphabet against its definition, appending, batches and threads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastcompress.bpe import BPE
from fastcompress.codec import BPECodec, ByteCodec, CharCodec
from fastcompress.data.encode import encode_documents

# Bytes of every kind: anything, text, and text cut and joined at the wrong places.
texts = st.text(max_size=60).map(str.encode)
any_bytes = st.one_of(
    st.binary(max_size=200),
    texts,
    st.tuples(texts, st.integers(0, 20), st.binary(max_size=3)).map(lambda t: t[2] + t[0][t[1] :]),
)
SAMPLE = "It was the best of times, it was the worst of times; <|end|> ééé 123 1234 \U0001f600\n".encode() * 9
WORDS = BPECodec(BPE.train([SAMPLE], vocab_size=290, special_tokens=("<|end|>",)))


@given(st.text(max_size=60), st.text(min_size=1, max_size=60))
def test_char_codec_round_trips_its_alphabet(text, more):
    documents = [text.encode(), more.encode()]
    codec = CharCodec.train(documents)
    assert codec.characters == "".join(sorted(set(text + more)))
    tokens = codec.encode(documents[0])
    assert tokens.tolist() == [codec.characters.index(character) for character in text]
    assert codec.decode(tokens) == documents[0]
    assert codec.byte_lengths(tokens).tolist() == [len(character.encode()) for character in text]


@pytest.mark.parametrize("codec", [ByteCodec(), CharCodec.train([SAMPLE])], ids=lambda codec: codec.name)
@given(data=st.data())
def test_stable_codecs_extend_on_append(codec, data):
    text = data.draw(st.text("It was the bé\U0001f600", max_size=40)).encode()
    more = data.draw(st.text("It was the bé\U0001f600", max_size=40)).encode()
    assert codec.max_unstable_tokens == 0
    assert codec.encode(text + more).tolist() == [*codec.encode(text), *codec.encode(more)]


@given(st.lists(any_bytes, max_size=12), st.integers(1, 3), st.integers(1, 300))
def test_threads_and_batches_change_nothing(documents, num_threads, batch_bytes):
    codec = WORDS
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fastcompress.data.encode._BATCH_BYTES", batch_bytes)
        encoded = list(encode_documents(documents, codec, num_threads=num_threads))
    assert [document for document, _ in encoded] == documents
    assert [ids.tolist() for _, ids in encoded] == [codec.encode(document).tolist() for document in documents]
