"""The .fcz archive of cpp/fastcompress/archive/FORMAT.md, sentence by sentence: container and decoder of lz."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

MAGIC = bytes.fromhex("89464346435a0d0a")
M32, M64 = (1 << 32) - 1, (1 << 64) - 1
P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
ESCAPE_BITS = [0] * 8 + [2, 3, 4, 6, 8, 12, 20, 30]
TRUST = [0, 10000, 18000] + [28000] * 6 + [41000] * 31 + [49152] * 216


def rotl(x: int, by: int) -> int:
    return (x << by | x >> (64 - by)) & M64


def xxh64(data: bytes, seed: int) -> int:
    def lane(acc: int, word: int) -> int:
        return rotl((acc + word * P2) & M64, 31) * P1 & M64

    i, h = 0, (seed + P5) & M64
    if len(data) >= 32:
        acc = [(seed + P1 + P2) & M64, (seed + P2) & M64, seed & M64, (seed - P1) & M64]
        while i + 32 <= len(data):
            acc = [lane(a, w) for a, w in zip(acc, struct.unpack_from("<4Q", data, i), strict=True)]
            i += 32
        h = sum(rotl(a, by) for a, by in zip(acc, (1, 7, 12, 18), strict=True)) & M64
        for a in acc:
            h = ((h ^ lane(0, a)) * P1 + P4) & M64
    h = (h + len(data)) & M64
    while i + 8 <= len(data):
        h = (rotl(h ^ lane(0, struct.unpack_from("<Q", data, i)[0]), 27) * P1 + P4) & M64
        i += 8
    if i + 4 <= len(data):
        h = (rotl(h ^ struct.unpack_from("<I", data, i)[0] * P1 & M64, 23) * P2 + P3) & M64
        i += 4
    for byte in data[i:]:
        h = rotl(h ^ byte * P5 & M64, 11) * P1 & M64
    h = (h ^ h >> 33) * P2 & M64
    h = (h ^ h >> 29) * P3 & M64
    return h ^ h >> 32


@dataclass
class Model:
    slowest: int
    t: int = 0
    c: list[int] = field(default_factory=lambda: [2048 * i for i in range(17)])

    def learn(self, x: int) -> None:
        a = min((self.t + 2).bit_length() - 1, self.slowest)
        for i in range(1, 16):
            self.c[i] += ((i if i <= x else 32752 + i) - self.c[i]) >> a
        self.t = min(self.t + 1, 255)


def mix(p: list[int], q: Model) -> list[int]:
    return [a + ((b - a) * TRUST[q.t] >> 16) for a, b in zip(p, q.c, strict=True)]


class Message:
    """The range decoder of arithmetic/range_coder.h."""

    def __init__(self, data: bytes) -> None:
        self.data, self.next, self.range = data, 8, M64
        self.code = int.from_bytes(data[:8].ljust(8, b"\0"), "big")

    def symbol(self, c: list[int]) -> int:
        scale = self.range >> 15
        x = next(x for x in range(16) if self.code // scale < c[x + 1])
        self.code -= scale * c[x]
        self.range = scale * (c[x + 1] - c[x])
        if self.range < 1 << 32:
            self.range <<= 32
            self.code = self.code << 32 | int.from_bytes(self.data[self.next : self.next + 4].ljust(4, b"\0"), "big")
            self.next += 4
        return x


class Lz:
    def __init__(self, coded: bytes, n: int) -> None:
        self.models_low, at, sizes = coded[0], 1, []
        for _ in range(4):
            size = shift = 0
            while True:
                byte, at = coded[at], at + 1
                size |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            sizes.append(size)
        messages = []
        for size in sizes:
            messages.append(Message(coded[at : at + size]))
            at += size
        self.commands, self.distances, self.upper, self.lower = messages
        self.bits = int.from_bytes(coded[at:], "little")
        self.models: dict[object, Model] = {}
        b = n.bit_length()
        self.n, self.m, self.out = n, 6 if b < 14 else 20 - b if b < 20 else 0, bytearray()

    def model(self, *key: object, slowest: int = 7) -> Model:
        return self.models.setdefault(key, Model(slowest))

    def symbol(self, message: Message, *key: object) -> int:
        model = self.model(*key)
        x = message.symbol(model.c)
        model.learn(x)
        return x

    def plain(self, count: int) -> int:
        value, self.bits = self.bits & ((1 << count) - 1), self.bits >> count
        return value

    def number(self, *key: object) -> int:
        if (v := self.symbol(self.commands, *key, "first")) < 15:
            return v
        b = self.symbol(self.commands, *key, "bucket")
        return 15 + sum(1 << e for e in ESCAPE_BITS[:b]) + self.plain(ESCAPE_BITS[b])

    def literal(self, expected: int | None) -> None:
        p1, p2, p3 = reversed((b"\0\0\0" + self.out[-3:])[-3:])
        k = 0x9E3779B1
        h2, h3 = (p1 + 256 * p2) * k & M32, (p1 + 256 * p2 + 65536 * p3) * 0x85EBCA6B & M32
        byte = 0
        for message, u in ((self.upper, None), (self.lower, True)):
            if u is None:
                keys = [("one", p1), ("two", h2 >> (20 + self.m)), ("three", h3 >> (18 + self.m))]
            else:
                g2, g3 = ((h + 0x3C6EF372 * byte) * k & M32 for h in (h2, h3))
                keys = [("one", p1, byte), ("2low", g2 >> (18 + self.m)), ("3low", g3 >> (16 + self.m))]
            if expected is not None:
                keys[2] = ("expected", expected) if u is None else ("expected", expected, byte)
            one, two, three = (self.model(*key, slowest=5) for key in keys)
            x = message.symbol(mix(mix(one.c, two), three))
            for model in (one, two, three):
                model.learn(x)
            byte = byte << 4 | x
        self.out.append(byte)

    def decode(self) -> bytes:
        recent, before, distance = [1, 2, 3, 4], (0, 2, 0), 0
        while True:
            r0, l0, k0 = before
            run = self.number("run", (min(l0, 17) - 2) // 4 * 4 + min(r0, 3))
            for i in range(run):
                self.literal(self.out[-distance] if i == 0 and distance else None)
            if len(self.out) >= self.n:
                return bytes(self.out)
            kind = self.symbol(self.distances, "kind", 4 * min(run, 3) + k0 // 4)
            length = 2 + self.number("length", kind)
            if kind < 4:
                distance = recent.pop(kind)
            else:
                j, low = kind - 4, None
                o = self.symbol(self.distances, "slot", j) << 2 * j
                if self.models_low and j >= 2:
                    low = self.symbol(self.distances, "low", j)
                    o += (self.plain(2 * j - 4) << 4) + low
                else:
                    o += self.plain(2 * j)
                distance = 1 + 16 * (4**j - 1) // 3 + o
                recent.pop()
            recent.insert(0, distance)
            for _ in range(length):
                self.out.append(self.out[-distance])
            before = (run, length, kind)


def header(method: int, level: int, block_bytes: int, content_bytes: int | None, model: bytes = bytes(32)) -> bytes:
    fields = struct.pack("<8sIBBBBIIQ32s", MAGIC, 1, method, level, content_bytes is not None, 0, block_bytes, 0,
                         content_bytes or 0, model)  # fmt: skip
    return fields + struct.pack("<Q", xxh64(fields, 0))


def stored(data: bytes, block_bytes: int = 1 << 16) -> bytes:
    """An archive of lz that stores every block."""
    out = header(1, 1, block_bytes, len(data))
    seed = chain = xxh64(out, 1)
    blocks = [data[i : i + block_bytes] for i in range(0, len(data), block_bytes)]
    for i, raw in enumerate(blocks):
        fields = struct.pack("<BII", 1, len(raw), len(raw))
        checksum = struct.pack("<Q", xxh64(raw, xxh64(raw, xxh64(fields, (seed + i) & M64))))
        chain = xxh64(checksum, chain)
        out += fields + checksum + raw
    end = struct.pack("<BQQ", 0, len(blocks), len(data))
    return out + end + struct.pack("<Q", xxh64(end, chain))


def decompress(archive: bytes) -> bytes:
    """The content of a good archive; AssertionError for most others."""
    method, _, flags, _, block_bytes, _, content_bytes = struct.unpack_from("<BBBBIIQ", archive, 12)
    assert (archive[:12], method) == (MAGIC + struct.pack("<I", 1), 1)
    assert struct.unpack_from("<Q", archive, 64)[0] == xxh64(archive[:64], 0)
    seed = chain = xxh64(archive[:72], 1)
    out, at, i = b"", 72, 0
    while archive[at]:
        tag, size, coded_size, checksum = struct.unpack_from("<BIIQ", archive, at)
        coded = archive[at + 17 : at + 17 + coded_size]
        assert len(out) == i * block_bytes
        assert 1 <= size <= block_bytes
        raw = coded if tag == 1 else Lz(coded, size).decode()
        assert checksum == xxh64(raw, xxh64(coded, xxh64(archive[at : at + 9], (seed + i) & M64))), "wrong checksum"
        chain = xxh64(struct.pack("<Q", checksum), chain)
        out, at, i = out + raw, at + 17 + coded_size, i + 1
    _, count, size, checksum = struct.unpack("<BQQQ", archive[at:])
    assert (count, size, checksum) == (i, len(out), xxh64(archive[at : at + 17], chain))
    assert not flags or content_bytes == len(out)
    return out
