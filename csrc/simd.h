// Vectors of float and double (GCC/Clang vector extensions), and the few operations the kernels need.
// Everything lives in a namespace named after the instruction set, so that the three builds never mix.
#pragma once

#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace SHORTLIST_ISA {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#else
constexpr int kVectorBytes = 32;  // the baseline build splits it in two
#endif

template <class T> struct Types;
template <> struct Types<float> {
  typedef float Vec __attribute__((vector_size(kVectorBytes)));
  typedef float InMemory __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));  // anywhere in memory
  typedef int32_t Int __attribute__((vector_size(kVectorBytes)));
  typedef int32_t Whole;
};
template <> struct Types<double> {
  typedef double Vec __attribute__((vector_size(kVectorBytes)));
  typedef double InMemory __attribute__((vector_size(kVectorBytes), aligned(8), may_alias));
  typedef int64_t Int __attribute__((vector_size(kVectorBytes)));
  typedef int64_t Whole;
};
template <class T> using Vec = typename Types<T>::Vec;
template <class T> using Int = typename Types<T>::Int;
template <class T> using Whole = typename Types<T>::Whole;  // an element of Int
template <class T> constexpr int kWidth = kVectorBytes / sizeof(T);

// Not by memcpy: GCC would copy from memory to memory, and load a second time what is computed with.
template <class T> inline Vec<T> load(const T* p) { return *reinterpret_cast<const typename Types<T>::InMemory*>(p); }
template <class T> inline void store(T* p, Vec<T> v) { *reinterpret_cast<typename Types<T>::InMemory*>(p) = v; }
template <class T> inline Vec<T> splat(T x) { return x - Vec<T>{}; }

// The first `count` elements of a vector, at the end of a row.
template <class T> inline Vec<T> load_part(const T* p, int64_t count, T rest) {
  Vec<T> v = splat(rest);
  std::memcpy(&v, p, size_t(count) * sizeof(T));
  return v;
}
template <class T> inline void store_part(T* p, Vec<T> v, int64_t count) {
  std::memcpy(p, &v, size_t(count) * sizeof(T));
}

// The greater of two; where one is NaN, the second. GCC finds the instruction for it, but not AVX-512's.
template <class T> inline Vec<T> greater(Vec<T> a, Vec<T> b) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return (Vec<T>)_mm512_max_ps((__m512)a, (__m512)b);
  else return (Vec<T>)_mm512_max_pd((__m512d)a, (__m512d)b);
#else
  return a > b ? a : b;
#endif
}

// The lesser of two, likewise.
template <class T> inline Vec<T> lesser(Vec<T> a, Vec<T> b) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return (Vec<T>)_mm512_min_ps((__m512)a, (__m512)b);
  else return (Vec<T>)_mm512_min_pd((__m512d)a, (__m512d)b);
#else
  return a < b ? a : b;
#endif
}

// One bit per element of a comparison's result.
template <class T> inline unsigned bits(Int<T> m) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_movepi32_mask((__m512i)m);
  else return _mm512_movepi64_mask((__m512i)m);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4) return _mm256_movemask_ps((__m256)m);
  else return _mm256_movemask_pd((__m256d)m);
#elif defined(__SSE2__)
  __m128i half[2];
  std::memcpy(half, &m, sizeof m);
  if constexpr (sizeof(T) == 4)
    return _mm_movemask_ps((__m128)half[0]) | (_mm_movemask_ps((__m128)half[1]) << 4);
  else
    return _mm_movemask_pd((__m128d)half[0]) | (_mm_movemask_pd((__m128d)half[1]) << 2);
#else
  unsigned out = 0;
  for (int i = 0; i < kWidth<T>; ++i) out |= unsigned(m[i] != 0) << i;
  return out;
#endif
}

// One bit per element that is above the other vector's.
template <class T> inline unsigned bits_above(Vec<T> a, Vec<T> b) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GT_OQ);
  else return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_GT_OQ);
#else
  return bits<T>(a > b);
#endif
}

// The sum of a vector's elements, in double: halves are added until one number is left.
template <class T, int N> struct Elements {
  typedef T Vec __attribute__((vector_size(N * sizeof(T))));
};
template <int N> inline double total_of(typename Elements<double, N>::Vec v) {
  if constexpr (N == 2) {
    return v[0] + v[1];
  } else {
    typename Elements<double, N / 2>::Vec half[2];
    std::memcpy(half, &v, sizeof v);
    return total_of<N / 2>(half[0] + half[1]);
  }
}
template <class T> inline double total(Vec<T> v) {
  constexpr int N = kWidth<T> / 2;
  typename Elements<T, N>::Vec half[2];
  std::memcpy(half, &v, sizeof v);
  using Wide = typename Elements<double, N>::Vec;
  return total_of<N>(__builtin_convertvector(half[0], Wide) + __builtin_convertvector(half[1], Wide));
}

