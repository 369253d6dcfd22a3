// log of vectors, and what the logistic losses are made of.
#pragma once

#include "rows.h"

namespace SHORTLIST_ISA {

template <class T> struct LogConstants;
template <> struct LogConstants<float> {
  static constexpr int32_t sqrt_half = 0x3f3504f3;
};
template <> struct LogConstants<double> {
  static constexpr int64_t sqrt_half = 0x3fe6a09e667f3bcd;
};

// (2 atanh(s)/s - 2)/s^2 with s^2 = z <= 0.0295: its series, 2/3 + 2/5 z + 2/7 z^2 + ..., to as many terms as the type has
// digits for. What is left out is below 2.1e-9 (float) and 7e-19 (double) of log m; rounded, log x is within 2 ulp. Measured
// like exp (simd.h).
inline Vec<float> atanh_tail(Vec<float> z) {
  Vec<float> p = z * (2.0f / 9) + 2.0f / 7;
  p = p * z + 2.0f / 5;
  return p * z + 2.0f / 3;
}
inline Vec<double> atanh_tail(Vec<double> z) {
  Vec<double> p = z * (2.0 / 21) + 2.0 / 19;
  p = p * z + 2.0 / 17;
  p = p * z + 2.0 / 15;
  p = p * z + 2.0 / 13;
  p = p * z + 2.0 / 11;
  p = p * z + 2.0 / 9;
  p = p * z + 2.0 / 7;
  p = p * z + 2.0 / 5;
  return p * z + 2.0 / 3;
}

// log x for normal x > 0: x = 2^e m with m near 1, log m = 2 atanh((m - 1)/(m + 1)).
template <class T> inline Vec<T> log(Vec<T> x) {
  using C = ExpConstants<T>;
  Int<T> i;
  std::memcpy(&i, &x, sizeof x);
  const Int<T> e = (i - LogConstants<T>::sqrt_half) >> C::mantissa;
  i -= e << C::mantissa;
  Vec<T> m;
  std::memcpy(&m, &i, sizeof m);
  const Vec<T> f = m - T(1), s = f / (m + T(1)), z = s * s;
  const Vec<T> whole = __builtin_convertvector(e, Vec<T>);
  return whole * C::ln2_high + (whole * C::ln2_low + (s * z * atanh_tail(z) + s * T(2)));
}

// log(1 + t) for t > -1, exact for small t: the rounding of 1 + t is put back. `inverse` is 1/(1 + t).
template <class T> inline Vec<T> log1p(Vec<T> t, Vec<T> inverse) {
  const Vec<T> w = t + T(1);
  return log<T>(w) + (t - (w - T(1))) * inverse;
}

// softplus and sigmoid of x and of -x, all from e^-|x|.
template <class T> struct Logistic {
  Vec<T> log1p;         // log(1 + e^-|x|)
  Vec<T> large, small;  // sigmoid(|x|), sigmoid(-|x|)
  Int<T> negative;      // x < 0
  Vec<T> magnitude;

  explicit Logistic(Vec<T> x) {
    negative = x < T(0);
    magnitude = negative ? -x : x;
    const Vec<T> e = exp<T>(-magnitude);
    large = T(1) / (e + T(1));
    small = e * large;
    log1p = SHORTLIST_ISA::log1p<T>(e, large);
  }
  Vec<T> softplus() const { return (negative ? splat<T>(0) : magnitude) + log1p; }       // of x
  Vec<T> softplus_minus() const { return (negative ? magnitude : splat<T>(0)) + log1p; }  // of -x
  Vec<T> sigmoid() const { return negative ? small : large; }
  Vec<T> sigmoid_minus() const { return negative ? large : small; }
};

// For the tests: exp or log of every number. Below a whole vector the rest is padded with 1.
template <class T> void exp_or_log(const Rows& rows, const shortlist::ExpOrLogCall& call) {
  constexpr int W = kWidth<T>;
  const int64_t count = rows.rows * rows.n;
  const T* x = static_cast<const T*>(call.x);
  T* out = static_cast<T*>(call.out);
  for (int64_t j = 0; j < count; j += W) {
    const int64_t here = count - j < W ? count - j : W;
    Vec<T> v = splat<T>(1);
    std::memcpy(&v, x + j, size_t(here) * sizeof(T));
    v = call.logarithm ? log<T>(v) : exp<T>(v);
    std::memcpy(out + j, &v, size_t(here) * sizeof(T));
  }
}

}  // namespace SHORTLIST_ISA
