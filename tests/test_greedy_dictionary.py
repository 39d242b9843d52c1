"""Greedy dictionaries against the definition: encoding, legality, files, training, and what is refused."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import pickle
import random
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastcompress as fc
from fastcompress.codec import GreedyDictionaryCodec, codec_from_spec
from fastcompress.errors import ConfigError, DataError, FormatError, OutputError, SurrogateError, UnknownTokenError
from fastcompress.greedy_dictionary import CanonicalStates, GreedyDictionary
from tests.reference import greedy_dictionary as oracle
from tests.reference.codebook import encode, sequences

VECTORS = Path(__file__).parent / "vectors" / "greedy_dictionary.json"
SINGLES = [bytes([b]) for b in range(256)]
SAMPLE = (
    b"It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness"
    b"don't ((say)) 123 4567 \xc3\xa9\xc3\xa9\xc3\xa9 \xff\xfe   \n\n  \t it's aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"
) * 8
EXAMPLE = GreedyDictionary.from_strings([*SINGLES, b"the", b"then"])
WORDS = GreedyDictionary.train(SAMPLE, 330)
UNSPLIT = GreedyDictionary.train(SAMPLE, 330, within_words=False)
texts = st.one_of(
    st.binary(max_size=100),
    st.lists(st.sampled_from([b"it was ", b"the ", b"t", b" ", b"\n", b"  ", b"age", b"aaaa", b"'s", b"12"])).map(
        b"".join
    ),
    st.integers(0, len(SAMPLE)).map(lambda i: SAMPLE[i : i + 60]),
)
letters = st.lists(st.sampled_from(b"abc"), min_size=1, max_size=6).map(bytes)
some_strings = st.sets(letters, max_size=12)
each_dictionary = pytest.mark.parametrize("words", [EXAMPLE, WORDS, UNSPLIT], ids=["example", "words", "unsplit"])


def of(strings: set[bytes]) -> GreedyDictionary:
    return GreedyDictionary.from_strings({*SINGLES, *strings})


def spelled(words: GreedyDictionary, text: bytes, **options: Any) -> list[bytes]:
    return [words.strings[token] for token in words.encode(text, **options)]


# --- Encoding and decoding -------------------------------------------------------------------------------


@each_dictionary
@given(data=texts)
def test_encodes_as_defined_and_comes_back(words: GreedyDictionary, data: bytes) -> None:
    ids = words.encode(data)
    expected = encode(set(words.strings), data)
    assert ids.dtype == np.uint32
    assert [words.strings[i] for i in ids] == expected
    assert words.decode(ids) == words.decode(ids.tolist()) == data
    assert words.byte_lengths(ids).tolist() == [len(token) for token in expected]
    narrow = words.encode(data, np.uint16)
    assert narrow.dtype == np.uint16
    assert narrow.tolist() == ids.tolist()
    assert words.decode(narrow) == data


@given(strings=some_strings, data=st.lists(letters, max_size=12).map(b"".join))
def test_any_strings_encode_as_defined(strings: set[bytes], data: bytes) -> None:
    words = of(strings)
    assert spelled(words, data) == encode(set(words.strings), data)


def test_the_example_of_the_format() -> None:
    assert EXAMPLE.encode(b"thens the").tolist() == [118, 115, 32, 117]
    assert spelled(of({b"then"}), b"the then") == [b"t", b"h", b"e", b" ", b"then"]


def encode_quickly(strings: Sequence[bytes], text: bytes) -> list[bytes]:
    """The same as the oracle's, which looks at every length."""
    by_first = {first: [s for s in strings if s[0] == first] for first in range(256)}
    longest_first = {first: sorted(some, key=len, reverse=True) for first, some in by_first.items()}
    tokens, position = [], 0
    while position < len(text):
        token = next(s for s in longest_first[text[position]] if text.startswith(s, position))
        tokens.append(token)
        position += len(token)
    return tokens


