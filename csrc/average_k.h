// The average-K loss of one batch with both heads' gradients: log shares of the proposals, the M largest of the batch
// that are no observed label, then cross-entropy on one head and binary terms on the other.
#pragma once

#include "balance.h"
#include "entry_losses.h"

namespace SHORTLIST_ISA {

using shortlist::AverageKCall;

// Chosen entries of each row, in order.
struct Chosen {
  int64_t* start;   // rows + 1
  int32_t* label;
  uint8_t* marked;  // which of the listed entries are chosen
};

// share = log softmax of a row; its own label -inf. Returns minus the own label's log share.
template <class T> double log_shares(const T* z, int64_t n, int64_t own, T* share) {
  static thread_local Scratch rows;
  constexpr int W = kWidth<T>;
  T* x = rows.get<T>(padded(n));
  Vec<T> peaks = splat(kMinusInf<T>);
  Int<T> nans{};
  int64_t j = 0;
  for (; j + W <= n; j += W) {
    const Vec<T> v = bounded<T>(load(z + j));
    nans |= v != v;
    peaks = v > peaks ? v : peaks;
    store(x + j, v);
  }
  bool nan = bits<T>(nans) != 0;
  T peak = kMinusInf<T>;
  for (int l = 0; l < W; ++l) peak = peaks[l] > peak ? peaks[l] : peak;
  for (; j < n; ++j) {
    x[j] = bounded(z[j]);
    nan |= x[j] != x[j];
    peak = x[j] > peak ? x[j] : peak;
  }
  fill(x + n, padded(n) - n, kMinusInf<T>);
  if (nan) {
    fill(share, n, kNaN<T>);
    return kNaN<double>;
  }
  const T own_score = x[own];
  const double log_sum = std::log(exponentials(x, padded(n), peak, T(1)).first);
  const T narrow = T(log_sum);
  for (j = 0; j + W <= n; j += W) store(share + j, bounded<T>(load(z + j)) - peak - narrow);
  for (; j < n; ++j) share[j] = bounded(z[j]) - peak - narrow;
  share[own] = kMinusInf<T>;
  return log_sum - (double(own_score) - double(peak));
}

// Entries of a row from `bar` on: counted, or listed where `value` is not null.
template <class T> int64_t entries_from(const T* share, int64_t n, T bar, T* value, int32_t* label) {
  constexpr int W = kWidth<T>;
  int64_t count = 0;
  for (int64_t j = 0; j < n; j += W) {
    const Vec<T> v = j + W <= n ? load(share + j) : load_part(share + j, n - j, kMinusInf<T>);
    for (unsigned m = bits<T>((v >= bar) & (v > kMinusInf<T>)); m; m &= m - 1) {
      const int64_t i = j + __builtin_ctz(m);
      if (value) {
        value[count] = share[i];
        label[count] = int32_t(i);
      }
      ++count;
    }
  }
  return count;
}

// A bar that a few more than `wanted` of the batch's entries reach, judging by a sample; `slack` widens it.
template <class T> T guess_bar(const T* share, int64_t size, int64_t wanted, double slack) {
  constexpr int64_t draws = 4096;
  static thread_local Scratch drawn;
  if (size <= 4 * draws) return kMinusInf<T>;
  T* sample = drawn.get<T>(draws + 64);
  uint64_t random = 12345;
  for (int64_t d = 0; d < draws; ++d) {
    random = random * 6364136223846793005ull + 1442695040888963407ull;
    const T v = share[int64_t((random >> 33) * uint64_t(size) >> 31)];
    sample[d] = v == v ? v : kMinusInf<T>;
  }
  fill(sample + draws, 64, kMinusInf<T>);
  const double expected = double(draws) * double(wanted) / double(size);
  const int64_t rank = int64_t(slack * (expected + 3 * std::sqrt(expected) + 3)) + 1;
  if (rank >= draws) return kMinusInf<T>;
  const Top<T> top = select_top(sample, draws, rank, find_peaks(sample, padded(draws)));
  return top.count < rank ? kMinusInf<T> : top.smallest();
}

// The `wanted` largest shares of a batch above -inf; ties go to the earlier entry.
template <class T>
void choose(const T* share, int64_t rows, int64_t n, int64_t wanted, int threads, Chosen& chosen) {
  static thread_local Scratch starts, values, labels, marks;
  chosen.start = starts.get<int64_t>(rows + 1);
  int64_t* start = chosen.start;
  for (double slack = 1;; slack *= 8) {
    const T bar = wanted ? guess_bar(share, rows * n, wanted, slack) : std::numeric_limits<T>::infinity();
    start[0] = 0;
    for_rows(rows, n, 0.3, threads, [&](int64_t row) {
      start[row + 1] = entries_from(share + row * n, n, bar, static_cast<T*>(nullptr), nullptr);
    });
    for (int64_t row = 0; row < rows; ++row) start[row + 1] += start[row];
    if (start[rows] < wanted && bar > kMinusInf<T>) continue;
    const int64_t listed = start[rows];
    T* value = values.get<T>(padded(listed) + 64);
    int32_t* label = chosen.label = labels.get<int32_t>(listed + 1);
    uint8_t* marked = chosen.marked = marks.get<uint8_t>(listed + 1);
    for_rows(rows, n, 0.3, threads, [&](int64_t row) {
      entries_from(share + row * n, n, bar, value + start[row], label + start[row]);
    });
    fill(value + listed, padded(listed) - listed, kMinusInf<T>);
    fill(marked, listed, uint8_t(0));
    if (listed <= wanted) {
      return fill(marked, listed, uint8_t(1));
    }
    const Top<T> top = select_top(value, listed, wanted, find_peaks(value, padded(listed)));
    for (int64_t i = 0; i < top.count; ++i) marked[top.index[i]] = 1;
    return;
  }
}

template <class T> struct SetTerm {
  T candidate, negative;  // what an entry of each kind weighs; code 1 is a candidate, code 0 a negative

  Term<T> operator()(Vec<T> x, Vec<T> y, int64_t) const {
    const Int<T> up = y > T(0);
    const Logistic<T> p(x);
    const Vec<T> loss = up ? p.softplus_minus() : p.softplus();
    return {loss * (up ? splat(candidate) : splat(negative)),
            up ? p.sigmoid_minus() * -candidate : p.sigmoid() * negative};
  }
};

// Rows first..first+rows are one batch; returns its loss.
template <class T> double average_k_batch(const Rows& all, const AverageKCall& call, int64_t first, int64_t rows) {
  static thread_local Scratch memory;
  const int64_t n = all.n;
  const T* weights = static_cast<const T*>(call.weight) + first;
  const int64_t* index = call.index + first;
  T* share = static_cast<T*>(call.proposal_grad) + first * n;  // turned into the gradient at the end
  T* grad = static_cast<T*>(call.set_grad) + first * n;
  double* row_loss = memory.get<double>(rows);
  int64_t observed = 0;
  double total = 0;
  for (int64_t row = 0; row < rows; ++row)
    if (weights[row] > 0) {
      ++observed;
      total += double(weights[row]);
    }
  for_rows(rows, n, 1, all.threads, [&](int64_t row) {
    const T* z = row_of<const T>(call.proposal_scores, first + row, n);
    row_loss[row] = 0;
    if (weights[row] > 0) row_loss[row] = log_shares(z, n, index[row], share + row * n);
    else fill(share + row * n, n, kMinusInf<T>);
  });
  const double exact_count = std::floor(double(observed) * (call.k - 1) + 0.5);
  const int64_t most = observed * (n - 1), wanted = exact_count < double(most) ? int64_t(exact_count) : most;
  Chosen chosen;
  choose(share, rows, n, wanted, all.threads, chosen);
  double candidates = 0, negatives = 0;
  for (int64_t row = 0; row < rows; ++row) {
    if (!(weights[row] > 0)) continue;
    int64_t count = 0;
    for (int64_t i = chosen.start[row]; i < chosen.start[row + 1]; ++i) count += chosen.marked[i];
    candidates += double(weights[row]) * double(count);
    negatives += double(weights[row]) * double(n - 1 - count);
  }
  const double scale = call.mean || !(total > 0) ? 1.0 : total;  // "sum" is the mean times the observed rows
  const double own_share = total > 0 ? scale / total : 0.0;
  const double candidate_share = candidates > 0 ? scale * call.alpha / candidates : 0.0;
  const double negative_share = negatives > 0 ? scale * call.alpha / negatives : 0.0;
  for_rows(rows, n, 2, all.threads, [&](int64_t row) {
    constexpr int W = kWidth<T>;
    const double weight = double(weights[row]);
    T *g = grad + row * n, *h = share + row * n;
    if (!(weight > 0)) {
      fill(g, n, T(0));
      fill(h, n, T(0));
      return;
    }
    const T* z = row_of<const T>(call.set_scores, first + row, n);
    int64_t next = chosen.start[row];
    const auto codes = [&](int64_t begin, int64_t count, T* out) {
      fill(out, count, T(0));
      for (; next < chosen.start[row + 1] && chosen.label[next] < begin + count; ++next)
        if (chosen.marked[next]) out[chosen.label[next] - begin] = T(1);
      if (index[row] >= begin && index[row] < begin + count) out[index[row] - begin] = T(-1);
      return kMixed;
    };
    const SetTerm<T> term{T(candidate_share), T(negative_share)};
    const double sets = entry_sums(z, n, codes, term, T(weight), g).loss;
    const double own = double(bounded(z[index[row]]));
    const double surprise = row_loss[row];
    row_loss[row] = weight * (sets + own_share * (surprise + softplus(-own)));
    g[index[row]] = T(-weight * own_share * sigmoid(-own));
    const T factor = T(weight * own_share);
    int64_t j = 0;
    for (; j + W <= n; j += W) store(h + j, exp<T>(load(h + j)) * factor);
    if (j < n) store_part(h + j, exp<T>(load_part(h + j, n - j, T(0))) * factor, n - j);
    h[index[row]] = T(weight * own_share * std::expm1(-surprise));
  });
  double loss = 0;
  for (int64_t row = 0; row < rows; ++row) loss += row_loss[row];
  return loss;
}

template <class T> void average_k(const Rows& all, const AverageKCall& call) {
  const int64_t rows = call.groups ? all.rows / call.groups : 0;
  for (int64_t g = 0; g < call.groups; ++g)
    static_cast<T*>(call.loss)[g] = T(average_k_batch<T>(all, call, g * rows, rows));
}

}  // namespace SHORTLIST_ISA
