// How the marginals of the k-subsets change along a direction: their Jacobian (the covariance of the subset, symmetric)
// times a vector, which is what flows back through them. The swap polynomials of swap.h with every number carrying its
// derivative, in double throughout; k up to kPlainDegree.
#pragma once

#include "swap.h"

namespace SHORTLIST_ISA {

template <int K> struct Slopes {
  double c[K + 1] = {1}, d[K + 1] = {};  // coefficients and their derivatives

  // times (1 + x t), where x changes by dx
  void times(double x, double dx) {
    for (int i = K; i > 0; --i) {
      d[i] += x * d[i - 1] + dx * c[i - 1];
      c[i] += x * c[i - 1];
    }
  }

  void times(const Slopes& other) {
    Slopes out;
    for (int i = K; i >= 0; --i) {
      out.c[i] = out.d[i] = 0;
      for (int p = 0; p <= i; ++p) {
        out.c[i] += c[p] * other.c[i - p];
        out.d[i] += d[p] * other.c[i - p] + c[p] * other.d[i - p];
      }
    }
    *this = out;
  }
};

// prod (1 + x_j t) with dx_j = x_j u_j, one polynomial per lane, merged at the end
template <int K> Slopes<K> elementary_slopes(const double* x, const double* u, int64_t n_padded) {
  constexpr int W = kWidth<double>;
  Vec<double> c[K + 1] = {}, d[K + 1] = {};
  c[0] = splat(1.0);
  for (int64_t j = 0; j < n_padded; j += W) {
    const Vec<double> v = load(x + j), dv = v * load(u + j);
#pragma GCC unroll 8
    for (int i = K; i > 0; --i) {
      d[i] += v * d[i - 1] + dv * c[i - 1];
      c[i] += v * c[i - 1];
    }
  }
  Slopes<K> out;
  for (int l = 0; l < W; ++l) {
    Slopes<K> lane;
    for (int i = 0; i <= K; ++i) lane.c[i] = c[i][l], lane.d[i] = d[i][l];
    out.times(lane);
  }
  return out;
}

// x: the row in double, finite, padded with -inf, used up; u: the direction, padded with 0; out: padded.
template <int K> void subset_slope_row(double* x, const double* u, int64_t n, Top<double>& top, double* out) {
  constexpr int W = kWidth<double>;
  static thread_local Scratch odds;
  double* v = odds.get<double>(padded_odds(K));
  const double pivot = top.smallest(), sum_v = leave_odds(top, pivot, 1.0, v);
  for (int i = 0; i < K; ++i) x[top.index[i]] = kMinusInf<double>;
  const Moments rest = exponentials(x, padded(n), pivot, 1.0);
  if (!(rest.first > 0)) return fill(out, n, 0.0);  // nothing else is usable: the top is certain
  const double tilt = std::fmax(1.0, std::sqrt(rest.first / sum_v));
  for (int64_t j = 0; j < padded(n); ++j) x[j] /= tilt;
  Slopes<K> V;
  for (int i = 0; i < K; ++i) V.times(v[i] * tilt, -v[i] * tilt * u[top.index[i]]);
  const Slopes<K> R = elementary_slopes<K>(x, u, padded(n));
  double S = 0, dS = 0;
  for (int i = 0; i <= K; ++i) {
    S += V.c[i] * R.c[i];
    dS += V.d[i] * R.c[i] + V.c[i] * R.d[i];
  }
  dS /= S;
  // the rest: in with chance x sum_i w_i b_i, b = R without the label
  double w[K], dw[K];
  for (int i = 0; i < K; ++i) {
    w[i] = V.c[i + 1] / S;
    dw[i] = V.d[i + 1] / S - w[i] * dS;
  }
  for (int64_t j = 0; j < padded(n); j += W) {
    const Vec<double> odd = load(x + j), moved = odd * load(u + j);
    Vec<double> b = splat(1.0), db{}, sum = splat(w[0]), dsum = splat(dw[0]);
#pragma GCC unroll 8
    for (int i = 1; i < K; ++i) {
      db = R.d[i] - odd * db - moved * b;
      b = R.c[i] - odd * b;
      sum += w[i] * b;
      dsum += dw[i] * b + w[i] * db;
    }
    store(out + j, odd * dsum + moved * sum);
  }
  // the top: out with chance v sum_i R_{i+1} q_i, q = V without the label
  for (int a = 0; a < K; ++a) {
    Slopes<K> others;
    for (int i = 0; i < K; ++i)
      if (i != a) others.times(v[i] * tilt, -v[i] * tilt * u[top.index[i]]);
    double leave = 0, dleave = 0;
    for (int i = 0; i < K; ++i) {
      leave += others.c[i] * R.c[i + 1];
      dleave += others.d[i] * R.c[i + 1] + others.c[i] * R.d[i + 1];
    }
    out[top.index[a]] = -v[a] * tilt / S * (dleave - leave * (u[top.index[a]] + dS));
  }
}

template <class T> void subset_slope(const T* s, const T* direction, int64_t n, int64_t k, T* slope) {
  static thread_local Scratch rows, directions, slopes;
  double* x = rows.get<double>(padded(n));
  double* u = directions.get<double>(padded(n));
  double* out = slopes.get<double>(padded(n));
  for (int64_t j = 0; j < n; ++j) {
    out[j] = s[j] > kMost<T> ? double(kMost<T>) : double(s[j]);
    u[j] = s[j] > kMinusInf<T> ? double(direction[j]) : 0.0;
  }
  for (int64_t j = n; j < padded(n); ++j) u[j] = 0;
  Peaks<double> peaks;
  if (finite_copy(out, n, x, peaks)) return fill(slope, n, kNaN<T>);
  Top<double> top = select_top(x, n, k, peaks);
  if (top.count < k) return fill(slope, n, T(0));  // no k-subset: every usable label is certainly in
  switch (k) {
    case 1: subset_slope_row<1>(x, u, n, top, out); break;
    case 2: subset_slope_row<2>(x, u, n, top, out); break;
    case 3: subset_slope_row<3>(x, u, n, top, out); break;
    case 4: subset_slope_row<4>(x, u, n, top, out); break;
    case 5: subset_slope_row<5>(x, u, n, top, out); break;
    case 6: subset_slope_row<6>(x, u, n, top, out); break;
    case 7: subset_slope_row<7>(x, u, n, top, out); break;
    default: subset_slope_row<8>(x, u, n, top, out); break;
  }
  for (int64_t j = 0; j < n; ++j) slope[j] = T(out[j]);
}

template <class T> void subset_slopes(const Rows& rows, const shortlist::SubsetSlopesCall& call) {
  const int64_t n = rows.n;
  for_rows(rows.rows, n, 3 + double(call.k), rows.threads, [&](int64_t row) {
    subset_slope(row_of<const T>(call.scores, row, n), row_of<const T>(call.direction, row, n), n, call.k,
                 row_of<T>(call.slopes, row, n));
  });
}

}  // namespace SHORTLIST_ISA
