// Binary cross-entropy and its relatives: of known labels, of rows with few known labels, of one positive per row.
#pragma once

#include "entry_losses.h"

namespace SHORTLIST_ISA {

template <class T> struct BinaryTerm {
  const T* pos_weight;  // one per label, padded, or null

  Term<T> operator()(Vec<T> x, Vec<T> y, int64_t j) const {
    const Int<T> present = y > T(0);
    const Logistic<T> p(x);
    Term<T> t{present ? p.softplus_minus() : p.softplus(), present ? -p.sigmoid_minus() : p.sigmoid()};
    if (pos_weight) {
      const Vec<T> w = present ? load(pos_weight + j) : splat<T>(1);
      t.loss *= w;
      t.slope *= w;
    }
    return t;
  }
};

template <class T> void binary(LossCall& call, const shortlist::BinaryOptions& o) {
  static thread_local Scratch weights;
  T* padded_weight = nullptr;
  if (o.pos_weight) {
    padded_weight = weights.get<T>(padded(call.n));
    fill(padded_weight + call.n, padded(call.n) - call.n, T(0));
    std::memcpy(padded_weight, o.pos_weight, size_t(call.n) * sizeof(T));
  }
  find_entry_shares(call);
  for_rows(call.rows, call.n, 2, call.threads, [&](int64_t row) {
    const T* s = row_of<const T>(call.scores, row, call.n);
    T* grad = row_of<T>(call.grad, row, call.n);
    const double weight = weight_of(call, row);
    const auto codes = [&](int64_t begin, int64_t count, T* out) { return read_piece(call, row, begin, count, out); };
    const BinaryTerm<T> term{padded_weight};
    const RowSum sum = entry_sums(s, call.n, codes, term, T(weight), grad, T(share_of(call, row, 1)));
    finish_entries(call, row, sum, weight, grad);
  });
}

// g(share known)/L times the sum over known labels, g linear with g(0.1) = boost and g(1) = 1.
template <class T> void partial_binary(LossCall& call, const shortlist::PartialBinaryOptions& o) {
  for_rows(call.rows, call.n, 2, call.threads, [&](int64_t row) {
    static thread_local Scratch rows;
    const T* s = row_of<const T>(call.scores, row, call.n);
    T* grad = row_of<T>(call.grad, row, call.n);
    T* code = rows.get<T>(call.n);
    read_codes(call, row, 0, call.n, code);
    int64_t known = 0;
    for (int64_t j = 0; j < call.n; ++j) known += code[j] >= T(0);
    const double share = double(known) / double(call.n);
    const double factor = (o.boost + (1 - o.boost) * (share - 0.1) / 0.9) / double(call.n);
    const double weight = known ? weight_of(call, row) : 0.0;
    const auto codes = [&](int64_t begin, int64_t count, T* out) {
      std::memcpy(out, code + begin, size_t(count) * sizeof(T));
      return kMixed;
    };
    const RowSum sum = entry_sums(s, call.n, codes, BinaryTerm<T>{nullptr}, T(weight * factor), grad);
    call.row_loss[row] = weight > 0 ? factor * sum.loss : 0.0;
    call.row_weight[row] = weight;
    if (grad && !(weight > 0)) fill(grad, call.n, T(0));
  });
}

// The present label of each row: -1 where there is none, minus their number where there are several.
inline int64_t single_positive(const Rows& rows, const shortlist::SinglePositiveCall& labels) {
  LossCall call{};
  call.rows = rows.rows, call.n = rows.n, call.threads = rows.threads;
  call.target = labels.target, call.target_kind = labels.target_kind;
  for_rows(call.rows, call.n, 0.5, call.threads, [&](int64_t row) {
    const Present y = present(call, row);
    labels.index[row] = y.count == 0 ? -1 : y.count == 1 ? y.label[0] : -y.count;
  });
  return call.bad;
}

// Targets are class indices: label y is present, every other one absent and weighs `absent_weight`.
template <class T> struct AssumeNegativeTerm {
  T absent_weight, smoothing;  // targets are 1 - smoothing and smoothing, half of label_smoothing

  Term<T> operator()(Vec<T> x, Vec<T> y, int64_t) const {
    const Int<T> present = y > T(0);
    const Logistic<T> p(x);
    Vec<T> loss = present ? p.softplus_minus() : p.softplus();
    Vec<T> slope = present ? -p.sigmoid_minus() : p.sigmoid();
    if (smoothing > 0) {
      loss = loss * (T(1) - smoothing) + (present ? p.softplus() : p.softplus_minus()) * smoothing;
      slope += present ? splat(smoothing) : splat(-smoothing);
    }
    const Vec<T> w = present ? splat<T>(1) : splat(absent_weight);
    return {loss * w, slope * w};
  }
};

template <class T> void assume_negative(LossCall& call, const shortlist::AssumeNegativeOptions& o) {
  const T absent_weight = o.weighted ? T(1.0 / double(call.n > 1 ? call.n - 1 : 1)) : T(1);
  for_rows(call.rows, call.n, 2, call.threads, [&](int64_t row) {
    const T* s = row_of<const T>(call.scores, row, call.n);
    T* grad = row_of<T>(call.grad, row, call.n);
    const int64_t y = index_of(call, row);
    const double weight = y < 0 ? 0.0 : weight_of(call, row);
    const auto codes = [&](int64_t begin, int64_t count, T* out) {
      fill(out, count, T(0));
      if (y >= begin && y < begin + count) out[y - begin] = T(1);
      return kMixed;
    };
    RowSum sum;
    if (weight > 0) {
      const AssumeNegativeTerm<T> term{absent_weight, T(o.label_smoothing / 2)};
      sum = entry_sums(s, call.n, codes, term, T(weight), grad);
    }
    call.row_loss[row] = sum.loss;
    call.row_weight[row] = weight;
    if (grad && !(weight > 0)) fill(grad, call.n, T(0));
  });
}

}  // namespace SHORTLIST_ISA
