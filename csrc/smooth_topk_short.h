// The smooth top-k loss of short rows: as many rows at once as a vector has elements, one row in each of them. The sums of
// swap.h with k up to kPlainDegree; a row alone would spend more on its top k, its polynomials and its logarithms than on
// its labels. A row's result does not depend on the rows beside it.
#pragma once

#include "lanes.h"
#include "log.h"
#include "swap.h"
#include "target.h"

namespace SHORTLIST_ISA {

constexpr int64_t kShort = 256;  // labels; beyond, a row alone is as fast

// The K largest of each row: values and labels, largest first, the lower label first among ties.
template <int K, class T> struct Best {
  Vec<T> value[K];
  Int<T> label[K];

  void insert(Vec<T> v, Int<T> j) {
#pragma GCC unroll 8
    for (int i = 0; i < K; ++i) {
      const Int<T> above = v > value[i];
      const Vec<T> high = greater<T>(v, value[i]);
      const Int<T> moved = above ? label[i] : j;
      v = lesser<T>(v, value[i]);
      label[i] = above ? j : label[i];
      value[i] = high;
      j = moved;
    }
  }
};

// Rows first, first + 1, ... of one vector.
template <int K, class T> void smooth_topk_vector(LossCall& call, int64_t first, double tau, double alpha) {
  static thread_local Scratch scores;
  constexpr int W = kWidth<T>, D = kWidth<double>;
  const int64_t n = call.n, here = call.rows - first < W ? call.rows - first : W;
  T* x = scores.get<T>(n * W);  // label by label: the rivals' scores in each row, then their odds, at the end the gradient
  const T* row[W];
  int64_t y[W];
  double weight[W];
  alignas(64) T own[W] = {};
  for (int l = 0; l < W; ++l) {
    row[l] = row_of<const T>(call.scores, first + (l < here ? l : 0), n);
    y[l] = l < here ? index_of(call, first + l) : -1;
    weight[l] = y[l] < 0 ? 0.0 : weight_of(call, first + l);
    own[l] = y[l] < 0 ? T(0) : row[l][y[l]] > kMost<T> ? kMost<T> : row[l][y[l]];
  }
  rows_to_lanes<T>(row, n, x);
  for (int l = 0; l < W; ++l)
    if (y[l] >= 0) x[y[l] * W + l] = kMinusInf<T>;
  Best<K, T> best;
  for (int i = 0; i < K; ++i) best.value[i] = splat(kMinusInf<T>), best.label[i] = Int<T>{};
  Int<T> nan{}, label{};  // in loops of their own: one would not have the registers
  for (int64_t j = 0; j < n; ++j) nan |= load(x + j * W) != load(x + j * W);
  for (int64_t j = 0; j < n; ++j) {
    best.insert(load(x + j * W), label);
    label += 1;
  }
  const Vec<T> most = splat(kMost<T>);
  if (bits_above<T>(best.value[0], most)) {
    for (int i = 0; i < K; ++i) best.value[i] = lesser<T>(best.value[i], most);
    for (int64_t j = 0; j < n; ++j) store(x + j * W, lesser<T>(load(x + j * W), most));
  }
  const Vec<T> pivot = best.value[K - 1];
  alignas(64) Whole<T> top[K][W];
  for (int i = 0; i < K; ++i) std::memcpy(top[i], &best.label[i], sizeof best.label[i]);
  for (int i = 0; i < K; ++i)
    for (int l = 0; l < W; ++l) x[top[i][l] * W + l] = kMinusInf<T>;
  // odds of the rest, and R = prod (1 + r t); of so few labels no coefficient needs a tilt
  const Vec<T> scale = splat(T(1 / (double(K) * tau)));
  Vec<T> R[K + 1] = {splat<T>(1)};
  const auto enter = [&]<int Count>(T* at) {
    Vec<T> r[Count];
    for (int q = 0; q < Count; ++q) r[q] = (load(at + q * W) - pivot) * scale;
    exp_each<T, Count, false>(r);
    for (int q = 0; q < Count; ++q) {
      store(at + q * W, r[q]);
#pragma GCC unroll 8
      for (int i = K; i > 0; --i) R[i] += r[q] * R[i - 1];
    }
  };
  for (int64_t j = 0; j < n / 4 * 4; j += 4) enter.template operator()<4>(x + j * W);
  for (int64_t j = n / 4 * 4; j < n; ++j) enter.template operator()<1>(x + j * W);
  // in double from here on, D rows at a time; the loops are unrolled so that no array is in memory
  alignas(64) T in[K][W], coefficient[K][W], leaving[K][W], odds[K][W], pivots[W], parts[K + 1][W];
  alignas(64) double loss[W], step[W], shares[W];
  store(pivots, pivot);
  for (int i = 0; i < K; ++i) store(odds[i], best.value[i]);
  for (int i = 0; i <= K; ++i) store(parts[i], R[i]);
  for (int l = 0; l < W; ++l) shares[l] = l < here ? share_of(call, first + l, weight[l]) : 0.0;
  for (int d = 0; d < W; d += D) {
    Vec<double> rest[K + 1], V[K + 3] = {}, v[K], before[K][K];  // before: V without v[i] and those after it
    for (int i = 0; i <= K; ++i) rest[i] = load_wide(parts[i] + d);
    const Vec<double> high = load_wide(pivots + d);
    V[0] = splat(1.0);
#pragma GCC unroll 8
    for (int i = 0; i < K; ++i) {
      v[i] = exp<double>((high - load_wide(odds[i] + d)) * (1 / (double(K) * tau)));
      for (int m = 0; m <= i; ++m) before[i][m] = V[m];
      for (int m = i + 1; m > 0; --m) V[m] += v[i] * V[m - 1];
    }
    Vec<double> S0{}, S1{};
    for (int i = 0; i <= K; ++i) S0 += V[i] * rest[i];
    for (int i = 0; i < K; ++i) S1 += V[i + 1] * rest[i];
    const Vec<double> f0 = 1.0 / S0, f1 = 1.0 / S1;
    const Vec<double> margin = alpha + (high - load_wide(own + d)) / double(K);
    const Logistic<double> z(margin / tau + log<double>(S0 * f1));
    const Vec<double> push = load(shares + d) * z.sigmoid() / double(K);
    store(loss + d, tau * z.softplus());
    store(step + d, push);
    if (!call.grad) continue;
    Vec<double> change[K + 1] = {};
#pragma GCC unroll 8
    for (int i = 0; i < K; ++i) {
      store_narrow(in[i] + d, (f0 * V[i + 1] - f1 * V[i + 2]) * push);
      store_narrow(coefficient[i] + d, rest[i]);
      change[i + 1] = (f1 * rest[i] - f0 * rest[i + 1]) * push;
    }
    // what leaves the top: backwards through what made V
#pragma GCC unroll 8
    for (int i = K - 1; i >= 0; --i) {
      Vec<double> out{};
      for (int m = 0; m <= i; ++m) {
        out += before[i][m] * change[m + 1];
        change[m] += v[i] * change[m + 1];
      }
      store_narrow(leaving[i] + d, out * v[i]);
    }
  }
  T* grad[W];
  for (int l = 0; l < W; ++l) grad[l] = row_of<T>(call.grad, first + l, n);
  if (call.grad) {
    Vec<T> w[K], b0[K];
    for (int i = 0; i < K; ++i) w[i] = load(in[i]), b0[i] = load(coefficient[i]);
    for (int64_t j = 0; j < n; ++j) {
      const Vec<T> r = load(x + j * W);
      Vec<T> b = b0[0], g = b * w[0];
#pragma GCC unroll 8
      for (int i = 1; i < K; ++i) {
        b = b0[i] - r * b;
        g += b * w[i];
      }
      store(x + j * W, g * r);
    }
    lanes_to_rows<T>(x, n, here, grad);
  }
  const unsigned spoilt = bits<T>(nan), few = bits<T>(pivot == kMinusInf<T>);  // few: fewer than k rivals
  for (int l = 0; l < here; ++l) {
    const bool sure = few >> l & 1;
    if (grad[l] && sure) fill(grad[l], n, T(0));
    if (grad[l] && !sure && weight[l] > 0) {
      for (int i = 0; i < K; ++i) grad[l][top[i][l]] = leaving[i][l];
      grad[l][y[l]] = T(-step[l]);
    }
    finish(call, first + l, spoilt >> l & 1 || own[l] != own[l] ? kNaN<double> : sure ? 0.0 : loss[l], weight[l], grad[l]);
  }
}

template <class T> void smooth_topk_short(LossCall& call, int64_t k, double tau, double alpha) {
  constexpr int W = kWidth<T>;
  const auto rows = [&]<int K>() {
    for_rows((call.rows + W - 1) / W, W * call.n, 2.0, call.threads,
             [&](int64_t block) { smooth_topk_vector<K, T>(call, block * W, tau, alpha); });
  };
  switch (k) {
    case 1: return rows.template operator()<1>();
    case 2: return rows.template operator()<2>();
    case 3: return rows.template operator()<3>();
    case 4: return rows.template operator()<4>();
    case 5: return rows.template operator()<5>();
    case 6: return rows.template operator()<6>();
    case 7: return rows.template operator()<7>();
    default: return rows.template operator()<8>();
  }
}

}  // namespace SHORTLIST_ISA
