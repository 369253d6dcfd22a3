// Sums over k-subsets by tilted swap polynomials. A k-subset is the top set with i members swapped for i of the rest:
//
//   V = prod_top (1 + v_j c t),  R = prod_rest (1 + (r_j / c) t)       every factor and coefficient positive
//   S0 = sum_i V_i R_i    (subsets of size k)        S1 = sum_i V_{i+1} R_i    (of size k - 1, times c)
//
// The tilt c balances how many are expected to leave and to enter, so that the large coefficients of V and R meet.
#pragma once

#include "balance.h"
#include "lanes.h"

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
// coefficient in [0, 1] at any degree, prod 1/(1 + x): a distribution of counts, whose tail below 1e-24 is left away
// (V and R have about the same mean, so that S0 and S1 are larger by far).
// Four zero vectors stand before `out`. Returns the degree reached; coefficients beyond are 0.
template <bool Normalized, class T> int64_t lanes_general(const T* x, int64_t n_padded, int64_t degree, Vec<T>* out) {
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
    const Vec<T> last = (out[reached] + out[reached - 1]) + (out[reached - 2] + out[reached - 3]);  // what goes beyond
    if (!Normalized || bits<T>(last > T(1e-24))) reached = reached + 4 < degree ? reached + 4 : degree;
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
  return reached;
}

// Lanes l and l + H multiplied, for l < H, the degree known when compiling.
template <int H, int K> void merge_lanes(const double* __restrict a, double* __restrict out) {
  constexpr int W = kWidth<double>;
  if constexpr (H % W == 0) {
    for (int l = 0; l < H; l += W) {
      Vec<double> product[K + 1] = {}, right[K + 1];
      for (int q = 0; q <= K; ++q) right[q] = load(a + q * 2 * H + H + l);
#pragma GCC unroll 9
      for (int p = 0; p <= K; ++p) {
        const Vec<double> left = load(a + p * 2 * H + l);
#pragma GCC unroll 9
        for (int q = 0; q <= K - p; ++q) product[p + q] += left * right[q];
      }
      for (int i = 0; i <= K; ++i) store(out + i * H + l, product[i]);
    }
    return;
  }
  for (int i = 0; i < (K + 1) * H; ++i) out[i] = 0;
#pragma GCC unroll 9
  for (int p = 0; p <= K; ++p)
#pragma GCC unroll 9
    for (int q = 0; q <= K - p; ++q)
      for (int l = 0; l < H; ++l) out[(p + q) * H + l] += a[p * 2 * H + l] * a[q * 2 * H + H + l];
}

template <int K, class T> void merge_few(const Vec<T>* lanes, double* out) {
  constexpr int W = kWidth<T>;
  double p[(K + 1) * W], q[(K + 1) * W];
  for (int i = 0; i <= K; ++i)
    for (int l = 0; l < W; ++l) p[i * W + l] = double(lanes[i][l]);
  if constexpr (W == 16) merge_lanes<8, K>(p, q), merge_lanes<4, K>(q, p);
  if constexpr (W == 8) {
    merge_lanes<4, K>(p, q);
    merge_lanes<2, K>(q, p);
    merge_lanes<1, K>(p, out);
  } else {
    merge_lanes<2, K>(p, q);
    merge_lanes<1, K>(q, out);
  }
}

// Room for a polynomial of this degree: whole vectors. Coefficients beyond the degree are numbers of no meaning, which
// nothing up to the degree depends on.
inline int64_t polynomial_room(int64_t degree) {
  constexpr int64_t W = kWidth<double>;
  return (degree + W) / W * W;
}

// A vector's numbers moved S places up, those of the vector before it moving in.
template <int W, int S> struct Moved {
  static constexpr int at(int l) { return W - S + l; }
};
template <int S = 0> inline void all_moved(Vec<double> before, Vec<double> here, Vec<double>* out) {
  constexpr int W = kWidth<double>;
  if constexpr (S < W) {
    out[S] = picked<double>(before, here, Moved<W, S>());
    all_moved<S + 1>(before, here, out);
  }
}

