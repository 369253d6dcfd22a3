// The frame that LML and the subset sums share: a row split into its top k and the rest, and the one number that
// balances them (as many expected to leave the top as to enter it).
//
//   v_j = e^(pivot - s_j) <= 1 (top, double),  r_j = e^(s_j - rest pivot) <= 1 (rest; 0 for labels that take no part)
//   x = e^(delta - gap/2), w = e^(-delta - gap/2):   sum r x/(1 + r x) = sum v w/(1 + v w)
#pragma once

#include "log.h"
#include "select.h"

namespace SHORTLIST_ISA {

constexpr int64_t kBlock = 4096;  // labels summed in the scores' own type before the sum moves on in double

struct Moments {  // sums of numbers, of their squares, ...; NaN where not asked for
  double first = 0, second = NAN, third = NAN, fourth = NAN;
};

// x_j <- e^((x_j - pivot) * scale), in place; returns their sum, with Powers = 4 also those of their powers. A pad or a
// label that takes no part holds -inf and becomes 0.
template <int Powers = 1, class T> Moments exponentials(T* x, int64_t n_padded, T pivot, T scale) {
  constexpr int W = kWidth<T>;
  double sum[4] = {};
  for (int64_t block = 0; block < n_padded; block += kBlock) {
    const int64_t end = block + kBlock < n_padded ? block + kBlock : n_padded;
    Vec<T> one{}, two{}, three{}, four{};
    for (int64_t j = block; j < end; j += 4 * W) {
      Vec<T> a[4];
      for (int q = 0; q < 4; ++q) a[q] = (load(x + j + q * W) - pivot) * scale;
      exp_each<T, 4, false>(a);
      for (int q = 0; q < 4; ++q) {
        store(x + j + q * W, a[q]);
        one += a[q];
        if constexpr (Powers == 4) {
          const Vec<T> square = a[q] * a[q];
          two += square;
          three += square * a[q];
          four += square * square;
        }
      }
    }
    sum[0] += total<T>(one);
    if constexpr (Powers == 4) {
      sum[1] += total<T>(two);
      sum[2] += total<T>(three);
      sum[3] += total<T>(four);
    }
  }
  return Powers == 4 ? Moments{sum[0], sum[1], sum[2], sum[3]} : Moments{sum[0]};
}

constexpr int64_t padded_odds(int64_t k) { return (k + 31) / 32 * 32; }  // four vectors of double, of any instruction set
inline int64_t pairs_of_vectors(int64_t k) {  // what of them has to be looked at
  constexpr int64_t two = 2 * kWidth<double>;
  return (k + two - 1) / two * two;
}

// v_j = e^((pivot - top_j) * scale) in double; pads hold 0. Returns the sum.
template <class T> double leave_odds(const Top<T>& top, double pivot, double scale, double* v) {
  constexpr int W = kWidth<double>;
  for (int64_t i = 0; i < top.count; ++i) v[i] = (pivot - double(top.value[i])) * scale;
  const int64_t wide = pairs_of_vectors(top.count);
  for (int64_t i = top.count; i < wide; ++i) v[i] = kMinusInf<double>;
  for (int64_t i = wide; i < padded_odds(top.count); ++i) v[i] = 0;
  Vec<double> sum{};
  for (int64_t i = 0; i < wide; i += W) {
    const Vec<double> e = exp<double>(load(v + i));
    store(v + i, e);
    sum += e;
  }
  return total<double>(sum);
}

// Sums of q, q^2, q^3 for q = a t/(1 + a t).
template <class T> Moments shares(const T* a, int64_t n_padded, T t) {
  constexpr int W = kWidth<T>;
  Moments out{0, 0, 0};
  for (int64_t block = 0; block < n_padded; block += kBlock) {
    const int64_t end = block + kBlock < n_padded ? block + kBlock : n_padded;
    Vec<T> one{}, two{}, three{};
    for (int64_t j = block; j < end; j += 2 * W) {
      const Vec<T> e = load(a + j) * t, f = load(a + j + W) * t;
      const Vec<T> q = divided<T>(e, e + T(1)), p = divided<T>(f, f + T(1));
      const Vec<T> qq = q * q, pp = p * p;
      one += q + p;
      two += qq + pp;
      three += qq * q + pp * p;
    }
    out.first += total<T>(one);
    out.second += total<T>(two);
    out.third += total<T>(three);
  }
  return out;
}

// The same from the moments of a alone, numbers up to 1: sum a^i t^i with changing signs. Of what is left out after four
// terms, sum (a t)^5/(1 + a t), at least fourth^2/third t^5/(1 + t) is known to be there; `error` is what it can be more,
// as a part of the sum.
struct Series {
  Moments m;
  double known(double t) const { return m.fourth / m.third / (1 + t); }
  double error(double t) const { return t * t * t * t * m.fourth * (1 - known(t)) / m.first; }
  Moments at(double t) const {
    return {t * (m.first - t * (m.second - t * (m.third - t * m.fourth * (1 - t * known(t))))),
            t * t * (m.second - t * (2 * m.third - t * 3 * m.fourth)), t * t * t * (m.third - t * 3 * m.fourth)};
  }
};

struct Balance {
  double delta;  // the solution
  double x, w;
};

// x close to the solution, from the rest's first two moments alone: its sum replaced by x m1/(1 + x m2/m1). Where the top's
// sum is replaced by w m/(1 + w m/k), m that of the odds, x solves a quadratic. Then a step of Newton in log x with the top's
// own sum, whose logarithm and exponential may be rough too (Pade): what they lead to is not.
inline double rough_balance(Moments rest, const double* v, int64_t k, double sum_v, double both) {
  const double spread = rest.second / rest.first, odds = sum_v * both;
  const double half = 0.5 * odds * (1 / double(k) - spread / rest.first), root = std::sqrt(half * half + odds / rest.first);
  double x = half > 0 ? odds / rest.first / (root + half) : root - half;
  const Moments out = shares(v, pairs_of_vectors(k), both / x);
  const double damped = 1 + x * spread, ratio = x * rest.first / (damped * out.first);
  const double move = 2 * (ratio - 1) / (ratio + 1) / (1 / damped + 1 - out.second / out.first);
  return x * (12 - 6 * move + move * move) / (12 + 6 * move + move * move);
}

// Halley on f = log(sum rest) - log(sum top), safeguarded by the bracket it builds. The last step is at most
// `tolerance`; the error left is about a sixth of its cube. Where the rest's moments say as much, no label is looked at;
// where they say nearly as much, none in the first step.
template <class T>
Balance balance(const T* r, int64_t n_padded, Moments moments, const double* v, int64_t k, double sum_v, double gap,
                double tolerance) {
  const double half = gap / 2;
  if (gap > 100) {  // so far apart that no denominator differs from 1
    const double delta = 0.5 * std::log(sum_v / moments.first);
    return {delta, std::exp(delta - half), std::exp(-delta - half)};
  }
  const Series series{moments};
  const double both = std::exp(-gap), left = tolerance * tolerance * tolerance / 6;  // both: x w
  double x = rough_balance(moments, v, k, sum_v, both), delta = std::log(x) + half;
  double low = -INFINITY, high = INFINITY;
  constexpr double small = sizeof(T) == 4 ? 1e-2 : 1e-3;  // Pade is off by move^5/720: x and delta must say the same
  for (int step = 0; step < 60; ++step) {
    const double error = series.error(x);
    const bool known = error <= left, guess = !known && step == 0 && error < 1e-2;
    const Moments out = shares(v, pairs_of_vectors(k), both / x);
    const Moments in = known || guess ? series.at(x) : shares(r, n_padded, T(x));
    const double f = std::log(in.first / out.first);
    if (!guess) (f > 0 ? high : low) = delta;
    const double rise = 1 - in.second / in.first, fall = 1 - out.second / out.first, slope = rise + fall;
    const double bend = (1 - (3 * in.second - 2 * in.third) / in.first - rise * rise) -
                        (1 - (3 * out.second - 2 * out.third) / out.first - fall * fall);
    const double newton = -f / slope, curved = 1 + newton * bend / (2 * slope);
    double move = curved > 0.5 ? newton / curved : newton;
    const bool last = std::fabs(move) <= tolerance && !guess;
    if (!last && !(delta + move > low && delta + move < high)) move = 0.5 * (low + high) - delta;
    if (!std::isfinite(move)) break;
    delta += move;
    x *= std::fabs(move) < small ? (12 + 6 * move + move * move) / (12 - 6 * move + move * move) : std::exp(move);
    if (last) break;
  }
  return {delta, x, both / x};
}

// Rows side by side, one in each element: what `balance` does where the moments say all, without its waiting for one
// number after the other. v: the odds of the top, a vector for each of the k. A row's numbers do not depend on its
// neighbours; `found` is not set where `balance` has to be asked.
struct Balances {
  Vec<double> delta, x, w;
  Int<double> found;
};

inline Balances balances(const Vec<double>* moment, const Vec<double>* v, int64_t k, Vec<double> gap, double tolerance) {
  using D = Vec<double>;
  const D first = moment[0], second = moment[1], third = moment[2], fourth = moment[3];
  struct Sums {
    D first{}, second{}, third{};
  };
  const auto leaving = [&](D t) {
    Sums out;
    for (int64_t i = 0; i < k; ++i) {
      const D e = v[i] * t, q = e / (e + 1.0), qq = q * q;
      out.first += q;
      out.second += qq;
      out.third += qq * q;
    }
    return out;
  };
  D sum_v{};
  for (int64_t i = 0; i < k; ++i) sum_v += v[i];
  // the roots of `rough_balance`
  const D both = exp<double>(-gap), spread = second / first, odds = sum_v * both;
  const D half = 0.5 * odds * (1 / double(k) - spread / first);
  D root = half * half + odds / first;
  for (int l = 0; l < kWidth<double>; ++l) root[l] = std::sqrt(root[l]);
  const D start = half > 0.0 ? odds / first / (root + half) : root - half, damped = start * spread + 1.0;
  const Sums out = leaving(both / start);
  const D ratio = start * first / (damped * out.first);
  const D rough = 2 * (ratio - 1.0) / (ratio + 1.0) / (1.0 / damped + 1.0 - out.second / out.first);
  Balances b{{}, start * (12.0 - 6 * rough + rough * rough) / (12.0 + 6 * rough + rough * rough), {}, {}};
  b.delta = log<double>(b.x) + gap / 2;
  const double left = tolerance * tolerance * tolerance / 6;
  for (int step = 0; step < 3; ++step) {
    const D x = b.x, xx = x * x, known = fourth / third / (x + 1.0);
    const Sums top = leaving(both / x);
    const D in = x * (first - x * (second - x * (third - x * fourth * (1.0 - x * known))));
    const D in2 = xx * (second - x * (2 * third - x * 3 * fourth)) / in, in3 = xx * x * (third - x * 3 * fourth) / in;
    const D top2 = top.second / top.first, top3 = top.third / top.first, rise = 1.0 - in2, fall = 1.0 - top2, slope = rise + fall;
    const D bend = (1.0 - (3 * in2 - 2 * in3) - rise * rise) - (1.0 - (3 * top2 - 2 * top3) - fall * fall);
    const D newton = -log<double>(in / top.first) / slope, move = newton / (newton * bend / (2 * slope) + 1.0);
    const Int<double> said = xx * xx * fourth * (1.0 - known) / first <= left, goes = said & ~b.found;
    const Int<double> near = (move <= tolerance) & (move >= -tolerance);
    b.delta = goes ? b.delta + move : b.delta;
    b.x = goes ? x * exp<double>(move) : x;
    b.found |= said & near;
    if (!bits<double>(said & ~b.found)) break;
  }
  b.w = both / b.x;
  b.found &= (gap <= 100.0) & (b.x > 0.0);
  return b;
}

}  // namespace SHORTLIST_ISA
