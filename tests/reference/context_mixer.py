"""The context mixer as context_mixer/FORMAT.md defines it, in plain Python: short, obvious, and very slow.

Integers only. Names are those of context_mixer/FORMAT.md. Nothing here is shared with the package.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

MASK32 = 2**32 - 1
MASK64 = 2**64 - 1
NUM_CONTEXTS = 9
MAX_LOGIT = 2047
MAX_SUM = 2815
MIXER_ROWS = (512, 256)


def clamp(value: int, least: int, greatest: int) -> int:
    return max(least, min(value, greatest))


# The logistic tables.


def make_squash() -> list[int]:
    exponential = 2**40
    upper = []
    for _ in range(MAX_SUM + 1):
        upper.append(min((2**56) // (2**40 + exponential), 65535))
        exponential -= (exponential * 4286589600) >> 40
    lower = [max(65536 - p, 1) for p in upper]
    return lower[:0:-1] + upper


SQUASH = make_squash()  # [x + MAX_SUM]


def squash(x: int) -> int:
    return SQUASH[x + MAX_SUM]


def make_stretch() -> list[int]:
    table = []
    x = -MAX_LOGIT
    for p in range(4096):
        while x < MAX_LOGIT and squash(x) < 16 * p:
            x += 1
        table.append(x)
    return table


STRETCH = make_stretch()


# Bit histories.

CAPS = (41, 28, 16, 10, 7, 6, 6)
MAX_WITH_LAST = 9


def is_allowed(zeros: int, ones: int) -> bool:
    lesser = min(zeros, ones)
    return lesser < len(CAPS) and max(zeros, ones) <= CAPS[lesser]


def has_last(zeros: int, ones: int) -> bool:
    return zeros > 0 and ones > 0 and zeros + ones <= MAX_WITH_LAST


HISTORIES = [
    (total - ones, ones, last)
    for total in range(64)
    for ones in range(total + 1)
    if is_allowed(total - ones, ones)
    for last in range(2 if has_last(total - ones, ones) else 1)
]
NUMBER = {history: number for number, history in enumerate(HISTORIES)}


def discounted(n: int) -> int:
    return n if n <= 2 else 3 + (n - 3) // 3


def next_history(state: int, bit: int) -> int:
    zeros, ones, _ = HISTORIES[state]
    same, other = ((ones if bit else zeros) + 1, discounted(zeros if bit else ones))
    while not is_allowed(same, other):
        if same >= other:
            same -= 1
        else:
            other -= 1
    zeros, ones = (other, same) if bit else (same, other)
    return NUMBER[zeros, ones, bit if has_last(zeros, ones) else 0]


# Learned probabilities of bits: [p22, count].


def update_adaptive(entry: list[int], bit: int, limit: int) -> None:
    p, count = entry
    step = 0 if count == 1023 else 2**17 // (2 * count + 3)
    target = 2**22 - 1 if bit else 0
    entry[0] = p + (((target - p) * step) >> 16)
    entry[1] = count + 1 if count < limit else count


# Contexts.


class Record(NamedTuple):
    length: int
    column: int
    above: int
    after: int
    above2: int


@dataclass
class Cursor:
    last: int = 0
    num_known: int = 0
    word: int = 0
    previous_word: int = 0
    is_cut: bool = True

    def append(self, byte: int) -> None:
        self.last = (self.last << 8 | byte) & MASK64
        self.num_known = min(self.num_known + 1, 8)
        is_upper = 65 <= byte <= 90
        if is_upper or 97 <= byte <= 122 or byte >= 128:
            self.word = (self.word + byte + (33 if is_upper else 1)) * 0x2F0B4C47 & MASK32
        else:
            if self.word != 0:
                self.previous_word = self.word
            self.word = 0
            self.is_cut = False

    def keys(self, record: Record | None = None) -> list[int]:
        cut = int(self.is_cut)
        values = [(self.last & (256**order - 1), min(self.num_known, order)) for order in (1, 2, 3, 4, 6)]
        values.append((self.word, cut))
        values.append((self.previous_word << 32 | self.word, cut))
        if record is None:
            values.append((self.last & 0xFF00, min(self.num_known, 2)))
            values.append((self.last & 0xFF000000, min(self.num_known, 4)))
        else:
            table = record.above | record.length << 40
            values.append((table | record.after << 8 | (self.last & 255) << 16, 15))
            values.append((table | record.above2 << 8 | record.column << 16, 15))
        return [make_key(i, value, variant) for i, (value, variant) in enumerate(values)]


def make_key(context: int, value: int, variant: int) -> int:
    tag = context << 4 | variant
    h = (value + tag) * 0xD6E8FEB86659FD93 & MASK64
    h = (h ^ h >> 32) * 0xD6E8FEB86659FD93 & MASK64
    return ((h ^ h >> 32) + (tag << 32)) & MASK64


# Refinements: rows of 17 points.


def refine(row: list[int], total: int) -> tuple[int, int]:
    """The refined probability, and the number of the nearest point."""
    x = clamp(total, -MAX_LOGIT, MAX_LOGIT) + 2048
    i, weight = divmod(x, 256)
    return (row[i] * (256 - weight) + row[i + 1] * weight) // 256, i + (weight >= 128)


def refinement_row(context: int, partial: int) -> int:
    return ((context * 0x9E3779B1 + partial * 0x85EBCA6B) & MASK32) >> (32 - 13)


@dataclass
class MatchModel:
    log2_entries: int
    ring: dict[int, int] = field(default_factory=dict)
    table: dict[int, int] = field(default_factory=dict)
    position: int = 0
    pointer: int = 0
    length: int = 0
    entry: int | None = None

    def byte(self, position: int) -> int:
        return self.ring.get(position % 2 ** (self.log2_entries + 4), 0)

    def append(self, byte: int, cursor: Cursor) -> None:
        self.ring[self.position % 2 ** (self.log2_entries + 4)] = byte
        goes_on = self.length > 0 and self.byte(self.pointer) == byte
        self.position = (self.position + 1) & MASK32
        if goes_on:
            self.pointer = (self.pointer + 1) & MASK32
            self.length = min(self.length + 1, 65535)
        else:
            self.length = 0
        if cursor.num_known < 6:
            self.entry = None
        else:
            self.entry = ((cursor.last & (2**48 - 1)) * 0x9E3779B97F4A7C15 & MASK64) >> (64 - self.log2_entries)

    def find(self) -> None:
        if self.entry is None:
            return
        if self.length == 0:
            self.pointer = self.table.get(self.entry, 0)
            if self.pointer > 0:
                while self.length < 32 and self.byte(self.pointer - 1 - self.length) == self.byte(
                    self.position - 1 - self.length
                ):
                    self.length += 1
                if self.length < 6:
                    self.length = 0
        self.table[self.entry] = self.position


@dataclass
class RecordModel:
    positions: dict[int, int] = field(default_factory=dict)
    candidate: int = 0
    score: int = 0

    def append(self, cursor: Cursor, position: int) -> None:
        three = cursor.last & 0xFFFFFF
        if cursor.num_known < 3 or three == (three & 255) * 0x010101:
            return
        entry = (three * 0x9E3779B1 & MASK32) >> 20
        distance = (position - self.positions.get(entry, 0)) & MASK32
        self.positions[entry] = position
        if distance == self.candidate:
            self.score = min(self.score + 2, 255)
        elif self.score > 0:
            self.score -= 1
        else:
            self.candidate = distance if 2 <= distance <= 1023 else 0

    def record(self, memory: MatchModel) -> Record | None:
        length, position = self.candidate, memory.position
        if self.score < 64:
            return None
        above, after, above2 = (memory.byte(position - d) for d in (length, length - 1, 2 * length))
        return Record(length, position % length, above, after, above2)


def match_bucket(length: int) -> int:
    if length < 16:
        return length
    if length < 32:
        return 16 + (length - 16) // 4
    return 20 if length < 64 else 21 if length < 512 else 22


class ContextMixer:
    """Learns while it predicts, unless it is frozen."""

    def __init__(self, log2_table_bytes: int = 24, log2_match_entries: int = 20, window: int = 0) -> None:
        self.log2_buckets = log2_table_bytes - 6
        self.window = window
        self.is_frozen = False
        self.buckets: dict[int, list[list[int]]] = {}  # of four slots, each a check and 15 histories
        self.by_history = [
            [[((2 * n1 + 1) << 22) // (2 * (n0 + n1) + 2), 0] for n0, n1, _ in HISTORIES] for _ in range(NUM_CONTEXTS)
        ]
        for entries in self.by_history:
            entries[0][1] = 1023
        failures = [2**22 // (bucket + 2) for bucket in range(24)]
        self.by_match = [[[failure, 0], [2**22 - failure, 0]] for failure in failures]
        first = [2**30 // 4] * NUM_CONTEXTS + [0] * 3
        self.weights = [[list(first) for _ in range(rows)] for rows in MIXER_ROWS]
        self.final_weights = [[65536 // 2] * 2 for _ in range(256)]
        row = [squash(clamp((i - 8) * 256, -MAX_LOGIT, MAX_LOGIT)) for i in range(17)]
        self.refinements = [list(row) for _ in range(2**13)]
        self.num_bytes = 0
        self.match: MatchModel | None = MatchModel(log2_match_entries) if log2_match_entries else None
        self.reset()

    def reset(self) -> None:
        self.cursor = Cursor()
        self.in_window = 0
        self.records = RecordModel()
        if self.match:
            self.match.length = 0

    def freeze(self) -> None:
        self.is_frozen = True
        self.match = None
        self.reset()

    # A byte is coded by begin_byte(); then eight times predict() and learn(bit).

    def begin_byte(self) -> None:
        if self.window and self.in_window == self.window:
            self.cursor = Cursor()
            self.in_window = 0
        self.keys = self.cursor.keys(self.records.record(self.match) if self.match else None)
        if self.match:
            self.match.find()
        self.partial = 1
        self.begin_nibble()

    def begin_nibble(self) -> None:
        self.node = 0
        self.slots = [self.slot((key + self.partial) * 0x9E3779B97F4A7C15 & MASK64) for key in self.keys]

    def slot(self, h: int) -> list[int]:
        check = h >> 24 & 255
        bucket = self.buckets.get(h >> (64 - self.log2_buckets), [[0] * 16 for _ in range(4)])
        for slot in bucket:
            if slot[0] == check:
                if not self.is_frozen:
                    self.buckets[h >> (64 - self.log2_buckets)] = bucket
                return slot
        if self.is_frozen:
            return [0] * 16
        self.buckets[h >> (64 - self.log2_buckets)] = bucket
        slot = min(bucket, key=lambda slot: slot[1])
        slot[:] = [check] + [0] * 15
        return slot

    def match_input(self) -> tuple[int, int]:
        """Bucket and expected bit; bucket 0: no match."""
        num_bits = self.partial.bit_length() - 1
        if not self.match or self.match.length == 0:
            return 0, 0
        expected = self.match.byte(self.match.pointer)
        if (expected | 256) >> (8 - num_bits) != self.partial:
            return 0, 0
        return match_bucket(self.match.length), expected >> (7 - num_bits) & 1

    def predict(self) -> int:
        """The probability of a one, in units of 2^-16."""
        partial = self.partial
        num_bits = partial.bit_length() - 1
        self.states = [slot[1 + self.node] for slot in self.slots]
        p12 = [self.by_history[i][state][0] >> 10 for i, state in enumerate(self.states)]
        self.match_now = bucket, expected_bit = self.match_input()
        match_p12 = self.by_match[bucket][expected_bit][0] >> 10 if bucket else 2048
        self.inputs = [*(STRETCH[p] for p in p12), STRETCH[match_p12], match_p12 - 2048, 256]

        num_seen = sum(state != 0 for state in self.states[:5])
        kind = 0 if bucket == 0 else 1 + bucket // 8 if bucket < 16 else 3 if bucket < 21 else bucket - 17
        self.rows = (kind * 64 + num_seen * 8 + num_bits, self.cursor.last & 255)
        self.sums = []
        for weights, row in zip(self.weights, self.rows, strict=True):
            total = sum(x * (w >> 16) for x, w in zip(self.inputs, weights[row], strict=True))
            self.sums.append(clamp(total >> 14, -MAX_LOGIT, MAX_LOGIT))
        final = sum(w * s for w, s in zip(self.final_weights[partial], self.sums, strict=True)) >> 16
        final = clamp(final, -MAX_SUM, MAX_SUM)
        self.final_p = squash(final)

        self.refinement = self.refinements[refinement_row(self.cursor.last & 0xFFFF, partial)]
        refined, self.nearest = refine(self.refinement, final)
        return clamp((self.final_p + refined + 1) // 2, 1, 65535)

    def learn(self, bit: int) -> None:
        if not self.is_frozen:
            self.adapt(bit)
        self.partial = 2 * self.partial + bit
        self.node = 2 * self.node + 1 + bit
        if 16 <= self.partial < 32:
            self.begin_nibble()
        elif self.partial >= 256:
            self.end_byte(self.partial - 256)

    def adapt(self, bit: int) -> None:
        final_error = 65535 * bit - self.final_p
        final_weights = self.final_weights[self.partial]
        rate = 4 + 20 * 16 // (16 + min(self.num_bytes // 2048, 65536))
        for k, (row, s) in enumerate(zip(self.rows, self.sums, strict=True)):
            final_weights[k] = clamp(final_weights[k] + (s * final_error >> 16), -(2**20), 2**20)
            error = clamp((65536 * bit - squash(s)) * rate >> 4, -32768, 32767)
            weights = self.weights[k][row]
            for i, x in enumerate(self.inputs):
                weights[i] = clamp(weights[i] + (x * error >> 2), -(2**30), 2**30)
        for i, state in enumerate(self.states):
            update_adaptive(self.by_history[i][state], bit, 255)
        bucket, expected_bit = self.match_now
        if bucket:
            update_adaptive(self.by_match[bucket][expected_bit], bit, 1022)
        self.refinement[self.nearest] += (65535 * bit - self.refinement[self.nearest]) >> 6
        for slot, state in zip(self.slots, self.states, strict=True):
            slot[1 + self.node] = next_history(state, bit)

    def end_byte(self, byte: int) -> None:
        self.cursor.append(byte)
        self.in_window += 1
        if not self.is_frozen:
            self.num_bytes += 1
        if self.match:
            self.match.append(byte, self.cursor)
            self.records.append(self.cursor, self.match.position)

    def update(self, data: Iterable[int]) -> list[int]:
        """Goes on with these bytes; the probabilities given to ones on the way."""
        probabilities = []
        for byte in data:
            self.begin_byte()
            for shift in range(7, -1, -1):
                probabilities.append(self.predict())
                self.learn(byte >> shift & 1)
        return probabilities

    def distribution(self, context: bytes, precision: int = 16) -> list[int]:
        """Of the byte after a document (or window) that begins with `context`; nothing is learned."""
        saved = self.is_frozen, self.match, self.cursor, self.in_window, self.records
        self.is_frozen, self.match = True, None
        self.reset()
        for byte in context:
            if self.window and self.in_window == self.window:
                self.reset()
            self.cursor.append(byte)
            self.in_window += 1
        totals = {1: 2**precision}
        for partial in range(1, 256):
            self.begin_byte()
            for shift in range(partial.bit_length() - 2, -1, -1):
                self.learn(partial >> shift & 1)
            p1 = self.predict()
            leaves = 256 >> partial.bit_length()
            total = totals[partial]
            totals[2 * partial + 1] = clamp(total * p1 >> 16, leaves, total - leaves)
            totals[2 * partial] = total - totals[2 * partial + 1]
        self.is_frozen, self.match, self.cursor, self.in_window, self.records = saved
        return [totals[256 + byte] for byte in range(256)]

    def serialize(self, params: tuple[int, int, int]) -> bytes:
        out = [b"\x89FCCMX\r\n", struct.pack("<4IBQ", 1, *params, self.is_frozen, self.num_bytes)]
        adaptive = [entry for entries in self.by_history for entry in entries]
        adaptive += [entry for pair in self.by_match for entry in pair]
        out.append(struct.pack(f"<{len(adaptive)}I", *(p << 10 | count for p, count in adaptive)))
        out += [struct.pack("<12i", *row) for rows in self.weights for row in rows]
        out += [struct.pack("<2i", *row) for row in self.final_weights]
        out += [struct.pack("<17H", *row) for row in self.refinements]
        full = sorted(i for i, bucket in self.buckets.items() if any(map(any, bucket)))
        begin = 0
        while begin < 2**self.log2_buckets:
            first = next((i for i in full if i >= begin), 2**self.log2_buckets)
            end = first
            while end in self.buckets and any(map(any, self.buckets[end])):
                end += 1
            out.append(struct.pack("<2I", first - begin, end - first))
            for i in range(first, end):
                out.append(bytes(slot[0] for slot in self.buckets[i]))
                out += [bytes(slot[1:]) for slot in self.buckets[i]]
            begin = end
        body = b"".join(out)
        return body + hashlib.sha256(body).digest()


def encode(probabilities: list[int], data: bytes) -> bytes:
    """The message of these bits under these probabilities: an exact fraction, with the coder's rounding of widths."""
    low, width, num_shifts = 0, 2**64 - 1, 0
    bits = [byte >> shift & 1 for byte in data for shift in range(7, -1, -1)]
    for bit, p1 in zip(bits, probabilities, strict=True):
        bound = (width >> 16) * p1
        if bit:
            width = bound
        else:
            low += bound
            width -= bound
        if width < 2**32:
            width <<= 32
            low <<= 32
            num_shifts += 1
    total_bits = 64 + 32 * num_shifts
    for num_bits in range(32 * num_shifts, total_bits + 1):
        unit = 1 << (total_bits - num_bits)
        value = -(-low // unit) * unit
        if value < low + width:
            num_bytes = -(-num_bits // 8)
            return (value >> (total_bits - num_bits) << (8 * num_bytes - num_bits)).to_bytes(num_bytes, "big")
    raise AssertionError("an interval of at least 2^32 holds a number")


def make_vectors() -> list[dict[str, object]]:
    table = b"".join(bytes([1, 2, 3, 250, 9, i % 7, i, 0, 77, 5, 6, i // 3]) for i in range(60))
    texts = [b"", b"a", b"The cat saw the cat; the CAT saw it.\n" * 9, bytes(range(256)) + bytes(300), table]
    vectors = []
    for data in texts:
        for params in ((12, 10, 0), (14, 0, 0), (12, 12, 11)):
            mixer = ContextMixer(*params)
            vector: dict[str, object] = {
                "params": {
                    "log2_table_bytes": params[0],
                    "log2_match_entries": params[1] or None,
                    "window": params[2] or None,
                },
                "data": data.hex(),
                "message": encode(mixer.update(data), data).hex(),
            }
            mixer.freeze()
            vector["frozen_message"] = encode(mixer.update(data), data).hex()
            row = struct.pack("<256I", *mixer.distribution(data[:5]))
            vector["distribution_sha256"] = hashlib.sha256(row).hexdigest()
            vector["fingerprint"] = hashlib.sha256(mixer.serialize(params)).hexdigest()
            vectors.append(vector)
    return vectors


if __name__ == "__main__":  # python -m tests.reference.context_mixer
    target = Path(__file__).parent.parent / "vectors" / "context-mixer.json"
    target.write_text(json.dumps(make_vectors(), indent=1) + "\n", encoding="utf-8")
