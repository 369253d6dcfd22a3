// The asymmetric loss, and the partial selective loss that is made of it.
//
//   q = how wrong an entry is: 1 - p where present, max(p - clip, 0) where absent;  loss q^gamma (-log(1 - q))
#pragma once

#include "entry_losses.h"
#include "select.h"

namespace SHORTLIST_ISA {

using shortlist::AsymmetricOptions;

constexpr int kAssumed = 2;  // the code of an unknown label that counts as absent

// q^gamma by multiplication for small whole gammas, else through log q.
template <class T> inline Vec<T> power(Vec<T> q, int gamma) {
  Vec<T> out = splat<T>(1);
  for (int i = 0; i < gamma; ++i) out *= q;
  return out;
}

template <class T, bool clipped, bool whole> struct AsymmetricTerm {
  T gamma[3], slope_gamma[3], clip;  // present, absent, assumed

  explicit AsymmetricTerm(const AsymmetricOptions& o) : clip(T(o.clip)) {
    const double all[3] = {o.gamma_pos, o.gamma_neg, o.gamma_unknown};
    for (int i = 0; i < 3; ++i) {
      gamma[i] = T(all[i]);
      slope_gamma[i] = o.detach_focus ? T(0) : T(all[i]);  // the focus is a constant when detached
    }
  }

  Vec<T> choose(const T* v, Int<T> present, Int<T> assumed) const {
    return present ? splat(v[0]) : assumed ? splat(v[2]) : splat(v[1]);
  }

  Term<T> operator()(Vec<T> x, Vec<T> y, int64_t) const {
    const Int<T> present = (y > T(0)) & (y < T(kAssumed)), assumed = y == T(kAssumed);
    const Vec<T> zero = splat<T>(0);
    const Vec<T> wrong_score = present ? -x : x;
    const Int<T> right = wrong_score < zero;
    const Vec<T> magnitude = right ? -wrong_score : wrong_score;
    const Vec<T> e = exp<T>(-magnitude), large = T(1) / (e + T(1)), small = e * large;
    const Vec<T> sure = right ? large : small;  // 1 - q before the clip
    Vec<T> q = right ? small : large;
    const Vec<T> inside = q * sure;  // slope of q by the score
    Vec<T> rest = sure, w = e + T(1), lost = (e - (w - T(1))) * large;  // log of w + what its rounding lost
    Int<T> dead{};
    if constexpr (clipped) {
      const Vec<T> shifted = q - clip;
      dead = ~present & (shifted <= zero);
      q = present ? q : (dead ? zero : shifted);
      rest = present ? sure : (dead ? splat<T>(1) : sure + clip);
      const Int<T> near_1 = q > T(0.5);
      const Vec<T> v = near_1 ? rest : T(1) - q;
      lost = present ? lost : (near_1 ? zero : (T(1) - v - q) / v);
      w = present ? w : v;
    }
    const Vec<T> l = log<T>(w) + lost;
    Vec<T> cost = (right ? zero : magnitude) + l;  // -log(1 - q)
    if constexpr (clipped) cost = present ? cost : -l;
    Vec<T> focus;
    if constexpr (whole) {
      focus = power<T>(q, int(gamma[1]));
      if (bits<T>(present)) focus = present ? power<T>(q, int(gamma[0])) : focus;
      if (bits<T>(assumed)) focus = assumed ? power<T>(q, int(gamma[2])) : focus;
    } else {
      Vec<T> log_q = -((right ? magnitude : zero) + l);
      if constexpr (clipped) {
        constexpr T least = std::numeric_limits<T>::min();
        log_q = present ? log_q : log<T>(q < least ? splat(least) : q);
      }
      const Vec<T> g = choose(gamma, present, assumed);
      log_q = log_q < -kMost<T> ? splat(-kMost<T>) : log_q;  // 0 times it is 0
      focus = exp<T>(g * log_q);
    }
    // slope: q' (gamma q^(gamma-1) cost + q^gamma / (1 - q)) with q' = inside, and q/q taken out where not clipped
    const Vec<T> sg = choose(slope_gamma, present, assumed);
    Vec<T> slope = focus * (q + sg * (sure * cost));
    if constexpr (clipped) {
      const Vec<T> ratio = cost / (q > zero ? q : splat<T>(1));
      const Vec<T> shifted = focus * inside * (T(1) / rest + sg * ratio);
      slope = present ? slope : (dead ? zero : shifted);
      cost = dead ? zero : cost;
    }
    return {focus * cost, present ? -slope : slope};
  }
};

enum UnknownRule : int { kIgnore = 0, kNegative = 1, kSelective = 2 };

// The row's codes, unknown labels turned into "assumed absent" where the rule says so.
template <class T>
void settle_unknown(const T* s, int64_t n, T* code, const AsymmetricOptions& o) {
  const bool selective = o.unknown_rule == kSelective;
  const int64_t likely = o.likelihood_topk;
  const uint8_t* frequent = selective ? o.frequent : nullptr;
  if (selective && likely > 0) {
    static thread_local Scratch rows;
    T* x = rows.get<T>(padded(n));
    for (int64_t j = 0; j < n; ++j) x[j] = code[j] < T(0) ? bounded(s[j]) : kMinusInf<T>;
    for (int64_t j = n; j < padded(n); ++j) x[j] = kMinusInf<T>;
    const Top<T> top = select_top(x, n, likely < n ? likely : n, find_peaks(x, padded(n)));
    for (int64_t i = 0; i < top.count; ++i) code[top.index[i]] = T(-2);
    int64_t missing = likely - top.count;  // a NaN is the least likely
    for (int64_t j = 0; j < n && missing > 0; ++j)
      if (code[j] == T(-1)) {
        code[j] = T(-2);
        --missing;
      }
  }
  for (int64_t j = 0; j < n; ++j) code[j] = code[j] == T(-1) && !(frequent && frequent[j]) ? T(kAssumed) : code[j];
}

template <class T, class F> void asymmetric_rows(LossCall& call, const F& term, const AsymmetricOptions& o) {
  if (o.unknown_rule == kIgnore) find_entry_shares(call);
  for_rows(call.rows, call.n, 3, call.threads, [&](int64_t row) {
    static thread_local Scratch rows;
    const T* s = row_of<const T>(call.scores, row, call.n);
    T* grad = row_of<T>(call.grad, row, call.n);
    const double weight = weight_of(call, row);
    RowSum sum;
    if (o.unknown_rule == kIgnore) {
      const auto codes = [&](int64_t begin, int64_t count, T* out) { return read_piece(call, row, begin, count, out); };
      sum = entry_sums(s, call.n, codes, term, T(weight), grad, T(share_of(call, row, 1)));
    } else {
      T* code = rows.get<T>(call.n);
      read_codes(call, row, 0, call.n, code);
      settle_unknown(s, call.n, code, o);
      const auto codes = [&](int64_t begin, int64_t count, T* out) {
        std::memcpy(out, code + begin, size_t(count) * sizeof(T));
        return kMixed;
      };
      sum = entry_sums(s, call.n, codes, term, T(weight), grad);
    }
    finish_entries(call, row, sum, weight, grad);
  });
}

template <class T> void asymmetric(LossCall& call, const AsymmetricOptions& o) {
  const auto whole = [](double g) { return g <= 4 && g == double(int(g)); };
  const auto run = [&](const auto& term) { asymmetric_rows<T>(call, term, o); };
  if (whole(o.gamma_pos) && whole(o.gamma_neg) && whole(o.gamma_unknown)) {
    if (o.clip > 0) run(AsymmetricTerm<T, true, true>(o));
    else run(AsymmetricTerm<T, false, true>(o));
  } else {
    if (o.clip > 0) run(AsymmetricTerm<T, true, false>(o));
    else run(AsymmetricTerm<T, false, false>(o));
  }
}

}  // namespace SHORTLIST_ISA
