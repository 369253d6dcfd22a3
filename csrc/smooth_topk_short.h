// The smooth top-k loss of short rows: as many rows at once as a vector has elements, one row in each of them. The sums of
// swap.h with k up to kPlainDegree; a row alone would spend more on its top k, its polynomials and its logarithms than on
// its labels. A row's result does not depend on the rows beside it.
#pragma once

#include "log.h"
#include "swap.h"
#include "target.h"

namespace SHORTLIST_ISA {

constexpr int64_t kShort = 256;  // labels; beyond, a row alone is as fast

// Rows first, first + 1, ... of one vector.
template <int K, class T> void smooth_topk_vector(LossCall& call, int64_t first, double tau, double alpha) {
  static thread_local Scratch scores, odds;
  constexpr int W = kWidth<T>, D = kWidth<double>;
  const int64_t n = call.n, here = call.rows - first < W ? call.rows - first : W;
  const T scale = T(1 / (double(K) * tau));
  T* x = scores.get<T>(n * W);  // label by label: the score of each row
  T* r = odds.get<T>(n * W);    // odds of the rest, -1 for the top; at the end the gradient
  int64_t y[W];
  double weight[W];
  alignas(64) T own[W] = {};
  for (int l = 0; l < W; ++l) {
    y[l] = l < here ? index_of(call, first + l) : -1;
    weight[l] = y[l] < 0 ? 0.0 : weight_of(call, first + l);
    if (!(weight[l] > 0)) {
      for (int64_t j = 0; j < n; ++j) x[j * W + l] = 0;
      continue;
    }
    const T* s = row_of<const T>(call.scores, first + l, n);
    for (int64_t j = 0; j < n; ++j) x[j * W + l] = s[j];
    own[l] = s[y[l]] > kMost<T> ? kMost<T> : s[y[l]];
    x[y[l] * W + l] = kMinusInf<T>;
  }
  // the K largest of each row, and what is a NaN
  Vec<T> best[K];
  for (Vec<T>& one : best) one = splat(kMinusInf<T>);
  Int<T> nan = load(own) != load(own);
  for (int64_t j = 0; j < n; ++j) {
    Vec<T> v = load(x + j * W);
    nan |= v != v;
    v = v > kMost<T> ? splat(kMost<T>) : v;
    store(x + j * W, v);
#pragma GCC unroll 8
    for (int i = 0; i < K; ++i) {
      const Int<T> above = v > best[i];
      const Vec<T> high = above ? v : best[i];
      v = above ? best[i] : v;
      best[i] = high;
    }
  }
  const Vec<T> pivot = best[K - 1];
  Int<T> ties = Int<T>{} + Whole<T>(K);  // places left for labels that are tied with the pivot
  for (int i = 0; i < K; ++i) ties += best[i] > pivot;
  Vec<T> sum{};
  for (int64_t j = 0; j < n; ++j) {
    const Vec<T> v = load(x + j * W);
    const Int<T> tied = (v == pivot) & (ties > 0), top = tied | (v > pivot);
    ties += tied;
    const Vec<T> e = exp<T>((v - pivot) * scale);
    sum += top ? splat<T>(0) : e;
    store(r + j * W, top ? splat<T>(-1) : e);
  }
  // in double from here on, D rows at a time
  alignas(64) T inverse[W], in[K][W], coefficient[K][W], leaving[K][W];
  double loss[W], step[W];
  alignas(64) double part[2][K + 1][W], tilt[W], odd[K][W];
  for (int l = 0; l < W; ++l) {
    tilt[l] = 0;
    for (int i = 0; i < K; ++i) odd[i][l] = (double(pivot[l]) - double(best[i][l])) / (double(K) * tau);
  }
  for (int d = 0; d < W; d += D) {
    Vec<double> sum_v{};
    for (int i = 0; i < K; ++i) {
      const Vec<double> v = exp<double>(load(odd[i] + d));
      store(odd[i] + d, v);
      sum_v += v;
    }
    for (int l = d; l < d + D; ++l) {
      tilt[l] = std::fmax(1.0, std::sqrt(double(sum[l]) / sum_v[l - d]));
      inverse[l] = T(1 / tilt[l]);
    }
  }
  // R = prod (1 + r t), even and odd labels apart
  Vec<T> R[2][K + 1] = {};
  R[0][0] = R[1][0] = splat<T>(1);
  const Vec<T> less = load(inverse);
  for (int64_t j = 0; j < n; j += 2)
    for (int p = 0; p < 2 && j + p < n; ++p) {
      const Vec<T> e = load(r + (j + p) * W), scaled = e * less, entering = e > T(0) ? scaled : splat<T>(0);
      store(r + (j + p) * W, e < T(0) ? e : entering);
#pragma GCC unroll 8
      for (int i = K; i > 0; --i) R[p][i] += entering * R[p][i - 1];
    }
  for (int p = 0; p < 2; ++p)
    for (int i = 0; i <= K; ++i)
      for (int l = 0; l < W; ++l) part[p][i][l] = double(R[p][i][l]);
  for (int d = 0; d < W; d += D) {
    Vec<double> rest[K + 1] = {}, V[K + 3] = {}, v[K];
    for (int p = 0; p <= K; ++p)
      for (int q = 0; q <= K - p; ++q) rest[p + q] += load(part[0][p] + d) * load(part[1][q] + d);
    const Vec<double> c = load(tilt + d);
    V[0] = splat(1.0);
    for (int i = 0; i < K; ++i) {
      v[i] = load(odd[i] + d) * c;
      for (int m = i + 1; m > 0; --m) V[m] += v[i] * V[m - 1];
    }
    Vec<double> S0{}, S1{}, margin{}, share{};
    for (int i = 0; i <= K; ++i) S0 += V[i] * rest[i];
    for (int i = 0; i < K; ++i) S1 += V[i + 1] * rest[i];
    for (int l = 0; l < D; ++l) {
      margin[l] = alpha + (double(pivot[d + l]) - double(own[d + l])) / double(K);
      share[l] = d + l < here ? share_of(call, first + d + l, weight[d + l]) : 0.0;
    }
    const Logistic<double> z(margin / tau + log<double>(S0 / S1 * c));
    const Vec<double> push = share * z.sigmoid() / double(K), f0 = push / S0, f1 = push / S1;
    for (int l = 0; l < D; ++l) {
      loss[d + l] = tau * z.softplus()[l];
      step[d + l] = push[l];
    }
    if (!call.grad) continue;
    Vec<double> leave[K];
    for (int i = 0; i < K; ++i) {
      const Vec<double> enter = f0 * V[i + 1] - f1 * V[i + 2];
      leave[i] = f1 * rest[i] - f0 * rest[i + 1];
      for (int l = 0; l < D; ++l) {
        in[i][d + l] = T(enter[l]);
        coefficient[i][d + l] = T(rest[i][l]);
      }
    }
    for (int a = 0; a < K; ++a) {
      Vec<double> others[K] = {}, out{};
      others[0] = splat(1.0);
      for (int i = 0; i < K; ++i)
        if (i != a)
          for (int m = K - 1; m > 0; --m) others[m] += v[i] * others[m - 1];
      for (int m = 0; m < K; ++m) out += leave[m] * others[m];
      out *= v[a];
      for (int l = 0; l < D; ++l) leaving[a][d + l] = T(out[l]);
    }
  }
  if (call.grad) {
    Vec<T> w[K], b0[K];
    for (int i = 0; i < K; ++i) w[i] = load(in[i]), b0[i] = load(coefficient[i]);
    for (int64_t j = 0; j < n; ++j) {
      const Vec<T> e = load(r + j * W);
      Vec<T> b = b0[0], g = b * w[0];
#pragma GCC unroll 8
      for (int i = 1; i < K; ++i) {
        b = b0[i] - e * b;
        g += b * w[i];
      }
      g *= e;
      if (bits<T>(e < T(0))) {
        const Vec<T> v = load(x + j * W);
        for (int i = 0; i < K; ++i) g = ((e < T(0)) & (v == best[i])) ? load(leaving[i]) : g;
      }
      store(r + j * W, g);
    }
  }
  const unsigned bad = bits<T>(nan), few = bits<T>(pivot == kMinusInf<T>);  // few: fewer than k rivals
  for (int l = 0; l < here; ++l) {
    T* grad = row_of<T>(call.grad, first + l, n);
    const bool spoilt = bad >> l & 1, sure = few >> l & 1;
    if (grad && weight[l] > 0 && !spoilt) {
      for (int64_t j = 0; j < n; ++j) grad[j] = sure ? T(0) : r[j * W + l];
      grad[y[l]] = sure ? T(0) : T(-step[l]);
    }
    finish(call, first + l, spoilt ? kNaN<double> : sure ? 0.0 : loss[l], weight[l], grad);
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