// out = a * b up to `degree`, all with that room; coefficients of a and b beyond `known` are 0 (or, beyond `degree`, of
// no meaning). Vector by vector of b, in registers in all the places that a vector of a can move it to.
inline void multiply(const double* a, const double* b, int64_t known, int64_t degree, double* out) {
  constexpr int64_t W = kWidth<double>;
  const int64_t blocks = polynomial_room(degree) / W, filled = known / W + 1;
  for (int64_t o = 0; o < blocks; ++o) store(out + o * W, Vec<double>{});
  Vec<double> before{};
  for (int64_t d = 0; d < blocks && d <= filled; ++d) {
    const Vec<double> here = d < filled ? load(b + d * W) : Vec<double>{};
    Vec<double> moved[W];
    all_moved(before, here, moved);
    before = here;
    for (int64_t p = 0; p < filled && p + d < blocks; ++p) {
      const double* from = a + p * W;
      Vec<double> even{}, odd = load(out + (p + d) * W);
#pragma GCC unroll 8
      for (int64_t s = 0; s < W; s += 2) even += from[s] * moved[s], odd += from[s + 1] * moved[s + 1];
      store(out + (p + d) * W, even + odd);
    }
  }
}

// known: the degree that the lanes have reached
template <class T> void merge_many(const Vec<T>* lanes, int64_t known, int64_t degree, double* out) {
  constexpr int W = kWidth<T>, D = kWidth<double>;
  static thread_local Scratch memory, half_lanes;
  const int64_t room = polynomial_room(degree);
  const auto grown = [degree](int64_t d) { return 2 * d < degree ? 2 * d : degree; };
  double *from = memory.get<double>(2 * room * W), *to = from + room * W;
  const auto take = [&](int64_t i, const double* one) {  // coefficient i of D polynomials
    for (int l = 0; l < D; ++l) from[l * room + i] = one[l];
  };
  const double none[D] = {};
  if constexpr (W == 2 * D) {  // float lanes: the first product side by side, four coefficients at a time
    const int64_t size = degree + 4;
    Vec<double>* low = half_lanes.get<Vec<double>>(3 * size + 3);
    Vec<double>*high = low + size + 3, *both = high + size;  // three zeros stand before high, and behind what is known
    for (int64_t i = 0; i < size; ++i) low[i] = high[i] = both[i] = Vec<double>{};
    for (int64_t i = 1; i <= 3; ++i) high[-i] = Vec<double>{};
    for (int64_t i = 0; i <= known; ++i) {
      const T* one = reinterpret_cast<const T*>(lanes + i);
      low[i] = load_wide(one);
      high[i] = load_wide(one + D);
    }
    for (int64_t p = 0; p <= known; p += 4) {
      const Vec<double> a0 = low[p], a1 = low[p + 1], a2 = low[p + 2], a3 = low[p + 3];
      Vec<double> b1 = high[-1], b2 = high[-2], b3 = high[-3];
      const int64_t last = known + 3 < degree - p ? known + 3 : degree - p;
      for (int64_t q = 0; q <= last; ++q) {
        const Vec<double> b0 = high[q];
        both[p + q] += (a0 * b0 + a1 * b1) + (a2 * b2 + a3 * b3);
        b3 = b2;
        b2 = b1;
        b1 = b0;
      }
    }
    known = grown(known);
    for (int64_t i = 0; i <= degree; ++i) take(i, reinterpret_cast<const double*>(both + i));
  } else {
    for (int64_t i = 0; i <= degree; ++i) take(i, reinterpret_cast<const double*>(lanes + i));
  }
  for (int64_t i = degree + 1; i < room; ++i) take(i, none);
  for (int width = D / 2; width > 0; width /= 2) {
    for (int l = 0; l < width; ++l) multiply(from + l * room, from + (l + width) * room, known, degree, to + l * room);
    known = grown(known);
    double* swap = from;
    from = to;
    to = swap;
  }
  for (int64_t i = 0; i <= degree; ++i) out[i] = from[i];
}

