// Rows side by side: element l of a vector belongs to row l, label after label, so that short rows cost no more than
// long ones. Squares of as many rows as labels are turned over in registers.
#pragma once

#include <utility>

#include "simd.h"

namespace SHORTLIST_ISA {

// Both vectors' elements by their numbers, those of b behind those of a.
template <class T, class Pick, int... L>
inline Vec<T> picked(Vec<T> a, Vec<T> b, Pick, std::integer_sequence<int, L...>) {
  return __builtin_shufflevector(a, b, Pick::at(L)...);
}
template <class T, class Pick> inline Vec<T> picked(Vec<T> a, Vec<T> b, Pick pick) {
  return picked<T>(a, b, pick, std::make_integer_sequence<int, kWidth<T>>());
}

// Of each 16 bytes: the lower (upper) halves of a and b, pieces of Size elements taking turns.
template <int W, int Lane, int Size, bool Upper> struct Interleaved {
  static constexpr int at(int l) {
    const int lane = l / Lane * Lane, piece = (l - lane) / Size, within = l % Size;
    return lane + (Upper ? Lane / 2 : 0) + piece / 2 * Size + within + (piece % 2 ? W : 0);
  }
};
// Pieces of Size elements: the first of each two of a and b (the second of each two), those of a before those of b.
template <int W, int Size, bool Second> struct Exchanged {
  static constexpr int at(int l) {
    const bool odd = l / Size % 2;
    return Second ? (odd ? W + l : l + Size) : (odd ? W + l - Size : l);
  }
};

template <int Size, class T> inline void exchange_pieces(Vec<T>* v) {
  constexpr int W = kWidth<T>;
  if constexpr (Size < W) {
    for (int i = 0; i < W; ++i) {
      if (i & Size) continue;
      const Vec<T> a = v[i], b = v[i + Size];
      v[i] = picked<T>(a, b, Exchanged<W, Size, false>());
      v[i + Size] = picked<T>(a, b, Exchanged<W, Size, true>());
    }
    exchange_pieces<2 * Size, T>(v);
  }
}

// A square of kWidth vectors: rows become columns. First within each 16 bytes, then pieces of 16 bytes.
template <class T> inline void transpose(Vec<T>* v) {
  constexpr int W = kWidth<T>, Lane = 16 / sizeof(T);
  for (int i = 0; i < W; i += Lane) {
    if constexpr (Lane == 4) {
      const Vec<T> low = picked<T>(v[i], v[i + 1], Interleaved<W, 4, 1, false>());
      const Vec<T> high = picked<T>(v[i], v[i + 1], Interleaved<W, 4, 1, true>());
      const Vec<T> next = picked<T>(v[i + 2], v[i + 3], Interleaved<W, 4, 1, false>());
      const Vec<T> last = picked<T>(v[i + 2], v[i + 3], Interleaved<W, 4, 1, true>());
      v[i] = picked<T>(low, next, Interleaved<W, 4, 2, false>());
      v[i + 1] = picked<T>(low, next, Interleaved<W, 4, 2, true>());
      v[i + 2] = picked<T>(high, last, Interleaved<W, 4, 2, false>());
      v[i + 3] = picked<T>(high, last, Interleaved<W, 4, 2, true>());
    } else {
      const Vec<T> low = picked<T>(v[i], v[i + 1], Interleaved<W, 2, 1, false>());
      v[i + 1] = picked<T>(v[i], v[i + 1], Interleaved<W, 2, 1, true>());
      v[i] = low;
    }
  }
  exchange_pieces<Lane, T>(v);
}

// Squares of W labels, the last one moved back so that it ends with the row; body(first label, how many there are).
template <class T, class F> inline void for_squares(int64_t n, F&& body) {
  constexpr int W = kWidth<T>;
  for (int64_t j = 0; j < n; j += W) body(j + W <= n || n < W ? j : n - W, n < W ? n : int64_t(W));
}

// W rows of n labels into vectors, one for each label.
template <class T> void rows_to_lanes(const T* const* row, int64_t n, T* lanes) {
  constexpr int W = kWidth<T>;
  for_squares<T>(n, [&](int64_t j, int64_t count) {
    Vec<T> v[W];
    for (int l = 0; l < W; ++l) v[l] = count == W ? load(row[l] + j) : load_part(row[l] + j, count, T(0));
    transpose<T>(v);
    for (int64_t q = 0; q < count; ++q) store(lanes + (j + q) * W, v[q]);
  });
}

// And back, into the first `rows` rows.
template <class T> void lanes_to_rows(const T* lanes, int64_t n, int64_t rows, T* const* row) {
  constexpr int W = kWidth<T>;
  for_squares<T>(n, [&](int64_t j, int64_t count) {
    Vec<T> v[W];
    for (int q = 0; q < W; ++q) v[q] = load(lanes + (q < count ? j + q : j) * W);  // not `count` of them: GCC would copy memory
    transpose<T>(v);
    for (int64_t l = 0; l < rows; ++l) {
      if (count == W) store(row[l] + j, v[l]);
      else store_part(row[l] + j, v[l], count);
    }
  });
}

// As many numbers as a vector of double has, from and to memory in another type.
template <class T> inline Vec<double> load_wide(const T* p) {
  typename Elements<T, kWidth<double>>::Vec v;
  std::memcpy(&v, p, sizeof v);
  return __builtin_convertvector(v, Vec<double>);
}
template <class T> inline void store_narrow(T* p, Vec<double> x) {
  const auto v = __builtin_convertvector(x, typename Elements<T, kWidth<double>>::Vec);
  std::memcpy(p, &v, sizeof v);
}

}  // namespace SHORTLIST_ISA
