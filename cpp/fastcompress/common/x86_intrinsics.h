// <immintrin.h> without warnings about the header itself: at low optimization levels, gcc 12 reports the vectors that
// the header leaves undefined on purpose (GCC bug 105593).
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
