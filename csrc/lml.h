// The LML projection: p = sigmoid(s + nu) with sum p = k, its gradient, and its likelihood with gradient.
//
// In the frame of balance.h with the two pivots s_[k] and s_[k+1]: rest p = r x/(1 + r x), top 1 - p = v w/(1 + v w).
// Nothing is ever s + nu in one number: an offset in the scores costs no digits, and saturated rows keep theirs.
#pragma once

#include "balance.h"
#include "target.h"

namespace SHORTLIST_ISA {

template <class T> constexpr double kStep = 3e-4;         // squared: 1e-7
template <> constexpr double kStep<double> = 3e-8;

template <class T> struct Frame {
  T* r;             // padded: odds of the rest relative to the largest of them; 0 for the top
  double* v;        // odds of the top, relative to the smallest of them
  Top<T> top;       // k entries (fewer: every usable label is in it and there is nothing to solve)
  int64_t k;
  T low;            // s_[k+1]
  double gap, delta;
  bool solved;      // there are more usable labels than k
  bool nan;

  double x() const { return std::exp(delta - gap / 2); }
  double w() const { return std::exp(-delta - gap / 2); }
};

template <class T> Frame<T> solve_frame(const T* s, int64_t n, int64_t k) {
  static thread_local Scratch rows, odds;
  Frame<T> f;
  f.r = rows.get<T>(padded(n));
  f.k = k;
  f.nan = finite_copy(s, n, f.r);
  f.solved = false;
  f.gap = f.delta = 0;
  f.low = 0;
  if (f.nan) return f;
  f.top = select_top(f.r, n, k + 1);
  if (f.top.count <= k) return f;
  f.solved = true;
  f.low = f.top.smallest();
  --f.top.count;
  if (!f.top.sorted) sink_smallest(f.top);
  const T high = f.top.smallest();
  f.gap = double(high) - double(f.low);
  f.v = odds.get<double>(padded(k));
  const double sum_v = leave_odds(f.top, double(high), 1.0, f.v);
  for (int64_t i = 0; i < k; ++i) f.r[f.top.index[i]] = kMinusInf<T>;
  const double sum_r = exponentials(f.r, padded(n), f.low, T(1));
  f.delta = balance(f.r, padded(n), sum_r, f.v, k, sum_v, f.gap, kStep<T>);
  return f;
}

template <class T> void lml_row(const T* s, int64_t n, int64_t k, T* p, double* frame) {
  Frame<T> f = solve_frame(s, n, k);
  frame[0] = f.solved ? double(f.top.smallest()) : 0.0;
  frame[1] = double(f.low);
  frame[2] = f.solved ? f.delta : kNaN<double>;  // NaN: nothing to differentiate
  if (f.nan) return fill(p, n, kNaN<T>);
  if (!f.solved) {
    for (int64_t j = 0; j < n; ++j) p[j] = s[j] > kMinusInf<T> ? T(1) : T(0);
    return;
  }
  constexpr int W = kWidth<T>;
  const T x = T(f.x());
  int64_t j = 0;
  for (; j + W <= n; j += W) {
    const Vec<T> e = load(f.r + j) * x;
    store(p + j, e / (e + T(1)));
  }
  for (; j < n; ++j) p[j] = f.r[j] * x / (f.r[j] * x + T(1));
  const double w = f.w();
  for (int64_t i = 0; i < k; ++i) p[f.top.index[i]] = T(1 / (1 + f.v[i] * w));
}

// grad = h (g - (h.g)/sum h), h = p (1 - p). Where p > 1/2, 1 - p has lost digits: those few are taken from the scores.
template <class T>
void lml_backward_row(const T* s, const T* p, const double* frame, const T* g, int64_t n, T* grad) {
  constexpr int W = kWidth<T>;
  static thread_local Scratch rows;
  const double high = frame[0], low = frame[1], delta = frame[2], gap = high - low;
  if (delta != delta) {  // a row with nothing to choose, or a NaN
    for (int64_t j = 0; j < n; ++j) grad[j] = p[j] == p[j] ? T(0) : p[j];
    return;
  }
  T* h = rows.get<T>(padded(n));
  double sum = 0, dot = 0;
  int64_t j = 0;
  for (; j + W <= n; j += W) {
    const Vec<T> q = load(p + j);
    store(h + j, q * (T(1) - q));
    for (unsigned m = bits<T>(q > T(0.5)); m; m &= m - 1) {
      const int64_t i = j + __builtin_ctz(m);
      const double t = double(s[i]) > low ? (double(s[i]) - high) + gap / 2 + delta : (double(s[i]) - low) - gap / 2 + delta;
      h[i] = T(p[i] * sigmoid(-t));
    }
    sum += total<T>(load(h + j));
    dot += total<T>(load(h + j) * load(g + j));
  }
  for (; j < n; ++j) {
    const double t = double(s[j]) > low ? (double(s[j]) - high) + gap / 2 + delta : (double(s[j]) - low) - gap / 2 + delta;
    h[j] = T(sigmoid(t) * sigmoid(-t));
    sum += h[j];
    dot += double(h[j]) * g[j];
  }
  // Saturated: every h is tiny, and so is the gradient; what it would be is below the type's own resolution of p.
  const T mean = sum > 0 ? T(dot / sum) : T(0);
  for (j = 0; j + W <= n; j += W) store(grad + j, load(h + j) * (load(g + j) - mean));
  for (; j < n; ++j) grad[j] = h[j] * (g[j] - mean);
}

template <class T> double lml_loss_row(const T* s, int64_t n, int64_t k, const Present& y, double weight, T* grad) {
  Frame<T> f = solve_frame(s, n, k);
  if (f.nan) return kNaN<double>;
  if (!f.solved) {
    if (grad) fill(grad, n, T(0));
    return 0;
  }
  // t = s + nu of each present label, from the nearer pivot: log p and 1 - p without cancellation
  double loss = 0, missing = 0;
  const double high = double(f.top.smallest()), low = double(f.low);
  for (int64_t i = 0; i < y.count; ++i) {
    const double score = std::fmin(double(s[y.label[i]]), double(kMost<T>));
    const double t = score > low ? (score - high) + f.gap / 2 + f.delta : (score - low) - f.gap / 2 + f.delta;
    loss += softplus(-t);
    missing += sigmoid(-t);
  }
  if (!grad) return loss;
  // h / sum h with the common factor e^(-gap/2) taken out of both sides, so that saturated rows have no 0/0
  constexpr int W = kWidth<T>;
  const T x = T(f.x()), rest = T(std::exp(f.delta));
  const double w = f.w(), leave = std::exp(-f.delta);
  double sum = 0;
  for (int64_t block = 0; block < padded(n); block += 4096) {
    const int64_t end = block + 4096 < padded(n) ? block + 4096 : padded(n);
    Vec<T> lane{};
    for (int64_t j = block; j < end; j += W) {
      const Vec<T> r = load(f.r + j), q = r * x + T(1), h = r * rest / (q * q);
      store(f.r + j, h);
      lane += h;
    }
    sum += total<T>(lane);
  }
  for (int64_t i = 0; i < k; ++i) {
    const double q = 1 + f.v[i] * w;
    f.v[i] = f.v[i] * leave / (q * q);
    sum += f.v[i];
  }
  const double factor = weight * missing / sum;
  const T narrow = T(factor);
  int64_t j = 0;
  for (; j + W <= n; j += W) store(grad + j, load(f.r + j) * narrow);
  for (; j < n; ++j) grad[j] = f.r[j] * narrow;
  for (int64_t i = 0; i < k; ++i) grad[f.top.index[i]] = T(f.v[i] * factor);
  for (int64_t i = 0; i < y.count; ++i) {
    const double score = std::fmin(double(s[y.label[i]]), double(kMost<T>));
    const double t = score > low ? (score - high) + f.gap / 2 + f.delta : (score - low) - f.gap / 2 + f.delta;
    grad[y.label[i]] = T(double(grad[y.label[i]]) - weight * sigmoid(-t));
  }
  return loss;
}

template <class T>
void lml(const T* scores, int64_t rows, int64_t n, int64_t k, const int64_t* k_rows, T* p, double* frame, int threads) {
  for_rows(rows, n * 16, threads,
           [&](int64_t row) { lml_row(scores + row * n, n, k_rows ? k_rows[row] : k, p + row * n, frame + 3 * row); });
}

template <class T>
void lml_backward(const T* scores, const T* p, const double* frame, const T* g, int64_t rows, int64_t n, T* grad,
                  int threads) {
  for_rows(rows, n * 4, threads, [&](int64_t row) {
    lml_backward_row(scores + row * n, p + row * n, frame + 3 * row, g + row * n, n, grad + row * n);
  });
}

template <class T> void lml_loss(LossCall& call, int64_t k, const int64_t* k_rows) {
  for_rows(call.rows, call.n * 16, call.threads, [&](int64_t row) {
    const T* s = static_cast<const T*>(call.scores) + row * call.n;
    T* grad = call.grad ? static_cast<T*>(call.grad) + row * call.n : nullptr;
    const Present y = present(call, row);
    const double weight = y.count ? weight_of(call, row) : 0.0;
    const double loss = weight > 0 ? lml_loss_row(s, call.n, k_rows ? k_rows[row] : k, y, weight, grad) : 0.0;
    finish(call, row, loss, weight, grad);
  });
}

}  // namespace SHORTLIST_ISA
