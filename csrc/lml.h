// The LML projection: p = sigmoid(s + nu) with sum p = k, its gradient, and its likelihood with gradient.
//
// In the frame of balance.h with the two pivots s_[k] and s_[k+1]: rest p = r x/(1 + r x), top 1 - p = v w/(1 + v w).
// Nothing is ever s + nu in one number: an offset in the scores costs no digits, and saturated rows keep theirs.
#pragma once

#include "balance.h"
#include "target.h"

namespace SHORTLIST_ISA {

template <class T> constexpr double kStep = 1.2e-2;  // the last step of the solver; a sixth of its cube is what is left
template <> constexpr double kStep<double> = 1e-5;

template <class T> struct Frame {
  T* r;              // padded: odds of the rest relative to the largest of them; 0 for the top
  double* v;         // odds of the top, relative to the smallest of them
  Top<T> top;        // k entries (fewer: every usable label is in it and there is nothing to solve)
  double high = 0, low = 0;  // s_[k], s_[k+1]; all that is set where nothing is solved
  int32_t next;      // the label of s_[k+1]
  double gap, delta, x, w;
  bool solved = false;  // there are more usable labels than k
  bool nan;

  // t = s + nu of one score, from the nearer pivot
  double shifted(double s) const {
    s = s > double(kMost<T>) ? double(kMost<T>) : s;
    return s > low ? (s - high) + (gap / 2 + delta) : (s - low) + (delta - gap / 2);
  }
};

template <class T> Frame<T> solve_frame(const T* s, int64_t n, int64_t k) {
  static thread_local Scratch rows, odds;
  Frame<T> f;
  Peaks<T> peaks;
  f.r = rows.get<T>(padded(n));
  f.nan = finite_copy(s, n, f.r, peaks);
  if (f.nan) return f;
  if (k < n) f.top = select_top(f.r, n, k + 1, peaks);
  if (k >= n || f.top.count <= k) return f;
  f.solved = true;
  const T low = f.top.smallest();
  f.next = f.top.index[k];
  --f.top.count;
  if (!f.top.sorted) sink_smallest(f.top);
  f.low = double(low);
  f.high = double(f.top.smallest());
  f.gap = f.high - f.low;
  f.v = odds.get<double>(padded_odds(k));
  const double sum_v = leave_odds(f.top, f.high, 1.0, f.v);
  for (int64_t i = 0; i < k; ++i) f.r[f.top.index[i]] = kMinusInf<T>;
  const Moments moments = exponentials<4>(f.r, padded(n), low, T(1));
  const Balance b = balance(f.r, padded(n), moments, f.v, k, sum_v, f.gap, kStep<T>);
  f.delta = b.delta;
  f.x = b.x;
  f.w = b.w;
  return f;
}

// The rest's p = r x/(1 + r x).
template <class T> void enter(const T* r, int64_t n, T x, T* p) {
  constexpr int W = kWidth<T>;
  const auto share = [x](Vec<T> r) { return divided<T>(r * x, r * x + T(1)); };
  int64_t j = 0;
  for (; j + W <= n; j += W) store(p + j, share(load(r + j)));
  if (j < n) store_part(p + j, share(load(r + j)), n - j);
}

template <class T> void lml_row(const T* s, int64_t n, int64_t k, T* p, double* frame) {
  const Frame<T> f = solve_frame(s, n, k);
  frame[0] = f.high;
  frame[1] = f.low;
  frame[2] = f.solved ? f.delta : kNaN<double>;  // NaN: nothing to differentiate
  if (f.nan) return fill(p, n, kNaN<T>);
  if (!f.solved) {
    for (int64_t j = 0; j < n; ++j) p[j] = s[j] > kMinusInf<T> ? T(1) : T(0);
    return;
  }
  enter(f.r, n, T(f.x), p);
  for (int64_t i = 0; i < k; ++i)  // a label tied with the largest of the rest gets what that one got, to the last bit
    p[f.top.index[i]] = double(f.top.value[i]) == f.low ? p[f.next] : T(1 / (1 + f.v[i] * f.w));
}

// Rows are balanced side by side where their moments are likely to say all, many labels to one of the top, and as many as
// are balanced at once stay in the cache.
constexpr int64_t kFewTop = 16;
inline bool side_by_side(int64_t n, int64_t k) { return n <= 2048 && k <= kFewTop && n >= 100 * k; }

// Up to as many rows as a vector of double holds.
template <class T> void lml_rows(const T* s, int64_t rows, int64_t n, int64_t k, T* p, double* frame) {
  constexpr int W = kWidth<double>;
  static thread_local Scratch memory;
  T* r = memory.get<T>(W * padded(n));
  struct {
    T value[kFewTop + 1];
    int32_t index[kFewTop + 1];
  } tops[W];
  alignas(64) double moment[4][W], gap[W], v[kFewTop][W];
  unsigned usual = 0;
  for (int64_t l = 0; l < W; ++l) {
    Peaks<T> peaks;
    T* const row = r + l * padded(n);
    const bool nan = l >= rows || finite_copy(s + l * n, n, row, peaks);
    const Top<T> top = nan ? Top<T>{nullptr, nullptr, 0, true} : select_top(row, n, k + 1, peaks);
    const bool solved = top.count > k;
    usual |= unsigned(solved) << l;
    const double high = solved ? double(top.value[k - 1]) : 0;
    gap[l] = solved ? high - double(top.value[k]) : 0;
    for (int64_t i = 0; i < k; ++i) v[i][l] = solved ? high - double(top.value[i]) : 0;
    Moments sums{1, 1, 1, 1};
    if (solved) {
      std::memcpy(tops[l].value, top.value, size_t(k + 1) * sizeof(T));
      std::memcpy(tops[l].index, top.index, size_t(k + 1) * sizeof(int32_t));
      for (int64_t i = 0; i < k; ++i) row[top.index[i]] = kMinusInf<T>;
      sums = exponentials<4>(row, padded(n), top.value[k], T(1));
    }
    moment[0][l] = sums.first;
    moment[1][l] = sums.second;
    moment[2][l] = sums.third;
    moment[3][l] = sums.fourth;
  }
  Vec<double> odds[kFewTop], moments[4];
  for (int64_t i = 0; i < k; ++i) odds[i] = exp<double>(load(v[i]));
  for (int i = 0; i < 4; ++i) moments[i] = load(moment[i]);
  const Balances b = balances(moments, odds, k, load(gap), kStep<T>);
  const unsigned found = bits<double>(b.found);
  for (int64_t l = 0; l < rows; ++l) {
    T* const out = p + l * n;
    if (!(usual >> l & 1)) {
      lml_row(s + l * n, n, k, out, frame + 3 * l);
      continue;
    }
    const T* const row = r + l * padded(n);
    Balance own{b.delta[l], b.x[l], b.w[l]};
    if (!(found >> l & 1)) {
      double leave[padded_odds(kFewTop)] = {}, sum = 0;
      for (int64_t i = 0; i < k; ++i) sum += leave[i] = odds[i][l];
      const Moments sums{moment[0][l], moment[1][l], moment[2][l], moment[3][l]};
      own = balance(row, padded(n), sums, leave, k, sum, gap[l], kStep<T>);
    }
    const auto& top = tops[l];
    frame[3 * l] = double(top.value[k - 1]);
    frame[3 * l + 1] = double(top.value[k]);
    frame[3 * l + 2] = own.delta;
    enter(row, n, T(own.x), out);
    for (int64_t i = 0; i < k; ++i)  // a label tied with the largest of the rest gets what that one got, to the last bit
      out[top.index[i]] = top.value[i] == top.value[k] ? out[top.index[k]] : T(1 / (1 + odds[i][l] * own.w));
  }
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
  int32_t* large = rows.get<int32_t>(n);  // labels with p > 1/2
  int64_t count = 0, j = 0;
  double sum = 0, dot = 0;
  while (j < n) {
    const int64_t end = j + kBlock < n ? j + kBlock : n;
    Vec<T> sums{}, dots{};
    for (; j < end; j += W) {
      const bool whole = j + W <= n;
      const Vec<T> q = whole ? load(p + j) : load_part(p + j, n - j, T(0)), up = whole ? load(g + j) : load_part(g + j, n - j, T(0));
      const Vec<T> h = q > T(0.5) ? Vec<T>{} : q - q * q;
      for (unsigned m = bits_above<T>(q, splat(T(0.5))); m; m &= m - 1) large[count++] = int32_t(j + __builtin_ctz(m));
      sums += h;
      dots += h * up;
    }
    sum += total<T>(sums);
    dot += total<T>(dots);
  }
  const auto exact = [&](int64_t i) {
    const double at = double(s[i]) > double(kMost<T>) ? double(kMost<T>) : double(s[i]);
    const double t = at > low ? (at - high) + (gap / 2 + delta) : (at - low) + (delta - gap / 2);
    return sigmoid(t) * sigmoid(-t);
  };
  for (int64_t i = 0; i < count; ++i) {
    const double h = exact(large[i]);
    sum += h;
    dot += h * double(g[large[i]]);
  }
  // Saturated: every h is tiny, and so is the gradient; what it would be is below the type's own resolution of p.
  const T mean = sum > 0 ? T(dot / sum) : T(0);
  for (j = 0; j + W <= n; j += W) {
    const Vec<T> q = load(p + j);
    store(grad + j, (q - q * q) * (load(g + j) - mean));
  }
  for (; j < n; ++j) grad[j] = (p[j] - p[j] * p[j]) * (g[j] - mean);
  for (int64_t i = 0; i < count; ++i) grad[large[i]] = T(exact(large[i])) * (g[large[i]] - mean);
}

template <class T> double lml_loss_row(const T* s, int64_t n, int64_t k, const Present& y, double weight, T* grad) {
  const Frame<T> f = solve_frame(s, n, k);
  if (f.nan) return kNaN<double>;
  if (!f.solved) {
    if (grad) fill(grad, n, T(0));
    return 0;
  }
  double loss = 0, missing = 0;
  for (int64_t i = 0; i < y.count; ++i) {
    const double t = f.shifted(double(s[y.label[i]]));
    loss += softplus(-t);
    missing += sigmoid(-t);
  }
  if (!grad) return loss;
  // h / sum h with the common factor e^(-gap/2) taken out of both sides, so that saturated rows have no 0/0
  constexpr int W = kWidth<T>;
  const T x = T(f.x), rest = T(std::exp(f.delta));
  const double leave = std::exp(-f.delta);
  double sum = 0;
  for (int64_t block = 0; block < padded(n); block += kBlock) {
    const int64_t end = block + kBlock < padded(n) ? block + kBlock : padded(n);
    Vec<T> lane{};
    for (int64_t j = block; j < end; j += W) {
      const Vec<T> r = load(f.r + j), q = r * x + T(1), h = r * rest / (q * q);
      store(f.r + j, h);
      lane += h;
    }
    sum += total<T>(lane);
  }
  for (int64_t i = 0; i < k; ++i) {
    const double q = 1 + f.v[i] * f.w;
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
    T& g = grad[y.label[i]];
    g = T(double(g) - weight * sigmoid(-f.shifted(double(s[y.label[i]]))));
  }
  return loss;
}

template <class T> void lml(const Rows& rows, const shortlist::LmlCall& call) {
  const int64_t n = rows.n;
  if (!call.k_rows && side_by_side(n, call.k)) {
    constexpr int64_t W = kWidth<double>;
    for_rows((rows.rows + W - 1) / W, W * n, 1.2, rows.threads, [&](int64_t group) {
      const int64_t row = group * W, here = rows.rows - row < W ? rows.rows - row : W;
      lml_rows(row_of<const T>(call.scores, row, n), here, n, call.k, row_of<T>(call.p, row, n), call.frame + 3 * row);
    });
    return;
  }
  for_rows(rows.rows, n, 1.5, rows.threads, [&](int64_t row) {
    const int64_t k = call.k_rows ? call.k_rows[row] : call.k;
    lml_row(row_of<const T>(call.scores, row, n), n, k, row_of<T>(call.p, row, n), call.frame + 3 * row);
  });
}

template <class T> void lml_backward(const Rows& rows, const shortlist::LmlBackwardCall& call) {
  const int64_t n = rows.n;
  for_rows(rows.rows, n, 0.3, rows.threads, [&](int64_t row) {
    lml_backward_row(row_of<const T>(call.scores, row, n), row_of<const T>(call.p, row, n), call.frame + 3 * row,
                     row_of<const T>(call.upstream, row, n), n, row_of<T>(call.grad, row, n));
  });
}

template <class T> void lml_loss(LossCall& call, const shortlist::LmlLossOptions& o) {
  call.complete = call.shares;
  for_rows(call.rows, call.n, 1.5, call.threads, [&](int64_t row) {
    const T* s = row_of<const T>(call.scores, row, call.n);
    T* grad = row_of<T>(call.grad, row, call.n);
    const Present y = present(call, row);
    const double weight = y.count ? weight_of(call, row) : 0.0;
    const double share = share_of(call, row, weight);
    const int64_t k = o.k_rows ? o.k_rows[row] : o.k;
    const double loss = weight > 0 ? lml_loss_row(s, call.n, k, y, share, grad) : 0.0;
    finish(call, row, loss, weight, grad);
  });
}

}  // namespace SHORTLIST_ISA