// e^x = 2^m e^r with m = round(x / ln 2) and |r| <= ln 2 / 2. ln 2 in two parts, of which m times the first is exact, is
// Cody and Waite's split as in Cephes (expf.c, exp.c; Moshier 1984-2000). The polynomials:
//   float   minimax for (e^r - 1 - r)/r^2, degree 4 (by linear programming; each coefficient was rounded before the next
//           ones were found). Its own relative error is 3.1e-9; that of Cephes' expf, of degree 5, is 2.7e-9.
//   double  Taylor's series to degree 13. Its own relative error is 5.8e-18.
// Rounded, e^x is within 1.3 units in the last place (ulp) of either type.
// tests/kernels/test_elementary.py measures both against mpmath, for every instruction set; it fails where one is worse.
//
// Rounding to the nearest whole number by adding 1.5 * 2^(mantissa bits): the sum's low bits hold the integer.
template <class T> struct ExpConstants;
template <> struct ExpConstants<float> {
  static constexpr float round = 12582912.0f, log2e = 1.44269504088896341f, ln2_high = 0.693359375f,
                         ln2_low = -2.12194440e-4f, lowest = -87.3f;
  static constexpr float polynomial[] = {1.3819567393e-3f, 8.3686765283e-3f, 4.1668277234e-2f, 1.6666521132e-1f,
                                         4.9999994040e-1f, 1.0f, 1.0f};  // the highest power first
  static constexpr int mantissa = 23;
};
template <> struct ExpConstants<double> {
  static constexpr double round = 6755399441055744.0, log2e = 1.4426950408889634074, ln2_high = 6.93145751953125e-1,
                          ln2_low = 1.42860682030941723212e-6, lowest = -708.0;
  static constexpr double polynomial[] = {1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0,
                                          1.0 / 362880.0, 1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0,
                                          1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0};
  static constexpr int mantissa = 52;
};

// x <- e^x for x <= 0 (or small); 0 below the smallest normal number; a NaN, where there may be one, stays one, whatever
// its bits. Several vectors side by side: a step of one has not to wait for its own step before.
template <class T, int Count, bool MayBeNaN = true> inline void exp_each(Vec<T>* x) {
  using C = ExpConstants<T>;
  Vec<T> shifted[Count], r[Count], p[Count];
  for (int i = 0; i < Count; ++i) shifted[i] = x[i] * C::log2e + C::round;
  for (int i = 0; i < Count; ++i) {
    const Vec<T> whole = shifted[i] - C::round;
    r[i] = (x[i] - whole * C::ln2_high) - whole * C::ln2_low;
  }
  for (int i = 0; i < Count; ++i) p[i] = r[i] * C::polynomial[0] + C::polynomial[1];
  for (int c = 2; c < int(sizeof C::polynomial / sizeof(T)); ++c)
    for (int i = 0; i < Count; ++i) p[i] = p[i] * r[i] + C::polynomial[c];
  for (int i = 0; i < Count; ++i) {
    Int<T> scaled, exponent;
    std::memcpy(&scaled, &p[i], sizeof scaled);
    std::memcpy(&exponent, &shifted[i], sizeof exponent);
    scaled += exponent << C::mantissa;  // the integer's own high bits fall off the top
    Vec<T> out;
    std::memcpy(&out, &scaled, sizeof out);  // of no meaning where x is too low
    const Vec<T> zero{};
    if constexpr (!MayBeNaN) {
      x[i] = x[i] >= C::lowest ? out : zero;
    } else {
      const Vec<T> below = x[i] < C::lowest ? zero : x[i];
      x[i] = x[i] >= C::lowest ? out : below;
    }
  }
}
template <class T, bool MayBeNaN = true> inline Vec<T> exp(Vec<T> x) {
  exp_each<T, 1, MayBeNaN>(&x);
  return x;
}

// a / b within 0.6 units in the last place, b > 0 of ordinary size. AVX-512 divides float no faster than AVX2: it takes a
// reciprocal of 14 bits, and one step of Newton.
template <class T> inline Vec<T> divided(Vec<T> a, Vec<T> b) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    const Vec<T> inverse = (Vec<T>)_mm512_rcp14_ps((__m512)b), q = a * inverse;
    return q + (a - b * q) * inverse;
  }
#endif
  return a / b;
}

}  // namespace SHORTLIST_ISA
