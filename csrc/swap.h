// Sums over k-subsets by tilted swap polynomials. A k-subset is the top set with i members swapped for i of the rest:
//
//   V = prod_top (1 + v_j c t),  R = prod_rest (1 + (r_j / c) t)       every factor and coefficient positive
//   S0 = sum_i V_i R_i    (subsets of size k)        S1 = sum_i V_{i+1} R_i    (of size k - 1, times c)
//
// The tilt c balances how many are expected to leave and to enter, so that the large coefficients of V and R meet.
#pragma once

#include "balance.h"

namespace SHORTLIST_ISA {

// ---- coefficients of prod (1 + x_j t) up to `degree`, one polynomial per vector lane, merged at the end ----

template <int K, class T> void lanes_fixed(const T* x, int64_t n_padded, Vec<T>* out) {
  constexpr int W = kWidth<T>;
  Vec<T> a[K + 1] = {};
  a[0] = splat<T>(1);
  for (int64_t j = 0; j < n_padded; j += W) {
    const Vec<T> v = load(x + j);
#pragma GCC unroll 16
    for (int i = K; i > 0; --i) a[i] += v * a[i - 1];
  }
  for (int i = 0; i <= K; ++i) out[i] = a[i];
}

// Four labels at a time: a_i <- e0 (a_i + e1 a_{i-1} + e2 a_{i-2} + e3 a_{i-3} + e4 a_{i-4}). e0 = 1, or, to keep every
// coefficient in [0, 1] at any degree, prod 1/(1 + x): a distribution of counts. Four zero vectors stand before `out`.
template <bool Normalized, class T> void lanes_general(const T* x, int64_t n_padded, int64_t degree, Vec<T>* out) {
  constexpr int W = kWidth<T>;
  for (int64_t i = -4; i <= degree; ++i) out[i] = Vec<T>{};
  out[0] = splat<T>(1);
  int64_t reached = 0;
  for (int64_t j = 0; j < n_padded; j += 4 * W) {
    const Vec<T> p = load(x + j), q = load(x + j + W), u = load(x + j + 2 * W), v = load(x + j + 3 * W);
    const Vec<T> pq = p * q, uv = u * v, sp = p + q, su = u + v;
    Vec<T> e0{}, e1 = sp + su, e2 = pq + uv + sp * su, e3 = pq * su + uv * sp, e4 = pq * uv;
    if constexpr (Normalized) {
      e0 = T(1) / ((T(1) + p) * (T(1) + q) * (T(1) + u) * (T(1) + v));
      e1 *= e0;
      e2 *= e0;
      e3 *= e0;
      e4 *= e0;
    }
    reached = reached + 4 < degree ? reached + 4 : degree;
    Vec<T> b1 = out[reached - 1], b2 = out[reached - 2], b3 = out[reached - 3];
    for (int64_t i = reached; i > 0; --i) {
      const Vec<T> b4 = out[i - 4];
      const Vec<T> swapped = (e1 * b1 + e2 * b2) + (e3 * b3 + e4 * b4);
      out[i] = (Normalized ? out[i] * e0 : out[i]) + swapped;
      b1 = b2;
      b2 = b3;
      b3 = b4;
    }
    if constexpr (Normalized) out[0] *= e0;
  }
}

// In place: lanes l and l + H multiplied for l < H.
template <int H> void merge_lanes(double* a, double* out, int64_t degree, int width) {
  for (int64_t i = 0; i <= degree; ++i)
    for (int l = 0; l < H; ++l) out[i * H + l] = 0;
  for (int64_t p = 0; p <= degree; ++p) {
    double left[H];
    for (int l = 0; l < H; ++l) left[l] = a[p * width + l];
    for (int64_t q = 0; q + p <= degree; ++q)
      for (int l = 0; l < H; ++l) out[(p + q) * H + l] += left[l] * a[q * width + H + l];
  }
}

template <bool Normalized, class T> void elementary_block(const T* x, int64_t n_padded, int64_t degree, double* out) {
  constexpr int W = kWidth<T>;
  static thread_local Scratch lanes, first, second;
  Vec<T>* a = lanes.get<Vec<T>>(degree + 6) + 4;
  if constexpr (Normalized) {
    lanes_general<true, T>(x, n_padded, degree, a);
  } else {
    switch (degree) {
      case 1: lanes_fixed<1>(x, n_padded, a); break;
      case 2: lanes_fixed<2>(x, n_padded, a); break;
      case 3: lanes_fixed<3>(x, n_padded, a); break;
      case 4: lanes_fixed<4>(x, n_padded, a); break;
      case 5: lanes_fixed<5>(x, n_padded, a); break;
      case 6: lanes_fixed<6>(x, n_padded, a); break;
      case 7: lanes_fixed<7>(x, n_padded, a); break;
      case 8: lanes_fixed<8>(x, n_padded, a); break;
      case 10: lanes_fixed<10>(x, n_padded, a); break;
      default: lanes_general<false, T>(x, n_padded, degree, a);
    }
  }
  double* p = first.get<double>((degree + 1) * W);
  double* q = second.get<double>((degree + 1) * W);
  for (int64_t i = 0; i <= degree; ++i)
    for (int l = 0; l < W; ++l) p[i * W + l] = double(a[i][l]);
  if constexpr (W == 16) {
    merge_lanes<8>(p, q, degree, 16);
    merge_lanes<4>(q, p, degree, 8);
  } else if constexpr (W == 8) {
    merge_lanes<4>(p, q, degree, 8);
    double* swap = p;
    p = q;
    q = swap;
  }
  merge_lanes<2>(p, q, degree, 4);
  merge_lanes<1>(q, out, degree, 2);
}

// out[0..degree]; float lanes are merged in double every 8,192 labels, before their rounding adds up.
template <bool Normalized, class T> void elementary(const T* x, int64_t n_padded, int64_t degree, double* out) {
  constexpr int64_t block = 8192;
  static thread_local Scratch pieces, room;
  elementary_block<Normalized>(x, n_padded < block ? n_padded : block, degree, out);
  for (int64_t j = block; j < n_padded; j += block) {
    double* piece = pieces.get<double>(degree + 1);
    double* both = room.get<double>(2 * (degree + 1));
    elementary_block<Normalized>(x + j, n_padded - j < block ? n_padded - j : block, degree, piece);
    for (int64_t i = 0; i <= degree; ++i) {
      both[2 * i] = out[i];
      both[2 * i + 1] = piece[i];
    }
    merge_lanes<1>(both, out, degree, 2);
  }
}

// out_j = x_j sum_{i<k} weight_i b_i with b = R without label j: b_i = R_i - x_j b_{i-1}, stable because x_j <= 1.
template <int K, class T>
void without_each_fixed(const T* x, int64_t from, int64_t to, int64_t k, const T* R, const T* weight, T* out) {
  constexpr int W = kWidth<T>;
  const int64_t degree = K ? K : k;
  for (int64_t j = from; j < to; j += 4 * W) {
    const Vec<T> x0 = load(x + j), x1 = load(x + j + W), x2 = load(x + j + 2 * W), x3 = load(x + j + 3 * W);
    Vec<T> b0 = splat(R[0]), b1 = b0, b2 = b0, b3 = b0;
    Vec<T> a0 = b0 * weight[0], a1 = a0, a2 = a0, a3 = a0;
#pragma GCC unroll 16
    for (int64_t i = 1; i < degree; ++i) {
      const T r = R[i], w = weight[i];
      b0 = r - x0 * b0;
      b1 = r - x1 * b1;
      b2 = r - x2 * b2;
      b3 = r - x3 * b3;
      a0 += b0 * w;
      a1 += b1 * w;
      a2 += b2 * w;
      a3 += b3 * w;
    }
    store(out + j, x0 * a0);
    store(out + j + W, x1 * a1);
    store(out + j + 2 * W, x2 * a2);
    store(out + j + 3 * W, x3 * a3);
  }
}

template <class T>
void without_each_block(const T* x, int64_t from, int64_t to, int64_t k, const T* R, const T* weight, T* out) {
  switch (k) {
    case 1: return without_each_fixed<1>(x, from, to, k, R, weight, out);
    case 2: return without_each_fixed<2>(x, from, to, k, R, weight, out);
    case 3: return without_each_fixed<3>(x, from, to, k, R, weight, out);
    case 4: return without_each_fixed<4>(x, from, to, k, R, weight, out);
    case 5: return without_each_fixed<5>(x, from, to, k, R, weight, out);
    case 6: return without_each_fixed<6>(x, from, to, k, R, weight, out);
    case 7: return without_each_fixed<7>(x, from, to, k, R, weight, out);
    case 8: return without_each_fixed<8>(x, from, to, k, R, weight, out);
    case 10: return without_each_fixed<10>(x, from, to, k, R, weight, out);
    default: return without_each_fixed<0>(x, from, to, k, R, weight, out);
  }
}

// The same for an unpadded `out` of n labels.
template <class T> void without_each(const T* x, int64_t n, int64_t k, const T* R, const T* weight, T* out) {
  constexpr int64_t block = 4 * kWidth<T>;
  const int64_t whole = n / block * block;
  without_each_block(x, 0, whole, k, R, weight, out);
  if (whole < n) {
    T tail[block];
    without_each_block(x + whole, 0, block, k, R, weight, tail);
    for (int64_t j = whole; j < n; ++j) out[j] = tail[j - whole];
  }
}

// ---- small, complete polynomials in double ----

// log of a product of many numbers >= 1, one logarithm for every few dozen of them
class LogProduct {
 public:
  void times(double x) {
    product_ *= x;
    if (product_ > 1e200) flush();
  }
  double value() {
    flush();
    return log_;
  }