template <int K, class T> void elementary_fixed(const T* x, int64_t n_padded, double* out) {
  Vec<T> lanes[K + 1];
  lanes_fixed<K>(x, n_padded, lanes);
  merge_few<K, T>(lanes, out);
}

template <bool Normalized, class T> void elementary_block(const T* x, int64_t n_padded, int64_t degree, double* out) {
  if constexpr (!Normalized) {
    switch (degree) {
      case 1: return elementary_fixed<1>(x, n_padded, out);
      case 2: return elementary_fixed<2>(x, n_padded, out);
      case 3: return elementary_fixed<3>(x, n_padded, out);
      case 4: return elementary_fixed<4>(x, n_padded, out);
      case 5: return elementary_fixed<5>(x, n_padded, out);
      case 6: return elementary_fixed<6>(x, n_padded, out);
      case 7: return elementary_fixed<7>(x, n_padded, out);
      case 8: return elementary_fixed<8>(x, n_padded, out);
    }
  }
  static thread_local Scratch memory;
  Vec<T>* lanes = memory.get<Vec<T>>(degree + 6) + 4;
  const int64_t reached = lanes_general<Normalized, T>(x, n_padded, degree, lanes);
  merge_many<T>(lanes, reached, degree, out);
}

// out[0..degree]; float lanes are merged in double every 8,192 labels, before their rounding adds up.
template <bool Normalized, class T> void elementary(const T* x, int64_t n_padded, int64_t degree, double* out) {
  constexpr int64_t block = 8192;
  static thread_local Scratch pieces;
  elementary_block<Normalized>(x, n_padded < block ? n_padded : block, degree, out);
  if (n_padded <= block) return;
  const int64_t size = degree + 1, room = polynomial_room(degree);
  double *whole = pieces.get<double>(3 * room), *piece = whole + room, *product = piece + room;
  fill(whole, 2 * room, 0.0);
  for (int64_t j = block; j < n_padded; j += block) {
    for (int64_t i = 0; i < size; ++i) whole[i] = out[i];
    elementary_block<Normalized>(x + j, n_padded - j < block ? n_padded - j : block, degree, piece);
    multiply(whole, piece, degree, degree, product);
    for (int64_t i = 0; i < size; ++i) out[i] = product[i];
  }
}

// out_j = x_j sum_{i<k} weight_i b_i with b = R without label j: b_i = R_i - x_j b_{i-1}, stable because x_j <= 1. With
// K = 0 for any k: R and weight then begin where the sum does (`first_that_counts`).
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

// Where the sum of without_each may begin: what comes before, and what b is off by if it starts there, is below `share` of
// the whole. R holds more than b does, and an error of b shrinks by x <= most in every step. room: k numbers.
inline int64_t first_that_counts(const double* R, const double* weight, int64_t k, double most, double share,
                                 double* room) {
  double total = 0;
  for (int64_t i = k; i-- > 0;) {
    room[i] = most * (std::fabs(weight[i]) + (i + 1 < k ? room[i + 1] : 0.0));  // what an error of 1 in b_{i-1} does
    total += std::fabs(weight[i]) * R[i];
  }
  int64_t first = 0;
  double skipped = 0;
  for (int64_t i = 1; i < k; ++i) {
    skipped += std::fabs(weight[i - 1]) * R[i - 1];
    if (!(skipped <= share * total)) break;
    if (skipped + R[i - 1] * room[i] <= share * total) first = i;
  }
  return first;
}

