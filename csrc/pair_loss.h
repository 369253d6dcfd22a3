// Present labels above absent ones, all pairs of a row at once:
//   softplus(T_N log sum_absent e^(s/T_N) + T_P log sum_present e^(-s/T_P) + margin), 0 where a side is empty.
// And softmax cross-entropy against the uniform distribution over the present labels.
#pragma once

#include "label_sides.h"

namespace SHORTLIST_ISA {

using shortlist::PairOptions;

// What two sums of exponentials, relative to their largest terms, amount to.
struct PairSums {
  double absent_peak, absent_sum, present_peak, present_sum;

  bool both() const { return !(absent_sum == 0) && !(present_sum == 0); }
  double gap(const PairOptions& o) const {
    const double sums = o.negative_temperature * std::log(absent_sum) + o.positive_temperature * std::log(present_sum);
    return (absent_peak + present_peak) + (sums + o.margin);  // large peaks first: they may cancel
  }
  double loss(const PairOptions& o) const {
    const double all = absent_sum + present_sum;  // NaN where a score is
    return all != all ? all : both() ? softplus(gap(o)) : 0.0;
  }
};

// After this, sides.scores and sides.minus_present hold the exponentials.
template <class T> PairSums pair_sums(const LabelSides<T>& sides, int64_t n, const PairOptions& o) {
  PairSums sums{double(sides.peak), 0, double(sides.minus_peak), 0};
  if (sides.peak > kMinusInf<T>)
    sums.absent_sum = exponentials(sides.scores, padded(n), sides.peak, T(1 / o.negative_temperature)).first;
  if (sides.minus_peak > kMinusInf<T>)
    sums.present_sum = exponentials(sides.minus_present, padded(sides.present), sides.minus_peak, T(1 / o.positive_temperature)).first;
  return sums;
}

// grad = (or, with `add`, grad +=) the row's gradient times `weight`.
template <class T>
void pair_gradient(const LabelSides<T>& sides, int64_t n, const PairSums& sums, const PairOptions& o, double weight, bool add,
                   T* grad) {
  constexpr int W = kWidth<T>;
  if (!sums.both()) {
    if (!add) fill(grad, n, T(0));
    return;
  }
  const double push = weight * sigmoid(sums.gap(o));
  const T down = T(push / sums.absent_sum), up = T(push / sums.present_sum);
  int64_t j = 0;
  for (; j + W <= n; j += W) store(grad + j, add ? load(grad + j) + load(sides.scores + j) * down : load(sides.scores + j) * down);
  for (; j < n; ++j) grad[j] = (add ? grad[j] : T(0)) + sides.scores[j] * down;
  for (int64_t i = 0; i < sides.present; ++i) grad[sides.present_label[i]] -= sides.minus_present[i] * up;
}

template <class T> void pair_rows(LossCall& call, const PairOptions& o) {
  for_rows(call.rows, call.n, 1.5, call.threads, [&](int64_t row) {
    T* grad = row_of<T>(call.grad, row, call.n);
    const LabelSides<T> sides = read_sides<T>(call, row);
    const double weight = sides.present ? weight_of(call, row) : 0.0;
    double loss = sides.nan ? kNaN<double> : 0.0;
    if (weight > 0 && !sides.nan) {
      const PairSums sums = pair_sums(sides, call.n, o);
      loss = sums.loss(o);
      if (grad) pair_gradient(sides, call.n, sums, o, weight, false, grad);
    }
    finish(call, row, loss, weight, grad);
  });
}

template <class T> void multilabel_softmax(LossCall& call, const shortlist::NoOptions&) {
  for_rows(call.rows, call.n, 1.5, call.threads, [&](int64_t row) {
    constexpr int W = kWidth<T>;
    T* grad = row_of<T>(call.grad, row, call.n);
    const LabelSides<T> sides = read_sides<T>(call, row, true);
    const double weight = sides.present ? weight_of(call, row) : 0.0;
    double loss = sides.nan ? kNaN<double> : 0.0;
    if (weight > 0 && !sides.nan) {
      const T peak = sides.peak > kMinusInf<T> ? sides.peak : T(0);
      const double sum = exponentials(sides.scores, padded(call.n), peak, T(1)).first;
      const double share = 1 / double(sides.present);  // of each, not of their sum, which may overflow
      for (int64_t i = 0; i < sides.present; ++i) loss += (double(peak) + double(sides.minus_present[i])) * share;
      loss = loss + (sum > 0 ? std::log(sum) : 0.0);
      if (grad) {
        const T down = T(sum > 0 ? weight / sum : 0.0), up = T(weight / double(sides.present));
        int64_t j = 0;
        for (; j + W <= call.n; j += W) store(grad + j, load(sides.scores + j) * down);
        for (; j < call.n; ++j) grad[j] = sides.scores[j] * down;
        for (int64_t i = 0; i < sides.present; ++i) grad[sides.present_label[i]] -= up;
      }
    }
    finish(call, row, loss, weight, grad);
  });
}

}  // namespace SHORTLIST_ISA
