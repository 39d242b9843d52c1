// <immintrin.h> without warnings about itself: gcc 12 takes the vectors that it leaves undefined on purpose for mistakes of
// ours, when it inlines them without optimizing much (GCC bug 105593).
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