// The same for many k, at a cost a label that does not grow with k. h(x) = sum_i weight_i b_i(x) is one smooth function of x for
// the whole row (about 1/(1 + x), averaged): it is computed at a few Chebyshev points of [0, most] and interpolated. Its
// Chebyshev coefficients fall geometrically; where the last of them have not become nothing, the answer is false.
constexpr int kNodes = 32;

struct Cosines {  // cos(pi m (j + 1/2) / kNodes)
  double at[kNodes][kNodes];
  Cosines() {
    for (int m = 0; m < kNodes; ++m)
      for (int j = 0; j < kNodes; ++j) at[m][j] = std::cos(M_PI / kNodes * m * (j + 0.5));
  }
};

template <class T>
bool without_each_smooth(const T* x, int64_t n, int64_t k, const double* R, const double* weight, double most, T* out) {
  constexpr int W = kWidth<T>;
  static const Cosines cosines;
  double node[kNodes], value[kNodes], c[kNodes];
  for (int j = 0; j < kNodes; ++j) node[j] = most * (0.5 + 0.5 * cosines.at[1][j]);
  without_each_block(node, 0, kNodes, k, R, weight, value);
  for (int j = 0; j < kNodes; ++j) value[j] /= node[j];
  double size = 0;
  for (int m = 0; m < kNodes; ++m) {
    double sum = 0;
    for (int j = 0; j < kNodes; ++j) sum += value[j] * cosines.at[m][j];
    c[m] = sum * (m ? 2.0 : 1.0) / kNodes;
    size += std::fabs(c[m]);
  }
  // what rounding has left of the values is about 8 units of double, in every coefficient
  const double nothing = size * (sizeof(T) == 4 ? 1e-8 : 4e-15);
  int terms = kNodes;
  while (terms > 2 && std::fabs(c[terms - 1]) <= nothing) --terms;
  if (terms > kNodes - 4) return false;  // also where something is not finite
  T narrow[kNodes];
  for (int m = 0; m < kNodes; ++m) narrow[m] = T(c[m]);
  const T scale = T(2 / most);
  const auto block = [&](const T* from, T* to) {  // Clenshaw, for four vectors at a time
    Vec<T> u[4], b[4] = {}, before[4] = {};
    for (int q = 0; q < 4; ++q) u[q] = (load(from + q * W) * scale - T(1)) * T(2);
    for (int m = terms - 1; m > 0; --m)
      for (int q = 0; q < 4; ++q) {
        const Vec<T> next = u[q] * b[q] + (narrow[m] - before[q]);
        before[q] = b[q];
        b[q] = next;
      }
    for (int q = 0; q < 4; ++q) store(to + q * W, load(from + q * W) * (u[q] * T(0.5) * b[q] + (narrow[0] - before[q])));
  };
  const int64_t whole = n / (4 * W) * (4 * W);
  for (int64_t j = 0; j < whole; j += 4 * W) block(x + j, out + j);
  if (whole < n) {
    T tail[4 * W];
    block(x + whole, tail);
    for (int64_t j = whole; j < n; ++j) out[j] = tail[j - whole];
  }
  return true;
}

// ---- complete polynomials in double ----

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

// prod (1 + x_j t) / e^log_scale over `count` odds, complete; a distribution of counts where it is normalised.
struct Polynomial {
  double* c = nullptr;  // coefficients 0..degree
  int64_t degree = 0;
  double log_scale = 0;

  double operator[](int64_t i) const { return i <= degree ? c[i] : 0.0; }

  // x: padded with zeros (padded_odds). Few factors in turn; many in lanes, normalised: odds may be of any size.
  void product(const double* x, int64_t count, bool normalized) {
    degree = count;
    log_scale = 0;
    if (!normalized || count <= 32) {
      c[0] = 1;
      for (int64_t j = 0; j < count; ++j) {
        const double keep = normalized ? 1 / (1 + x[j]) : 1.0, take = x[j] * keep;
        c[j + 1] = take * c[j];
        for (int64_t i = j; i > 0; --i) c[i] = keep * c[i] + take * c[i - 1];
        c[0] *= keep;
      }
    } else {
      elementary<true>(x, padded_odds(count), count, c);
    }
    if (!normalized) return;
    LogProduct norm;
    for (int64_t j = 0; j < count; ++j) norm.times(1 + x[j]);
    log_scale = norm.value();
  }

