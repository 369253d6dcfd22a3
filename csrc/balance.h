// The frame that LML and the subset sums share: a row split into its top k and the rest, and the one number that
// balances them (maths: as many expected to leave the top as to enter it).
//
//   v_j = e^(pivot - s_j) <= 1 (top, double),  r_j = e^(s_j - rest pivot) <= 1 (rest; 0 for labels that take no part)
//   x = e^(delta - gap/2), w = e^(-delta - gap/2):   sum r x/(1 + r x) = sum v w/(1 + v w)
#pragma once

#include <cmath>

#include "select.h"

namespace SHORTLIST_ISA {

// x_j <- e^((x_j - pivot) * scale), in place; returns the sum. A pad or an excluded label holds -inf and becomes 0.
template <class T> double exponentials(T* x, int64_t n_padded, T pivot, T scale) {
  constexpr int W = kWidth<T>;
  double sum = 0;
  for (int64_t block = 0; block < n_padded; block += 4096) {
    const int64_t end = block + 4096 < n_padded ? block + 4096 : n_padded;
    Vec<T> lane{}, other{};
    for (int64_t j = block; j < end; j += 2 * W) {
      const Vec<T> a = exp<T>((load(x + j) - pivot) * scale), b = exp<T>((load(x + j + W) - pivot) * scale);
      store(x + j, a);
      store(x + j + W, b);
      lane += a;
      other += b;
    }
    sum += total<T>(lane + other);
  }
  return sum;
}

// v_j = e^((pivot - top_j) * scale) in double; pads hold 0. Returns the sum.
template <class T> double leave_odds(const Top<T>& top, double pivot, double scale, double* v) {
  constexpr int W = kWidth<double>;
  double sum = 0;
  for (int64_t i = 0; i < top.count; ++i) v[i] = (pivot - double(top.value[i])) * scale;
  for (int64_t i = top.count; i < padded(top.count); ++i) v[i] = kMinusInf<double>;
  for (int64_t i = 0; i < padded(top.count); i += W) store(v + i, exp<double>(load(v + i)));
  for (int64_t i = 0; i < top.count; ++i) sum += v[i];
  return sum;
}

struct Sums {
  double mean = 0, square = 0;  // sum of q and of q^2 for q = a t/(1 + a t)
};

template <class T> Sums shares(const T* a, int64_t n_padded, T t) {
  constexpr int W = kWidth<T>;
  Sums out;
  for (int64_t block = 0; block < n_padded; block += 4096) {
    const int64_t end = block + 4096 < n_padded ? block + 4096 : n_padded;
    Vec<T> mean{}, square{}, mean2{}, square2{};
    for (int64_t j = block; j < end; j += 2 * W) {
      const Vec<T> e = load(a + j) * t, f = load(a + j + W) * t;
      const Vec<T> q = e / (e + T(1)), p = f / (f + T(1));
      mean += q;
      square += q * q;
      mean2 += p;
      square2 += p * p;
    }
    out.mean += total<T>(mean + mean2);
    out.square += total<T>(square + square2);
  }
  return out;
}

// Newton on log(sum rest) - log(sum top), safeguarded by the bracket it builds. The last step taken is at most
// `tolerance`, so that the error left is its square.
template <class T>
double balance(const T* r, int64_t n_padded, double sum_r, const double* v, int64_t k, double sum_v, double gap,
               double tolerance) {
  double delta = 0.5 * std::log(sum_v / sum_r);
  if (gap > 100) return delta;
  double low = -INFINITY, high = INFINITY;
  for (int step = 0; step < 60; ++step) {
    const Sums in = shares(r, n_padded, T(std::exp(delta - gap / 2)));
    const Sums out = shares(v, padded(k), std::exp(-delta - gap / 2));
    const double f = std::log(in.mean / out.mean);
    (f > 0 ? high : low) = delta;
    double move = -f / (2 - in.square / in.mean - out.square / out.mean);
    if (std::fabs(move) <= tolerance) return delta + move;
    if (!(delta + move > low && delta + move < high)) move = 0.5 * (low + high) - delta;
    if (!std::isfinite(move)) return delta;
    delta += move;
  }
  return delta;
}

}  // namespace SHORTLIST_ISA
