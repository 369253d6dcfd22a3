// Smooth top-k SVM loss with its gradient, its hinge limit (tau = 0), and the subset sums themselves.
#pragma once

#include "smooth_topk_short.h"

namespace SHORTLIST_ISA {

// The rest's odds in place of their scores; with their powers' sums where the tilt asks for them.
template <class T> Moments odds_moments(T* x, int64_t n, int64_t k, T pivot, T scale) {
  return k > kPlainDegree ? exponentials<4>(x, padded(n), pivot, scale) : exponentials(x, padded(n), pivot, scale);
}

// One row of the smooth loss; grad may be null. Returns the loss; the gradient is multiplied by `weight`. chosen: the k + 1
// largest, where they are known.
template <class T>
double smooth_topk_row(const T* s, int64_t n, int64_t y, int64_t k, double tau, double alpha, double weight, T* grad,
                       const Top<T>* chosen = nullptr) {
  static thread_local Scratch rows, odds;
  T* x = rows.get<T>(padded(n));
  Peaks<T> peaks;
  if (finite_copy(s, n, x, peaks)) return kNaN<double>;
  const double own = x[y];
  Top<T> top = chosen ? *chosen : select_top(x, n, k + 1, peaks);
  drop(top, y, k);
  if (top.count < k) {  // fewer than k rivals: the label is always among the k
    if (grad) fill(grad, n, T(0));
    return 0;
  }
  const T pivot = top.smallest();
  const double margin = alpha + (double(pivot) - own) / double(k);
  if (tau == 0) {
    if (grad) {
      fill(grad, n, T(0));
      if (margin > 0) {
        grad[y] = T(-weight / double(k));
        grad[top.index[k - 1]] = T(weight / double(k));
      }
    }
    return margin > 0 ? margin : 0;
  }
  const double scale = 1 / (double(k) * tau);
  double* v = odds.get<double>(padded_odds(k));
  const double sum_v = leave_odds(top, double(pivot), scale, v);
  x[y] = kMinusInf<T>;
  for (int64_t i = 0; i < k; ++i) x[top.index[i]] = kMinusInf<T>;
  const Moments moments = odds_moments(x, n, k, pivot, T(scale));
  Swap<T> swap(x, n, moments, v, k, sum_v);
  const double z = margin / tau + swap.log_S0_over_S1();
  if (grad) {
    const double step = weight * sigmoid(z) / double(k);
    swap.marginals(step, true, top, grad);
    grad[y] = T(-step);
  }
  return tau * softplus(z);
}

// log of the sum over k-subsets, and the marginals where asked for.
template <class T> double subset_row(const T* s, int64_t n, int64_t k, T* marginals, const Top<T>* chosen = nullptr) {
  static thread_local Scratch rows, odds;
  T* x = rows.get<T>(padded(n));
  Peaks<T> peaks;
  if (finite_copy(s, n, x, peaks)) {
    if (marginals) fill(marginals, n, kNaN<T>);
    return kNaN<double>;
  }
  Top<T> top = chosen ? *chosen : select_top(x, n, k, peaks);
  if (top.count < k) {  // no k-subset: its sum is 0; every usable label is certainly in
    if (marginals)
      for (int64_t j = 0; j < n; ++j) marginals[j] = x[j] > kMinusInf<T> ? T(1) : T(0);
    return kMinusInf<double>;
  }
  const T pivot = top.smallest();
  double sum = 0;
  for (int64_t i = 0; i < k; ++i) {
    sum += double(top.value[i]);
    x[top.index[i]] = kMinusInf<T>;
  }
  double* v = odds.get<double>(padded_odds(k));
  const double sum_v = leave_odds(top, double(pivot), 1.0, v);
  const Moments moments = odds_moments(x, n, k, pivot, T(1));
  Swap<T> swap(x, n, moments, v, k, sum_v);
  if (marginals) swap.marginals(1.0, false, top, marginals);
  return sum + swap.log_S0();
}

// float rows with k beyond float's range are computed in double; their `count` largest are found before, in half the time.
template <class F> auto through_double(const float* s, int64_t n, int64_t count, float* out, F&& body) {
  static thread_local Scratch rows, outs, narrow, values;
  float* x = narrow.get<float>(padded(n));
  Peaks<float> peaks;
  Top<double> chosen{};
  bool huge = finite_copy(s, n, x, peaks);  // or a NaN: what float bounds, double does not
  for (const Vec<float>& part : peaks.part) huge = huge || bits<float>(part >= kMost<float>);
  if (!huge) {
    const Top<float> top = select_top(x, n, count, peaks);
    chosen = {values.get<double>(padded(count + 1)), top.index, top.count, top.sorted};
    for (int64_t i = 0; i < top.count; ++i) chosen.value[i] = top.value[i];
  }
  double* wide = rows.get<double>(n);
  double* result = out ? outs.get<double>(n) : nullptr;
  for (int64_t j = 0; j < n; ++j) wide[j] = s[j];
  const double value = body(wide, result, huge ? nullptr : &chosen);
  for (int64_t j = 0; out && j < n; ++j) out[j] = float(result[j]);
  return value;
}

template <class T> void smooth_topk(LossCall& call, const shortlist::SmoothTopKOptions& o) {
  const int64_t k = o.k;
  const double tau = o.tau, alpha = o.alpha;
  call.complete = call.shares;
  if (tau > 0 && k <= kPlainDegree && call.n <= kShort) return smooth_topk_short<T>(call, k, tau, alpha);
  for_rows(call.rows, call.n, 1.2 + 0.15 * double(k), call.threads, [&](int64_t row) {
    const T* s = row_of<const T>(call.scores, row, call.n);
    T* grad = row_of<T>(call.grad, row, call.n);
    const int64_t y = index_of(call, row);
    const double weight = y < 0 ? 0.0 : weight_of(call, row);
    double loss = 0;
    if (weight > 0) {
      const double share = share_of(call, row, weight);
      if constexpr (sizeof(T) == 4) {
        if (k > kFloatDegree && tau > 0)
          loss = through_double(s, call.n, k + 1, grad, [&](const double* wide, double* out, const Top<double>* top) {
            return smooth_topk_row(wide, call.n, y, k, tau, alpha, share, out, top);
          });
        else loss = smooth_topk_row(s, call.n, y, k, tau, alpha, share, grad);
      } else {
        loss = smooth_topk_row(s, call.n, y, k, tau, alpha, share, grad);
      }
    }
    finish(call, row, loss, weight, grad);
  });
}

template <class T> void subset_sums(const Rows& rows, const shortlist::SubsetSumsCall& call) {
  const int64_t n = rows.n, k = call.k;
  for_rows(rows.rows, n, 1.2 + 0.15 * double(k), rows.threads, [&](int64_t row) {
    const T* s = row_of<const T>(call.scores, row, n);
    T* p = call.with_marginals ? row_of<T>(call.marginals, row, n) : nullptr;
    if constexpr (sizeof(T) == 4) {
      if (k > kFloatDegree) {
        call.log_sum[row] = through_double(s, n, k, p, [&](const double* wide, double* out, const Top<double>* top) {
          return subset_row(wide, n, k, out, top);
        });
        return;
      }
    }
    call.log_sum[row] = subset_row(s, n, k, p);
  });
}

}  // namespace SHORTLIST_ISA
