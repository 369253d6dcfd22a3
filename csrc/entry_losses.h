// Losses that are sums over entries: one pass over a row, label codes in, loss and slope of every entry out.
#pragma once

#include "codes.h"
#include "log.h"

namespace SHORTLIST_ISA {

constexpr int64_t kChunk = 2048;  // entries whose codes are held at a time; their losses are summed in the scores' type

template <class T> struct Term {
  Vec<T> loss, slope;
};

struct RowSum {
  double loss = 0;
  int64_t count = 0;  // entries that count: those whose code is not negative
};

// codes(begin, count, out) writes label codes, or says that they are alike; term(x, code, j) gives the loss of the entries
// from j on and its slope. Entries of negative code are left out, whatever their score. grad (or null) receives
// slope * weight * share.
template <class T, class Codes, class F>
RowSum entry_sums(const T* s, int64_t n, Codes&& codes, F&& term, T weight, T* grad, T share = 1) {
  constexpr int W = kWidth<T>;
  alignas(64) T code[kChunk];
  RowSum out;
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t count = n - begin < kChunk ? n - begin : kChunk;
    const Alike alike = codes(begin, count, code);
    if (alike == kAllUnknown) {
      if (grad) fill(grad + begin, count, T(0));
      continue;
    }
    Vec<T> sum{};
    Int<T> counted{};
    const auto weighted_slope = [&](Vec<T> x, Vec<T> y, int64_t j) {
      const Int<T> in = y >= T(0);
      const Term<T> t = term(in ? bounded<T>(x) : splat<T>(0), y, j);
      sum += in ? t.loss : splat<T>(0);
      counted -= in;
      return in ? t.slope * weight * share : splat<T>(0);
    };
    int64_t i = 0;
    if (alike == kAllAbsent) {  // the same arithmetic, of which the compiler leaves out what is of other codes
      const Int<T> in = load(code) >= T(0);  // all: without it, product and sum would be rounded as one
      for (; i + W <= count; i += W) {
        const Term<T> t = term(bounded<T>(load(s + begin + i)), splat<T>(0), begin + i);
        sum += in ? t.loss : splat<T>(0);
        if (grad) store(grad + begin + i, t.slope * weight * share);
      }
      out.count += i;
      fill(code + i, count - i, T(0));
    }
    for (; i + W <= count; i += W) {
      const Vec<T> g = weighted_slope(load(s + begin + i), load(code + i), begin + i);
      if (grad) store(grad + begin + i, g);
    }
    if (i < count) {
      const Vec<T> x = load_part(s + begin + i, count - i, T(0)), y = load_part(code + i, count - i, T(-1));
      const Vec<T> g = weighted_slope(x, y, begin + i);
      if (grad) store_part(grad + begin + i, g, count - i);
    }
    out.loss += total<T>(sum);
    for (int l = 0; l < W; ++l) out.count += counted[l];
  }
  return out;
}

template <class I> int64_t known_entries(const LossCall& call, int64_t row) {
  const StoredEntries<I> y(call, row, 0, call.n);
  int64_t unknown = 0;
  for (int64_t i = 0; i < y.count; ++i) unknown += y.value[i] != 0 && y.value[i] != 1;
  return y.rest == 0 ? call.n - unknown : y.count - unknown;
}

// Of a sparse target, how many entries a mean is over is known before any is looked at: the gradient then holds its share
// at once, rounded as if it were multiplied later, and nobody has to go through it again.
inline void find_entry_shares(LossCall& call) {
  if (!call.unknown_shares) return;
  const bool narrow = call.target_kind == shortlist::kSparse32;
  for (int64_t row = 0; row < call.rows; ++row) {  // written first: product and sum must not be rounded as one
    const int64_t known = narrow ? known_entries<int32_t>(call, row) : known_entries<int64_t>(call, row);
    call.row_weight[row] = weight_of(call, row) * double(known);
  }
  const int64_t size = call.rows / call.groups;
  for (int64_t g = 0; g < call.groups; ++g) {
    double total = 0;
    for (int64_t row = g * size; row < (g + 1) * size; ++row) total += call.row_weight[row];
    call.unknown_shares[g] = total > 0 ? 1 / total : 0;
  }
  call.shares = call.unknown_shares;
  call.complete = true;
}

// The mean over entries is a mean over rows of their own means, each weighted by how many entries it has.
template <class T> void finish_entries(LossCall& call, int64_t row, RowSum sum, double weight, T* grad) {
  const double count = double(sum.count);
  call.row_loss[row] = sum.count && weight > 0 ? sum.loss / count : 0.0;
  call.row_weight[row] = weight * count;
  if (grad && !(weight > 0)) fill(grad, call.n, T(0));
}

}  // namespace SHORTLIST_ISA