 private:
  void flush() {
    log_ += std::log(product_);
    product_ = 1;
  }
  double product_ = 1, log_ = 0;
};

// prod (1 + x_j t) / e^log_scale: normalised to a distribution of counts where degree or odds could leave the range.
struct Polynomial {
  double* c = nullptr;  // coefficients 0..degree
  int64_t degree = 0;
  double log_scale = 0;

  double operator[](int64_t i) const { return i <= degree ? c[i] : 0.0; }

  void product(const double* x, int64_t count, bool normalized) {
    LogProduct norm;
    c[0] = 1;
    degree = 0;
    for (int64_t j = 0; j < count; ++j) {
      const double keep = normalized ? 1 / (1 + x[j]) : 1.0, take = x[j] * keep;
      if (normalized) norm.times(1 + x[j]);
      c[++degree] = 0;
      for (int64_t i = degree; i > 0; --i) c[i] = keep * c[i] + take * c[i - 1];
      c[0] *= keep;
    }
    log_scale = normalized ? norm.value() : 0.0;
  }

  // sum_i weight_i b_i, i < degree, with b = this polynomial without its factor (1 + x t): forwards for x <= 1,
  // backwards from the highest coefficient for x > 1, each the direction in which errors shrink.
  double weighted_without(double x, const double* weight) const {
    double b = 0, sum = 0;
    if (x <= 1) {
      for (int64_t i = 0; i < degree; ++i) {
        b = c[i] - x * b;
        sum += weight[i] * b;
      }
    } else {
      for (int64_t i = degree; i > 0; --i) {
        b = (c[i] - b) / x;
        sum += weight[i - 1] * b;
      }
    }
    return sum;
  }
};

// ---- the swap itself ----

constexpr int64_t kPlainDegree = 8;   // up to here c >= 1 is tilt enough, and no rest label exceeds it
constexpr int64_t kFloatDegree = 60;  // beyond, coefficients leave float's range: normalised, in double

template <class T> class Swap {
 public:
  // x: the rest labels' odds r_j (0 for labels not among them), padded; divided by the tilt, in place.
  // v: the top labels' odds, padded; multiplied by the tilt, in place.
  Swap(T* x, int64_t n, double sum_x, double* v, int64_t k, double sum_v) : x_(x), v_(v), n_(n), k_(k) {
    static thread_local Scratch memory;
    double* room = memory.get<double>(5 * (k + 1));
    V_.c = room;
    R_.c = room + (k + 1);
    rare_ = room + 2 * (k + 1);
    weight_ = room + 3 * (k + 1);
    R_.degree = k;
    if (sum_x > 0) {
      c_ = k <= kPlainDegree ? std::fmax(1.0, std::sqrt(sum_x / sum_v))
                             : std::exp(-balance(x, padded(n), sum_x, v, k, sum_v, 0.0, 0.3));
      c_ = std::fmin(std::fmax(c_, 1e-30), 1e30);  // any tilt is exact; this one keeps 1/c in float's range
    }
    if (c_ != 1) scale();
    V_.product(v, k, k > kPlainDegree);
    if (k > kPlainDegree) separate_likely();
    if (k > kFloatDegree) {
      elementary<true>(x, padded(n), k, rare_);
      R_.log_scale = log_norm();
    } else {
      elementary<false>(x, padded(n), k, rare_);
    }
    combine();
    for (int64_t i = 0; i <= k; ++i) S0_ += V_.c[i] * R_.c[i];
    for (int64_t i = 0; i < k; ++i) S1_ += V_.c[i + 1] * R_.c[i];
  }

  double log_S0() const { return std::log(S0_) + V_.log_scale + R_.log_scale; }
  double log_S0_over_S1() const { return std::log(S0_ / S1_ * c_); }

  // factor * (P[k] - with_smaller * P[k-1]) for the marginals P[k] of the k-subsets: every rest label into `out`
  // (other labels get 0), then the top labels through `top`. Alone, P[k] of a top label is 1 - its chance to leave.
  void marginals(double factor, bool with_smaller, const Top<T>& top, T* out) {
    const double f0 = factor / S0_, f1 = with_smaller ? factor / S1_ : 0.0;
    double* in = weight_;
    for (int64_t i = 0; i < k_; ++i) in[i] = f0 * V_[i + 1] - f1 * V_[i + 2];
    rest(in, out);
    double* leave = weight_;
    for (int64_t i = 0; i < k_; ++i) leave[i] = (with_smaller ? f1 * R_.c[i] : 0.0) - f0 * R_.c[i + 1];
    for (int64_t i = 0; i < k_; ++i)
      out[top.index[i]] = T((with_smaller ? 0.0 : factor) + v_[i] * V_.weighted_without(v_[i], leave));
  }

 private:
  void scale() {
    const T inverse = T(1 / c_);
    for (int64_t j = 0; j < padded(n_); ++j) x_[j] *= inverse;
    for (int64_t i = 0; i < k_; ++i) v_[i] *= c_;
  }

  // Rest labels with odds above the tilt: their leave-one-out recursion would amplify errors, so they get their own
  // complete polynomial. There are at most about 2k of them.
  void separate_likely() {
    static thread_local Scratch values, indices, coefficients;
    constexpr int W = kWidth<T>;
    int64_t count = 0;
    for (int64_t j = 0; j < padded(n_); j += W) count += __builtin_popcount(bits<T>(load(x_ + j) > T(1)));
    likely_value_ = values.get<double>(count);
    likely_index_ = indices.get<int32_t>(count);
    likely_count_ = 0;
    for (int64_t j = 0; count && j < padded(n_); j += W)
      for (unsigned m = bits<T>(load(x_ + j) > T(1)); m; m &= m - 1) {
        const int64_t i = j + __builtin_ctz(m);
        likely_value_[likely_count_] = double(x_[i]);
        likely_index_[likely_count_++] = int32_t(i);
        x_[i] = 0;
      }
    L_.c = coefficients.get<double>(count + 1);
    L_.product(likely_value_, likely_count_, true);
  }

  double log_norm() const {
    LogProduct norm;
    for (int64_t j = 0; j < padded(n_); ++j) norm.times(1 + double(x_[j]));
    return norm.value();
  }

  void combine() {
    if (!likely_count_) {
      for (int64_t i = 0; i <= k_; ++i) R_.c[i] = rare_[i];
      return;
    }
    for (int64_t i = 0; i <= k_; ++i) {
      double sum = 0;
      for (int64_t t = 0; t <= i && t <= L_.degree; ++t) sum += L_.c[t] * rare_[i - t];
      R_.c[i] = sum;
    }
    R_.log_scale += L_.log_scale;
  }

  void rest(const double* weight, T* out) {
    static thread_local Scratch narrow, mixed;
    T* R = narrow.get<T>(2 * k_);
    T* w = R + k_;
    for (int64_t i = 0; i < k_; ++i) {
      R[i] = T(R_.c[i]);
      w[i] = T(weight[i]);
    }
    without_each(x_, n_, k_, R, w, out);
    if (!likely_count_) return;
    double* u = mixed.get<double>(L_.degree);
    for (int64_t t = 0; t < L_.degree; ++t) {
      u[t] = 0;
      for (int64_t i = t; i < k_; ++i) u[t] += weight[i] * rare_[i - t];
    }
    for (int64_t i = 0; i < likely_count_; ++i)
      out[likely_index_[i]] = T(likely_value_[i] * L_.weighted_without(likely_value_[i], u));
  }

  T* x_;
  double* v_;
  int64_t n_, k_;
  double c_ = 1, S0_ = 0, S1_ = 0;
  Polynomial V_, R_, L_;
  double *rare_, *weight_;
  double* likely_value_ = nullptr;
  int32_t* likely_index_ = nullptr;
  int64_t likely_count_ = 0;
};

}  // namespace SHORTLIST_ISA
