// Present labels above absent ones, all pairs of a row at once:
//   softplus(T_N log sum_absent e^(s/T_N) + T_P log sum_present e^(-s/T_P) + margin), 0 where a side is empty.
// And softmax cross-entropy against the uniform distribution over the present labels.
#pragma once

#include "halves.h"

namespace SHORTLIST_ISA {

struct PairOptions {
  double present_temperature, absent_temperature, margin;
};

// What two sums of exponentials, relative to their largest terms, amount to.
struct PairSums {
  double absent_peak, absent_sum, present_peak, present_sum;

  bool both() const { return !(absent_sum == 0) && !(present_sum == 0); }
  double gap(const PairOptions& o) const {
    const double sums = o.absent_temperature * std::log(absent_sum) + o.present_temperature * std::log(present_sum);
    return (absent_peak + present_peak) + (sums + o.margin);  // large peaks first: they may cancel
  }
  double loss(const PairOptions& o) const {
    const double all = absent_sum + present_sum;  // NaN where a score is
    return all != all ? all : both() ? softplus(gap(o)) : 0.0;
  }
};

// After this, h.x and h.minus hold the exponentials.
template <class T> PairSums pair_sums(const Halves<T>& h, int64_t n, const PairOptions& o) {
  PairSums sums{double(h.peak), 0, double(h.minus_peak), 0};
  if (h.peak > kMinusInf<T>)
    sums.absent_sum = exponentials(h.x, padded(n), h.peak, T(1 / o.absent_temperature)).first;
  if (h.minus_peak > kMinusInf<T>)
    sums.present_sum = exponentials(h.minus, padded(h.present), h.minus_peak, T(1 / o.present_temperature)).first;
  return sums;
}

// grad = (or, with `add`, grad +=) the row's gradient times `weight`.
template <class T>
void pair_gradient(const Halves<T>& h, int64_t n, const PairSums& sums, const PairOptions& o, double weight, bool add,
                   T* grad) {
  constexpr int W = kWidth<T>;
  if (!sums.both()) {
    if (!add) fill(grad, n, T(0));
    return;
  }
  const double push = weight * sigmoid(sums.gap(o));
  const T down = T(push / sums.absent_sum), up = T(push / sums.present_sum);
  int64_t j = 0;
  for (; j + W <= n; j += W) store(grad + j, add ? load(grad + j) + load(h.x + j) * down : load(h.x + j) * down);
  for (; j < n; ++j) grad[j] = (add ? grad[j] : T(0)) + h.x[j] * down;
  for (int64_t i = 0; i < h.present; ++i) grad[h.label[i]] -= h.minus[i] * up;
}

template <class T> void pair_rows(LossCall& call, const PairOptions& o) {
  for_rows(call.rows, call.n * 8, call.threads, [&](int64_t row) {
    T* grad = call.grad ? static_cast<T*>(call.grad) + row * call.n : nullptr;
    const Halves<T> h = read_halves<T>(call, row);
    const double weight = h.present ? weight_of(call, row) : 0.0;
    double loss = h.nan ? kNaN<double> : 0.0;
    if (weight > 0 && !h.nan) {
      const PairSums sums = pair_sums(h, call.n, o);
      loss = sums.loss(o);
      if (grad) pair_gradient(h, call.n, sums, o, weight, false, grad);
    }
    finish(call, row, loss, weight, grad);
  });
}

template <class T> void multilabel_softmax(LossCall& call) {
  for_rows(call.rows, call.n * 8, call.threads, [&](int64_t row) {
    constexpr int W = kWidth<T>;
    T* grad = call.grad ? static_cast<T*>(call.grad) + row * call.n : nullptr;
    const Halves<T> h = read_halves<T>(call, row, true);
    const double weight = h.present ? weight_of(call, row) : 0.0;
    double loss = h.nan ? kNaN<double> : 0.0;
    if (weight > 0 && !h.nan) {
      const T peak = h.peak > kMinusInf<T> ? h.peak : T(0);
      const double sum = exponentials(h.x, padded(call.n), peak, T(1)).first;
      const double share = 1 / double(h.present);  // of each, not of their sum, which may overflow
      for (int64_t i = 0; i < h.present; ++i) loss += (double(peak) + double(h.minus[i])) * share;
      loss = loss + (sum > 0 ? std::log(sum) : 0.0);
      if (grad) {
        const T down = T(sum > 0 ? weight / sum : 0.0), up = T(weight / double(h.present));
        int64_t j = 0;
        for (; j + W <= call.n; j += W) store(grad + j, load(h.x + j) * down);
        for (; j < call.n; ++j) grad[j] = h.x[j] * down;
        for (int64_t i = 0; i < h.present; ++i) grad[h.label[i]] -= up;
      }
    }
    finish(call, row, loss, weight, grad);
  });
}

}  // namespace SHORTLIST_ISA