@pytest.mark.parametrize("size", [1, 255, 5_000, 70_000, 200_000])
def test_long_texts_are_joined_exactly(size: int) -> None:
    """Texts walked in several places at once: words, runs, and walks that always go too far."""
    rng = random.Random(size)
    text = bytes(rng.choices(SAMPLE, k=size // 3)) + b"a" * (size - 2 * (size // 3)) + (SAMPLE * 200)[: size // 3]
    for words in (WORDS, UNSPLIT, of({b"aa", b"a" * 254 + b"b"}), of({b"a" * 254 + b"b"})):
        expected = encode_quickly(words.strings, text)
        for num_threads in (1, 2, 3):
            assert spelled(words, text, num_threads=num_threads) == expected


@given(st.lists(texts, max_size=8), st.integers(1, 3))
def test_batches_are_encode_of_each(data: list[bytes], num_threads: int) -> None:
    for dtype in (np.uint32, np.uint16):
        ids, offsets = WORDS.encode_batch(data, dtype, num_threads=num_threads)
        assert len(offsets) == len(data) + 1
        for i, text in enumerate(data):
            assert ids[offsets[i] : offsets[i + 1]].tolist() == WORDS.encode(text).tolist()


@given(strings=some_strings, data=st.lists(letters, max_size=6), more=st.lists(letters, max_size=4))
def test_few_of_the_last_tokens_may_change(strings: set[bytes], data: list[bytes], more: list[bytes]) -> None:
    words = of(strings)
    before, after = words.encode(b"".join(data)).tolist(), words.encode(b"".join(data + more)).tolist()
    num_stable = max(0, len(before) - words.states.max_unstable_tokens)
    assert after[:num_stable] == before[:num_stable]


def test_how_many_tokens_may_change() -> None:
    assert of(set()).states.max_unstable_tokens == 0
    assert EXAMPLE.states.max_unstable_tokens == 2  # t h, and then e
    assert of({b"abcdef", b"ab"}).states.max_unstable_tokens == 4  # ab c d e, and then f


# --- Legality --------------------------------------------------------------------------------------------


def check_all_sequences(strings: set[bytes], alphabet: bytes, max_bytes: int) -> int:
    """Every sequence of tokens: legal step by step if and only if it is the encoding of its bytes. Returns how many."""
    words = of(strings)
    states = words.states
    every = set(words.strings)
    tokens = [s for s in words.strings if set(s) <= set(alphabet)]
    ids = {s: words.strings.index(s) for s in tokens}
    rows = [states.legal_tokens(state) for state in range(states.num_states)]
    count = 0
    for sequence in sequences(tokens, max_bytes):
        state, is_legal = states.INITIAL, True
        for place, token in enumerate(sequence):
            legal = states.is_legal(state, ids[token])
            assert legal == rows[state][ids[token]] == oracle.is_legal(every, sequence[:place], token)
            if not legal:
                is_legal = False
                break
            state = states.advance(state, ids[token])
        assert is_legal == oracle.is_canonical(every, sequence)
        count += 1
    return count


def test_every_small_dictionary_over_two_letters() -> None:
    """Every set of up to three of the 12 strings of 2 or 3 letters, and every sequence of up to 5 bytes."""
    longer = [bytes(s) for n in (2, 3) for s in itertools.product(b"ab", repeat=n)]
    chosen = [set(some) for n in range(4) for some in itertools.combinations(longer, n)]
    assert len(chosen) == 299
    assert sum(check_all_sequences(strings, b"ab", 5) for strings in chosen) > 30_000


@pytest.mark.parametrize("seed", range(12))
def test_random_dictionaries_over_three_letters(seed: int) -> None:
    rng = random.Random(seed)
    strings = {bytes(rng.choices(b"abc", k=rng.randrange(2, 6))) for _ in range(rng.randrange(1, 8))}
    check_all_sequences(strings, b"abc", 5)


@pytest.mark.parametrize("seed", range(8))
def test_long_strings_of_one_letter(seed: int) -> None:
    """Many strings pending at once."""
    rng = random.Random(seed)
    check_all_sequences({b"a" * rng.randrange(2, 12) for _ in range(3)} | {b"aab"}, b"ab", 9)


def test_pairs_are_not_enough() -> None:
    t, h, e = (EXAMPLE.strings.index(s) for s in (b"t", b"h", b"e"))
    states = EXAMPLE.states
    for pair in ((t, h), (h, e)):
        states.states_of(pair)
    with pytest.raises(DataError, match=f"id {e} at position 2 is illegal"):
        states.states_of([t, h, e])


@each_dictionary
@given(data=texts)
def test_encodings_are_legal_and_their_states_those_of_the_steps(words: GreedyDictionary, data: bytes) -> None:
    ids = words.encode(data)
    states = words.states
    of_ids = states.states_of(ids)
    assert of_ids.dtype == np.uint32
    assert of_ids.shape == (len(ids) + 1,)
    state = states.INITIAL
    for token, before in zip(ids.tolist(), of_ids.tolist(), strict=False):
        assert state == before
        state = states.advance(state, token)
    assert state == of_ids[-1]
    bits = np.unpackbits(states.legal_rows(of_ids[:-1]), axis=1, bitorder="little")
    assert bits[np.arange(len(ids)), ids].all()
    assert not bits[:, words.num_tokens :].any()
    middle = len(ids) // 2
    assert states.states_of(ids[middle:], int(of_ids[middle])).tolist() == of_ids[middle:].tolist()


@given(strings=some_strings, sequence=st.lists(st.integers(0, 30), max_size=8))
@settings(max_examples=300)
def test_sequences_are_legal_iff_canonical(strings: set[bytes], sequence: list[int]) -> None:
    words = of(strings)
    tokens = [s for s in words.strings if set(s) <= set(b"abc")]
    chosen = [tokens[i % len(tokens)] for i in sequence]
    ids = [words.strings.index(s) for s in chosen]
    if oracle.is_canonical(set(words.strings), chosen):
        words.states.states_of(ids)
    else:
        with pytest.raises(DataError, match="is illegal there"):
            words.states.states_of(ids)


@each_dictionary
def test_every_state_is_reached(words: GreedyDictionary) -> None:
    prefixes = {s[:n] for s in words.strings for n in range(1, len(s))}
    reached = {int(words.states.states_of(words.encode(prefix))[-1]) for prefix in prefixes}
    assert reached == set(range(1, words.states.num_states))
    assert len(prefixes) == words.states.num_states - 1


def test_words_clear_the_state() -> None:
    """Nothing is pending before a letter that follows a symbol, and so on."""
    ids = WORDS.encode(SAMPLE)
    of_ids = WORDS.states.states_of(ids)[:-1]
    strings = [WORDS.strings[i] for i in ids]
    for state, before, after in zip(of_ids[1:].tolist(), strings[:-1], strings[1:], strict=True):
        if before[-1:].isalpha() and not after[:1].isalpha() and after[0] < 0x80:
            assert WORDS.states.is_legal(state, WORDS.strings.index(after[:1]))


# --- Identity and files ----------------------------------------------------------------------------------


@each_dictionary
def test_strings_and_lengths(words: GreedyDictionary) -> None:
    assert len(words) == words.num_tokens == len(words.strings)
    assert list(words.strings) == sorted(set(words.strings))
    assert words.lengths.tolist() == [len(s) for s in words.strings]
    with pytest.raises(ValueError, match="read-only"):
        words.lengths[0] = 1


def test_copies_and_equality() -> None:
    again = GreedyDictionary.from_strings(reversed(WORDS.strings))
    assert again == WORDS
    assert hash(again) == hash(WORDS)
    assert WORDS != UNSPLIT
    assert WORDS != "words"
    for same in (copy.copy(WORDS), copy.deepcopy(WORDS), pickle.loads(pickle.dumps(WORDS))):
        assert same == WORDS
        assert same.encode(SAMPLE).tolist() == WORDS.encode(SAMPLE).tolist()
    states = pickle.loads(pickle.dumps(WORDS.states))
    assert states.legal_rows([3, 1]).tolist() == WORDS.states.legal_rows([3, 1]).tolist()
    assert repr(EXAMPLE) == f"<GreedyDictionary: num_tokens=258, fingerprint={EXAMPLE.fingerprint[:8]}>"
    assert repr(EXAMPLE.states) == "<CanonicalStates: num_states=4, num_tokens=258>"


def test_files_come_back_and_damage_is_found(tmp_path: Path) -> None:
    blob = WORDS.to_bytes()
    assert GreedyDictionary.from_bytes(blob) == WORDS
    assert GreedyDictionary.from_bytes(blob).to_bytes() == blob
    assert WORDS.fingerprint == hashlib.sha256(blob[:-32]).hexdigest() == blob[-32:].hex()
    assert GreedyDictionary.is_file(blob)
    assert not GreedyDictionary.is_file(blob[:7])
    WORDS.save(tmp_path / "words")
    assert GreedyDictionary.load(tmp_path / "words").strings == WORDS.strings
    assert codec_from_spec(tmp_path / "words") == GreedyDictionaryCodec(WORDS)
    (tmp_path / "damaged").write_bytes(blob[:-1])
    with pytest.raises(FormatError, match="damaged: dictionary with a wrong SHA-256"):
        codec_from_spec(tmp_path / "damaged")
    for place in range(0, len(blob), 37):
        with pytest.raises(FormatError):
            GreedyDictionary.from_bytes(blob[:place])
        with pytest.raises(FormatError):
            GreedyDictionary.from_bytes(blob[:place] + bytes([blob[place] ^ 1]) + blob[place + 1 :])
    with pytest.raises(DataError, match=r"GreedyDictionary\.save wrote"):
        GreedyDictionary.load(tmp_path / "none")
    with pytest.raises(OutputError):
        WORDS.save(tmp_path / "none" / "words")


def file_of(strings: list[bytes], count: int | None = None, version: int = 1) -> bytes:
    """A file as FORMAT.md has it, with the right checksum."""
    body = b"\x89FCGDI\r\n" + version.to_bytes(4, "little")
    body += (len(strings) if count is None else count).to_bytes(4, "little")
    body += bytes(len(s) for s in strings) + b"".join(strings)
    return body + hashlib.sha256(body).digest()


def test_files_are_as_the_format_says() -> None:
    assert EXAMPLE.to_bytes() == file_of(list(EXAMPLE.strings))
    strings = list(EXAMPLE.strings)
    for wrong, message in (
        (file_of(strings, version=2), "format version 2"),
        (file_of(strings, 257), "do not fit"),
        (file_of(strings, 259), "do not fit"),
        (file_of(strings, 2**32 - 1), "do not fit"),
        (file_of(strings[::-1]), "out of order"),
        (file_of([*strings, strings[-1]]), "out of order"),
        (file_of([b"", *strings]), "1 to 255 bytes, not 0"),
        (file_of(strings[3:]), "256 to 65536"),
        (file_of([*strings[1:], b"\xff\xff"]), "all 256 single bytes"),
        (file_of([]), "256 to 65536"),
    ):
        with pytest.raises(FormatError, match=message):
            GreedyDictionary.from_bytes(wrong)


def test_golden_vectors() -> None:
    """Version 1 of the file, and training as it is now."""
    vectors = json.loads(VECTORS.read_text())
    for vector in vectors["dictionaries"]:
        words = of({bytes.fromhex(s) for s in vector["strings"]})
        assert words.fingerprint == vector["fingerprint"]
        for text, ids in vector["texts"]:
            assert words.encode(bytes.fromhex(text)).tolist() == ids
    assert {"words": WORDS.fingerprint, "unsplit": UNSPLIT.fingerprint} == vectors["trained"]


# --- Training --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_rounds", [0, 1, 5])
def test_training_is_as_said(num_rounds: int) -> None:
    documents = [SAMPLE[:120], b"", *(SAMPLE[begin : begin + 70] for begin in range(100, 240, 20)), b"\0\1" * 20]
    words = GreedyDictionary.train(documents, 300, within_words=False, num_rounds=num_rounds)
    assert set(words.strings) == oracle.trained(set(SINGLES), documents, 300, num_rounds)


def test_no_text_counts_too_much_in_training() -> None:
    rng = random.Random(4)
    documents = [b"".join(rng.choices([b"qzx", b"zzq", b"xqw"], k=90))]
    documents += [b"".join(rng.choices([b"ab", b"cd", b"ef", b"gh", b"ij", b"."], k=12)) for _ in range(20)]
    words = GreedyDictionary.train(documents, 264, within_words=False, num_rounds=3)
    assert set(words.strings) == oracle.trained(set(SINGLES), documents, 264, 3)
    assert set(words.strings) != oracle.trained(set(SINGLES), documents, 264, 3, most_in_text=1000)


@pytest.mark.parametrize("options", [{}, {"within_words": False}, {"num_rounds": 0}, {"start": [b" of", b"th"]}])
def test_training_does_not_depend_on_threads(options: dict[str, Any]) -> None:
    documents = [SAMPLE[:700], b"", SAMPLE * 100, b"\x00\x01" * 500]
    one, three = (GreedyDictionary.train(documents, 320, num_threads=n, **options) for n in (1, 3))
    assert one.to_bytes() == three.to_bytes()
    assert len(one) == 320


def test_training_learns() -> None:
    rng = random.Random(1)
    vocabulary = [bytes(rng.choices(b"abcdeiou", k=rng.randrange(2, 9))) for _ in range(200)]
    text = b" ".join(rng.choices(vocabulary, k=5000))
    grown = GreedyDictionary.train(text, 511, num_rounds=0)
    trained = GreedyDictionary.train(text, 511)
    closed = fc.equal_info.Codebook.train(text, 9, within_words=True)
    assert len(trained.encode(text)) < len(grown.encode(text))
    assert len(trained.encode(text)) < len(closed.encode(text))
    assert GreedyDictionary.train(text, 511, start=trained.strings, num_rounds=0) == trained


def kind_of_byte(byte: int) -> str:
    if byte in b" \t\n\v\f\r":
        return "white"
    if byte >= 128 or chr(byte).isalpha():
        return "letter"
    return "digit" if chr(byte).isdigit() else "symbol"


def test_words_stay_whole() -> None:
    for string in WORDS.strings:
        word = string[1:] if string[:1] == b" " and not string.isspace() else string
        assert len(set(map(kind_of_byte, word))) == 1, string
    assert any(string.startswith(b" t") for string in WORDS.strings)
    assert any(b" " in string[1:].rstrip() for string in UNSPLIT.strings)


# --- What is refused -------------------------------------------------------------------------------------


def test_what_is_wrong_is_said() -> None:
    for strings, message in (
        (SINGLES[1:], "256 to 65536 strings, not 255"),
        ([*SINGLES, *(n.to_bytes(3, "big") for n in range(65281))], "256 to 65536 strings, not 65537"),
        ([*SINGLES, b"ab", b"ab"], "are the same or out of order"),
        ([*SINGLES, b""], "1 to 255 bytes, not 0"),
        ([*SINGLES, b"a" * 256], "1 to 255 bytes, not 256"),
        ([*SINGLES[1:], b"ab"], "all 256 single bytes"),
        ([*SINGLES, *(n.to_bytes(2, "big") + b"a" * 200 for n in range(2000))], "more than 262144 distinct prefixes"),
    ):
        with pytest.raises(ConfigError, match=message):
            GreedyDictionary.from_strings(strings)
    for options, message in (
        ({"size": 255}, "size is 255; it must be 256 to 65536"),
        ({"size": 65537}, "size is 65537"),
        ({"num_rounds": -1}, "num_rounds is -1"),
        ({"num_threads": 0}, "num_threads is 0"),
        ({"size": 300, "start": [b"a b"]}, r"start\[0\] does not keep to one word"),
        ({"size": 257, "start": [b"ab", b"ac"]}, "start has 258 strings"),
        ({"size": 300, "start": [b"a" * 256]}, "1 to 255 bytes"),
        ({"size": 300, "start": [b""]}, "1 to 255 bytes"),
    ):
        with pytest.raises(ConfigError, match=message):
            GreedyDictionary.train(SAMPLE, **options)
    with pytest.raises(DataError, match=r"the text given supports only 25\d strings, not 300"):
        GreedyDictionary.train(b"abcabc", 300)
    with pytest.raises(ConfigError, match="dtype is int64"):
        WORDS.encode(b"", np.int64)
    with pytest.raises(ConfigError, match="num_threads is 0"):
        WORDS.encode(b"", num_threads=0)
    for call in (WORDS.encode, lambda t: WORDS.encode_batch([t]), lambda t: GreedyDictionary.train([t], 300)):
        with pytest.raises(SurrogateError, match="position 1"):
            call("a\ud800")


def test_wrong_types_are_named() -> None:
    any_of: Any = lambda value: value  # noqa: E731
    for call, message in (
        (lambda: GreedyDictionary.from_strings(any_of(b"abc")), "strings is b'abc'"),
        (lambda: GreedyDictionary.from_strings(any_of(None)), "strings is None"),
        (lambda: GreedyDictionary.from_strings(any_of(["a"])), r"strings\[0\] is 'a'"),
        (lambda: GreedyDictionary.train(b"", 300, start=any_of([1])), r"start\[0\] is 1"),
        (lambda: GreedyDictionary.train(b"", any_of(300.0)), "size is 300.0"),
        (lambda: GreedyDictionary.train(any_of(5), 300), "data is 5"),
        (lambda: GreedyDictionary.from_bytes(any_of(10)), "file is 10"),
        (lambda: GreedyDictionary.is_file(any_of("abc")), "blob is 'abc'"),
        (lambda: GreedyDictionary.load(any_of(None)), "path is None"),
        (lambda: WORDS.decode([0.5]), "ids are float64"),
        (lambda: WORDS.decode(any_of([[1]])), "ids are int64 of shape"),
        (lambda: WORDS.states.states_of([0.5]), "ids are float64"),
        (lambda: WORDS.states.states_of([1], any_of("0")), "state is '0'"),
        (lambda: WORDS.states.advance(0, any_of(1.0)), "token is 1.0"),
        (lambda: WORDS.states.advance(any_of(None), 1), "state is None"),
        (lambda: WORDS.states.legal_rows([0.5]), "states are float64"),
        (lambda: GreedyDictionaryCodec(any_of("x")), "dictionary is 'x'"),
    ):
        with pytest.raises(TypeError, match=message):
            call()


def test_ids_and_states_out_of_range() -> None:
    end, num_states = WORDS.num_tokens, WORDS.states.num_states
    for ids in ([end], [0, 5, 70000], [-1], [2**40]):
        for method in (WORDS.decode, WORDS.byte_lengths, WORDS.states.states_of):
            with pytest.raises(UnknownTokenError, match="is not one of the dictionary's 330"):
                method(np.array(ids))
    with pytest.raises(UnknownTokenError):
        WORDS.decode(np.array([0, end], np.uint16))
    for token in (end, -1, 2**40):
        with pytest.raises(UnknownTokenError, match="is not one of"):
            WORDS.states.advance(0, token)
    for state in (num_states, -1, 2**40, 2**70):
        for call in (WORDS.states.legal_tokens, lambda s: WORDS.states.advance(s, 1)):
            with pytest.raises(ConfigError, match=f"state is {state}; it must be 0 to {num_states - 1}"):
                call(state)
        with pytest.raises(ConfigError, match="state is"):
            WORDS.states.states_of([1], state)
    with pytest.raises(ConfigError, match=rf"states\[1\] is {num_states}"):
        WORDS.states.legal_rows([0, num_states])
    assert WORDS.states.legal_rows([]).shape == (0, (330 + 7) // 8)
    assert WORDS.states.states_of([]).tolist() == [0]
    assert WORDS.decode([]) == b""


def test_many_threads_use_one_dictionary() -> None:
    words = GreedyDictionary.from_strings(WORDS.strings)
    expected = WORDS.encode(SAMPLE * 50).tolist(), WORDS.states.states_of(WORDS.encode(SAMPLE)).tolist()
    results: list[Any] = []

    def work() -> None:
        results.append((words.encode(SAMPLE * 50).tolist(), words.states.states_of(words.encode(SAMPLE)).tolist()))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 8


def test_is_public() -> None:
    assert fc.greedy_dictionary.GreedyDictionary is GreedyDictionary
    assert isinstance(WORDS.states, CanonicalStates)
