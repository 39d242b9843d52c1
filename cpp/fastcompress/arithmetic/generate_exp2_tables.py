"""Writes exp2_tables.cc: python generate_exp2_tables.py > exp2_tables.cc && clang-format -i exp2_tables.cc"""

from decimal import ROUND_HALF_EVEN, Decimal, getcontext

getcontext().prec = 60


def table(name: str, root: int) -> str:
    """round(2^31 2^(-j / root)) for j in [0, 256). No value is near enough to a half for 60 digits to leave doubt."""
    values = [Decimal(2) ** (31 - Decimal(j) / root) for j in range(256)]
    numbers = ", ".join(f"{int(value.to_integral_value(ROUND_HALF_EVEN))}u" for value in values)
    return f"const uint32_t {name}[256] = {{{numbers}}};"


print("// Written by generate_exp2_tables.py: not to be changed by hand.")
print('#include "fastcompress/arithmetic/exp2_tables.h"\n')
print("namespace fastcompress::arithmetic {\n")
print(table("kExp2Coarse", 256))
print(table("kExp2Fine", 65536))
print("\n}  // namespace fastcompress::arithmetic")
