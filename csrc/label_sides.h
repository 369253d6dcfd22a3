// The two sides of a row of a label matrix: the absent labels' scores in place, the present labels in a list.
#pragma once

#include "balance.h"
#include "codes.h"

namespace SHORTLIST_ISA {

// Where a sparse target stores something of a row, if the rest is absent: the vectors between need no codes.
template <class T> struct StoredPlaces {
  const int64_t* next = nullptr;  // labels, and last one that no row has; null where every label has to be looked at

  StoredPlaces(const LossCall& call, int64_t row) {
    if (call.target_kind == shortlist::kSparse32) read<int32_t>(call, row);
    if (call.target_kind == shortlist::kSparse64) read<int64_t>(call, row);
  }

  // Whether nothing is stored of a vector's labels from `begin` on, which only grows from call to call.
  bool none_from(int64_t begin) {
    if (!next) return false;
    while (*next < begin) ++next;
    return *next >= begin + kWidth<T>;
  }

 private:
  template <class I> void read(const LossCall& call, int64_t row) {
    static thread_local Scratch memory;
    const StoredEntries<I> y(call, row, 0, call.n);
    if (y.rest != 0) return;
    int64_t* label = memory.get<int64_t>(y.count + 1);
    for (int64_t i = 0; i < y.count; ++i) label[i] = int64_t(y.label[i]);
    label[y.count] = INT64_MAX;
    next = label;
  }
};

template <class T> struct LabelSides {
  T* scores;               // padded: the absent labels' (with `known`, the present ones' too), -inf elsewhere
  T* minus_present;        // minus the present labels' scores, padded with -inf
  int32_t* present_label;  // which labels those are
  T* code;                 // padded with -1; where not asked for, not written where StoredPlaces has none
  int64_t present = 0, absent = 0;
  T peak = kMinusInf<T>, minus_peak = kMinusInf<T>;  // the largest of scores and of minus_present
  bool nan = false;                                  // a known label's score is a NaN
};

// What is infinite is made finite (bounded). Lives until the next call on this thread.
template <class T> LabelSides<T> read_sides(LossCall& call, int64_t row, bool known = false, bool every_code = false) {
  static thread_local Scratch scores, minus, labels, codes;
  constexpr int W = kWidth<T>;
  const int64_t n = call.n;
  const T* s = row_of<const T>(call.scores, row, n);
  LabelSides<T> sides;
  sides.scores = scores.get<T>(padded(n));
  sides.minus_present = minus.get<T>(padded(n) + 64);
  sides.present_label = labels.get<int32_t>(n + 1);
  sides.code = codes.get<T>(padded(n));
  StoredPlaces<T> places(call, row);
  const bool few = places.next != nullptr && !every_code;
  if (!few) read_codes(call, row, 0, n, sides.code);
  fill(sides.code + n, padded(n) - n, T(-1));
  const Vec<T> none = splat(kMinusInf<T>), low = splat(known ? T(0) : T(-0.5));
  const Vec<T> high = splat(known ? T(1) : T(0.5));
  Vec<T> peak = none;
  Int<T> nan{}, absent{};
  for (int64_t j = 0; j < padded(n); j += W) {
    if (few && j + W <= n && places.none_from(j)) {
      Vec<T> x = load(s + j);
      nan |= x != x;
      absent -= none == none;
      x = bounded<T>(x);
      peak = x > peak ? x : peak;
      store(sides.scores + j, x);
      continue;
    }
    if (few && j < n) read_codes(call, row, j, n - j < W ? n - j : W, sides.code + j);
    const Vec<T> y = load(sides.code + j);
    Vec<T> x = j + W <= n ? load(s + j) : j < n ? load_part(s + j, n - j, T(0)) : splat<T>(0);
    nan |= (y >= T(0)) & (x != x);
    absent -= y == T(0);
    for (unsigned m = bits<T>(y > T(0)); m; m &= m - 1) {
      const int64_t i = j + __builtin_ctz(m);
      const T v = -bounded(s[i]);
      sides.present_label[sides.present] = int32_t(i);
      sides.minus_present[sides.present++] = v;
      if (v > sides.minus_peak) sides.minus_peak = v;
    }
    x = bounded<T>(x);
    x = ((y >= low) & (y <= high)) ? x : none;
    peak = x > peak ? x : peak;
    store(sides.scores + j, x);
  }
  fill(sides.minus_present + sides.present, padded(sides.present) - sides.present, kMinusInf<T>);
  for (int l = 0; l < W; ++l) {
    sides.absent += absent[l];
    if (peak[l] > sides.peak) sides.peak = peak[l];
  }
  sides.nan = bits<T>(nan) != 0;
  return sides;
}

}  // namespace SHORTLIST_ISA
