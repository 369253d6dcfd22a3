// Truncated top-k entropy: sum over present labels y of log(1 + sum_{j in J} e^(s_j - s_y)), J = the labels not
// observed present, less their max(k - |Y|, 0) largest.
#pragma once

#include "balance.h"
#include "target.h"

namespace SHORTLIST_ISA {

template <class T>
double truncated_entropy_row(const T* s, int64_t n, int64_t k, const Present& y, double weight, T* grad) {
  static thread_local Scratch rows, own;
  T* x = rows.get<T>(padded(n));
  Peaks<T> peaks;
  if (finite_copy(s, n, x, peaks)) return kNaN<double>;
  double* score = own.get<double>(y.count);
  for (int64_t i = 0; i < y.count; ++i) {
    score[i] = double(x[y.label[i]]);
    x[y.label[i]] = kMinusInf<T>;
  }
  const int64_t dropped = k > y.count ? k - y.count : 0;
  const Top<T> top = select_top(x, n, dropped + 1, find_peaks(x, padded(n)));
  if (top.count <= dropped) {  // nothing left to compete
    if (grad) fill(grad, n, T(0));
    return 0;
  }
  const T largest = top.smallest();
  for (int64_t i = 0; i < dropped; ++i) x[top.index[i]] = kMinusInf<T>;
  const double sum = exponentials(x, padded(n), largest, T(1)).first;
  const double log_sum = std::log(sum);
  double loss = 0, push = 0;
  for (int64_t i = 0; i < y.count; ++i) {
    score[i] = (double(largest) - score[i]) + log_sum;  // how far all rivals together are ahead
    loss += softplus(score[i]);
    push += sigmoid(score[i]);
  }
  if (grad) {
    constexpr int W = kWidth<T>;
    const T factor = T(weight * push / sum);
    int64_t j = 0;
    for (; j + W <= n; j += W) store(grad + j, load(x + j) * factor);
    for (; j < n; ++j) grad[j] = x[j] * factor;
    for (int64_t i = 0; i < y.count; ++i) grad[y.label[i]] = T(-weight * sigmoid(score[i]));
  }
  return loss;
}

template <class T> void truncated_entropy(LossCall& call, const shortlist::TruncatedEntropyOptions& o) {
  call.complete = call.shares;
  for_rows(call.rows, call.n, 1, call.threads, [&](int64_t row) {
    const T* s = row_of<const T>(call.scores, row, call.n);
    T* grad = row_of<T>(call.grad, row, call.n);
    const Present y = present(call, row);
    const double weight = y.count ? weight_of(call, row) : 0.0;
    const double share = share_of(call, row, weight);
    const double loss = weight > 0 ? truncated_entropy_row(s, call.n, o.k, y, share, grad) : 0.0;
    finish(call, row, loss, weight, grad);
  });
}

}  // namespace SHORTLIST_ISA