  // out_j = x_j sum_i weight_i b_i, i < degree, with b = this polynomial without factor j: forwards for x_j <= 1, backwards
  // from the highest coefficient for x_j > 1, each the direction in which errors shrink. Backwards is forwards on the
  // reversed polynomial with 1/x_j, so that four (eight) labels go side by side. x and out padded.
  void weighted_without_each(const double* x, int64_t count, const double* weight, double* out) const {
    constexpr int W = kWidth<double>;
    for (int64_t j = 0; j < count; j += 2 * W) {
      const Vec<double> x0 = load(x + j), x1 = load(x + j + W);
      const Int<double> up0 = x0 <= 1.0, up1 = x1 <= 1.0;
      const Vec<double> y0 = up0 ? x0 : 1.0 / x0, y1 = up1 ? x1 : 1.0 / x1;
      Vec<double> b0{}, b1{}, s0{}, s1{};
      for (int64_t i = 0; i < degree; ++i) {
        const Vec<double> first = splat(c[i]), last = splat(c[degree - i]);
        const Vec<double> near = splat(weight[i]), far = splat(weight[degree - 1 - i]);
        b0 = (up0 ? first : last) - y0 * b0;
        b1 = (up1 ? first : last) - y1 * b1;
        s0 += (up0 ? near : far) * b0;
        s1 += (up1 ? near : far) * b1;
      }
      store(out + j, up0 ? s0 * x0 : s0);
      store(out + j + W, up1 ? s1 * x1 : s1);
    }
  }
};

// ---- the swap itself ----

constexpr int64_t kPlainDegree = 8;   // up to here c >= 1 is tilt enough, and no rest label exceeds it
constexpr int64_t kFloatDegree = 60;  // beyond, coefficients leave float's range: normalised, in double
constexpr int64_t kSmoothDegree = 32;  // beyond, interpolating costs less than a sum for every label

