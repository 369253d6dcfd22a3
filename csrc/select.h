// The k largest entries of a row. Few of them: compare whole vectors with the current threshold and insert the rare
// candidates. Many: quickselect on a copy. Among ties the lower label wins, in both.
#pragma once

#include "rows.h"

namespace SHORTLIST_ISA {

template <class T> struct Top {
  T* value;        // the smallest one last
  int32_t* index;
  int64_t count;   // fewer than asked for where the row has fewer entries above -inf
  bool sorted;     // in descending order; else only the last is in place

  T smallest() const { return value[count - 1]; }
};

template <class T> void sink_smallest(Top<T>& top) {  // ties: the highest label last
  int64_t low = 0;
  for (int64_t i = 1; i < top.count; ++i)
    if (top.value[i] < top.value[low] || (top.value[i] == top.value[low] && top.index[i] > top.index[low])) low = i;
  const T v = top.value[low];
  const int32_t j = top.index[low];
  top.value[low] = top.value[top.count - 1];
  top.index[low] = top.index[top.count - 1];
  top.value[top.count - 1] = v;
  top.index[top.count - 1] = j;
}

template <class T> inline void insert(Top<T>& top, int64_t k, T v, int32_t j) {
  int64_t p = top.count < k ? top.count++ : k - 1;
  for (; p > 0 && top.value[p - 1] < v; --p) {
    top.value[p] = top.value[p - 1];
    top.index[p] = top.index[p - 1];
  }
  top.value[p] = v;
  top.index[p] = j;
}

template <class T> void select_by_insertion(const T* x, int64_t n_padded, int64_t k, Top<T>& top) {
  constexpr int W = kWidth<T>;
  T threshold = kMinusInf<T>;
  for (int64_t j = 0; j < n_padded; j += 4 * W) {
    const Vec<T> t = splat(threshold);
    const Int<T> hit[4] = {load(x + j) > t, load(x + j + W) > t, load(x + j + 2 * W) > t, load(x + j + 3 * W) > t};
    if (!bits<T>(hit[0] | hit[1] | hit[2] | hit[3])) continue;
    for (int q = 0; q < 4; ++q) {
      for (unsigned m = bits<T>(hit[q]); m; m &= m - 1) {
        const int64_t i = j + q * W + __builtin_ctz(m);
        if (!(x[i] > threshold)) continue;  // the threshold has risen since the comparison
        insert(top, k, x[i], int32_t(i));
        if (top.count == k) threshold = top.smallest();
      }
    }
  }
}

// The k-th largest value of a[0..n), which it reorders; 1 <= k <= n, no NaN.
template <class T> T quickselect(T* a, int64_t n, int64_t k) {
  int64_t low = 0, high = n - 1, want = k - 1;
  while (low < high) {
    const T x = a[low], y = a[low + (high - low) / 2], z = a[high];
    const T pivot = x > y ? (y > z ? y : (x > z ? z : x)) : (x > z ? x : (y > z ? z : y));
    int64_t i = low, j = high;
    while (i <= j) {
      while (a[i] > pivot) ++i;
      while (pivot > a[j]) --j;
      if (i <= j) {
        const T swap = a[i];
        a[i++] = a[j];
        a[j--] = swap;
      }
    }
    if (want <= j) high = j;
    else if (want >= i) low = i;
    else break;
  }
  return a[want];
}

template <class T> void select_by_quickselect(const T* x, int64_t n, int64_t k, Top<T>& top) {
  static thread_local Scratch scratch;
  T* copy = scratch.get<T>(n);
  int64_t usable = 0;
  for (int64_t j = 0; j < n; ++j)
    if (x[j] > kMinusInf<T>) copy[usable++] = x[j];
  if (usable == 0) return;
  const T pivot = usable <= k ? kMinusInf<T> : quickselect(copy, usable, k);
  int64_t ties = k;
  for (int64_t j = 0; j < n; ++j) ties -= x[j] > pivot;
  for (int64_t j = 0; j < n && top.count < k; ++j) {
    const bool tied = x[j] == pivot && pivot > kMinusInf<T>;
    if (x[j] > pivot || (tied && ties > 0)) {
      ties -= tied;
      top.value[top.count] = x[j];
      top.index[top.count++] = int32_t(j);
    }
  }
  sink_smallest(top);
}

// x: no NaN, padded with -inf. The result lives until the next call on this thread.
template <class T> Top<T> select_top(const T* x, int64_t n, int64_t k) {
  static thread_local Scratch values, indices;
  Top<T> top{values.get<T>(padded(k + 1)), indices.get<int32_t>(padded(k + 1)), 0, k <= 160};
  if (k <= 0) return top;
  if (top.sorted) select_by_insertion(x, padded(n), k, top);
  else select_by_quickselect(x, n, k, top);
  return top;
}

// Take one label out of the selection, or its smallest where the label is not in it.
template <class T> void drop(Top<T>& top, int64_t label, int64_t k) {
  int64_t at = 0;
  while (at < top.count && top.index[at] != label) ++at;
  if (at == top.count) {
    if (top.count > k) --top.count;
  } else {
    for (--top.count; at < top.count; ++at) {
      top.value[at] = top.value[at + 1];
      top.index[at] = top.index[at + 1];
    }
  }
  if (!top.sorted && top.count) sink_smallest(top);
}

}  // namespace SHORTLIST_ISA
