// The two sides of a row of a label matrix: the absent labels' scores in place, the present labels in a list.
#pragma once

#include "balance.h"
#include "codes.h"

namespace SHORTLIST_ISA {

template <class T> struct LabelSides {
  T* scores;               // padded: the absent labels' (with `known`, the present ones' too), -inf elsewhere
  T* minus_present;        // minus the present labels' scores, padded with -inf
  int32_t* present_label;  // which labels those are
  T* code;                 // padded with -1
  int64_t present = 0, absent = 0;
  T peak = kMinusInf<T>, minus_peak = kMinusInf<T>;  // the largest of scores and of minus_present
  bool nan = false;                                  // a known label's score is a NaN
};

// What is infinite is made finite (bounded). Lives until the next call on this thread.
template <class T> LabelSides<T> read_sides(LossCall& call, int64_t row, bool known = false) {
  static thread_local Scratch scores, minus, labels, codes;
  constexpr int W = kWidth<T>;
  const int64_t n = call.n;
  const T* s = row_of<const T>(call.scores, row, n);
  LabelSides<T> sides;
  sides.scores = scores.get<T>(padded(n));
  sides.minus_present = minus.get<T>(padded(n) + 64);
  sides.present_label = labels.get<int32_t>(n + 1);
  sides.code = codes.get<T>(padded(n));
  read_codes(call, row, 0, n, sides.code);
  fill(sides.code + n, padded(n) - n, T(-1));
  const Vec<T> none = splat(kMinusInf<T>), low = splat(known ? T(0) : T(-0.5));
  const Vec<T> high = splat(known ? T(1) : T(0.5));
  Vec<T> peak = none;
  Int<T> nan{}, absent{};
  for (int64_t j = 0; j < padded(n); j += W) {
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
