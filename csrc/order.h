// Sorting pairs of value and label, and the value of a given rank. Not std::sort: see Scratch in rows.h.
#pragma once

#include "rows.h"

namespace SHORTLIST_ISA {

struct Ranked {
  double value;
  int32_t label;
};

// Largest first; equal values in the order of their labels.
inline bool before(const Ranked& a, const Ranked& b) {
  return a.value > b.value || (a.value == b.value && a.label < b.label);
}
inline void exchange(Ranked& a, Ranked& b) {
  const Ranked t = a;
  a = b;
  b = t;
}

inline void sort_ranked(Ranked* a, int64_t n) {  // heapsort
  const auto sift = [a](int64_t root, int64_t end) {
    for (int64_t child; (child = 2 * root + 1) < end; root = child) {
      if (child + 1 < end && before(a[child], a[child + 1])) ++child;
      if (!before(a[root], a[child])) return;
      exchange(a[root], a[child]);
    }
  };
  for (int64_t i = n / 2; i-- > 0;) sift(i, n);
  for (int64_t end = n; end-- > 1;) {
    exchange(a[0], a[end]);
    sift(0, end);
  }
}

// The value of rank k (0: the largest) of n numbers above -inf: an interval around it is narrowed by counting.
template <class T> T ranked_value(const T* x, int64_t n, int64_t k) {
  constexpr int W = kWidth<T>;
  constexpr int64_t few = 48, draws = 7;
  const auto count = [&](T pivot, int64_t& greater, int64_t& equal) {
    Int<T> above{}, same{};
    int64_t j = 0;
    for (; j + W <= n; j += W) {
      above -= load(x + j) > pivot;
      same -= load(x + j) == pivot;
    }
    for (greater = equal = 0; j < n; ++j) {
      greater += x[j] > pivot;
      equal += x[j] == pivot;
    }
    for (int l = 0; l < W; ++l) {
      greater += above[l];
      equal += same[l];
    }
  };
  T low = kMinusInf<T>, high = std::numeric_limits<T>::infinity();  // the value lies strictly between
  int64_t skipped = 0, inside = n;                                  // entries from high on, and between
  uint32_t random = 12345;
  while (inside > few) {
    T drawn[draws];
    for (int64_t d = 0; d < draws; ++d) {
      random = random * 1664525u + 1013904223u;
      int64_t j = int64_t(uint64_t(random) * uint64_t(n) >> 32);
      while (!(x[j] > low && x[j] < high)) j = j + 1 < n ? j + 1 : 0;
      int64_t p = d;
      for (; p > 0 && drawn[p - 1] < x[j]; --p) drawn[p] = drawn[p - 1];
      drawn[p] = x[j];
    }
    const T pivot = drawn[draws * (k - skipped) / inside];
    int64_t greater, equal;
    count(pivot, greater, equal);
    if (k < greater) {
      low = pivot;
      inside = greater - skipped;
    } else if (k >= greater + equal) {
      high = pivot;
      inside -= greater + equal - skipped;
      skipped = greater + equal;
    } else {
      return pivot;
    }
  }
  T list[few];
  int64_t listed = 0;
  for (int64_t j = 0; j < n; ++j) {
    if (!(x[j] > low && x[j] < high)) continue;
    int64_t p = listed++;
    for (; p > 0 && list[p - 1] < x[j]; --p) list[p] = list[p - 1];
    list[p] = x[j];
  }
  return list[k - skipped];
}

}  // namespace SHORTLIST_ISA