template <class T> class Swap {
 public:
  // x: the rest labels' odds r_j (0 for labels not among them), padded; divided by the tilt, in place.
  // v: the top labels' odds, padded; multiplied by the tilt, in place.
  Swap(T* x, int64_t n, Moments x_moments, double* v, int64_t k, double sum_v) : x_(x), v_(v), n_(n), k_(k) {
    static thread_local Scratch memory;
    double* room = memory.get<double>(4 * (k + 1) + padded_odds(k));
    V_.c = room;
    R_.c = room + (k + 1);
    rare_ = room + 2 * (k + 1);
    weight_ = room + 3 * (k + 1);
    leaving_ = room + 4 * (k + 1);
    R_.degree = k;
    if (x_moments.first > 0) {
      c_ = k <= kPlainDegree ? std::fmax(1.0, std::sqrt(x_moments.first / sum_v))
                             : 1 / balance(x, padded(n), x_moments, v, k, sum_v, 0.0, 0.3).x;
      c_ = std::fmin(std::fmax(c_, 1e-30), 1e30);  // any tilt is exact; this one keeps 1/c in float's range
    } else if (k > kPlainDegree) {
      c_ = 1 / sum_v;  // nobody can enter: about one is let go, so that the coefficients 0 and 1 are of size 1
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
    V_.weighted_without_each(v_, k_, leave, leaving_);
    for (int64_t i = 0; i < k_; ++i) out[top.index[i]] = T((with_smaller ? 0.0 : factor) + leaving_[i]);
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
    for (int64_t j = 0; j < padded(n_); j += W) count += __builtin_popcount(bits_above<T>(load(x_ + j), splat<T>(1)));
    likely_value_ = values.get<double>(padded_odds(count));
    likely_index_ = indices.get<int32_t>(count);
    likely_count_ = 0;
    for (int64_t j = 0; count && j < padded(n_); j += W)
      for (unsigned m = bits_above<T>(load(x_ + j), splat<T>(1)); m; m &= m - 1) {
        const int64_t i = j + __builtin_ctz(m);
        likely_value_[likely_count_] = double(x_[i]);
        likely_index_[likely_count_++] = int32_t(i);
        x_[i] = 0;
      }
    if (!count) return;
    for (int64_t i = count; i < padded_odds(count); ++i) likely_value_[i] = 0;
    L_.c = coefficients.get<double>(count + 1);
    L_.product(likely_value_, likely_count_, true);
  }

  double log_norm() const {  // every odd is at most 1: a lane's product of 64 of them is at most 2^64
    constexpr int W = kWidth<T>;
    LogProduct norm;
    for (int64_t block = 0; block < padded(n_); block += 64 * W) {
      const int64_t end = block + 64 * W < padded(n_) ? block + 64 * W : padded(n_);
      Vec<T> product = splat<T>(1);
      for (int64_t j = block; j < end; j += W) product *= load(x_ + j) + T(1);
      for (int l = 0; l < W; ++l) norm.times(double(product[l]));
    }
    return norm.value();
  }

  void combine() {
    if (!likely_count_) {
      for (int64_t i = 0; i <= k_; ++i) R_.c[i] = rare_[i];
      return;
    }
    for (int64_t i = 0; i <= k_; ++i) R_.c[i] = 0;
    for (int64_t t = 0; t <= k_ && t <= L_.degree; ++t) {
      const double likely = L_.c[t];
      double* __restrict to = R_.c + t;
      for (int64_t i = 0; i <= k_ - t; ++i) to[i] += likely * rare_[i];
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
    int64_t first = 0;
    double largest = 0;
    if (k_ > kPlainDegree) {
      Vec<T> most{};
      for (int64_t j = 0; j < padded(n_); j += kWidth<T>) most = load(x_ + j) > most ? load(x_ + j) : most;
      for (int l = 0; l < kWidth<T>; ++l) largest = std::fmax(largest, double(most[l]));
      first = first_that_counts(R_.c, weight, k_, largest, sizeof(T) == 4 ? 1e-10 : 1e-18, leaving_);
      if (k_ - first <= kPlainDegree) first = k_ - kPlainDegree - 1;  // a shorter sum has its own code, for all of it
    }
    if (k_ - first <= kSmoothDegree || !without_each_smooth(x_, n_, k_ - first, R_.c + first, weight + first, largest, out))
      without_each(x_, n_, k_ - first, R + first, w + first, out);
    if (!likely_count_) return;
    double* u = mixed.get<double>(L_.degree + padded_odds(likely_count_));
    double* entering = u + L_.degree;
    for (int64_t t = 0; t < L_.degree; ++t) u[t] = 0;
    for (int64_t i = 0; i < k_; ++i) {  // u_t = sum_i weight_(i + t) rare_i
      const double rare = rare_[i];
      const double* __restrict from = weight + i;
      for (int64_t t = 0; t < L_.degree && t < k_ - i; ++t) u[t] += rare * from[t];
    }
    L_.weighted_without_each(likely_value_, likely_count_, u, entering);
    for (int64_t i = 0; i < likely_count_; ++i) out[likely_index_[i]] = T(entering[i]);
  }

  T* x_;
  double* v_;
  int64_t n_, k_;
  double c_ = 1, S0_ = 0, S1_ = 0;
  Polynomial V_, R_, L_;
  double *rare_, *weight_, *leaving_;
  double* likely_value_ = nullptr;
  int32_t* likely_index_ = nullptr;
  int64_t likely_count_ = 0;
};

}  // namespace SHORTLIST_ISA
