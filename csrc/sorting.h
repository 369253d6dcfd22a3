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

inline void sort_ranked(Ranked* a, int64_t n) {  // heapsort; a few in turn, each into its place
  if (n <= 32) {
    for (int64_t i = 1; i < n; ++i) {
      const Ranked one = a[i];
      int64_t p = i;
      for (; p > 0 && before(one, a[p - 1]); --p) a[p] = a[p - 1];
      a[p] = one;
    }
    return;
  }
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

// The value of rank k (0: the largest) of n numbers: quickselect that copies what it keeps, without a branch.
template <class T> T ranked_value(const T* x, int64_t n, int64_t k) {
  static thread_local Scratch memory;
  constexpr int W = kWidth<T>;
  constexpr int64_t draws = 7;
  T* kept = memory.get<T>(n + 1);
  uint32_t random = 12345;
  while (true) {
    // a random entry; where there are many, of a few the one whose rank is about the rank wanted
    T drawn[draws];
    const int64_t tries = n > 512 ? draws : 1;
    for (int64_t d = 0; d < tries; ++d) {
      random = random * 1664525u + 1013904223u;
      const T v = x[uint64_t(random) * uint64_t(n) >> 32];
      int64_t p = d;
      for (; p > 0 && drawn[p - 1] < v; --p) drawn[p] = drawn[p - 1];
      drawn[p] = v;
    }
    const T pivot = drawn[tries * k / n];
    Int<T> above{}, same{};
    int64_t greater = 0, equal = 0, j = 0;
    for (; j + W <= n; j += W) {
      above -= load(x + j) > pivot;
      same -= load(x + j) == pivot;
    }
    for (; j < n; ++j) {
      greater += x[j] > pivot;
      equal += x[j] == pivot;
    }
    for (int l = 0; l < W; ++l) {
      greater += above[l];
      equal += same[l];
    }
    if (k >= greater && k < greater + equal) return pivot;
    int64_t count = 0;
    if (k < greater)
      for (j = 0; j < n; ++j) {
        kept[count] = x[j];
        count += x[j] > pivot;
      }
    else {
      k -= greater + equal;
      for (j = 0; j < n; ++j) {
        kept[count] = x[j];
        count += x[j] < pivot;
      }
    }
    x = kept;
    n = count;
  }
}

}  // namespace SHORTLIST_ISA
