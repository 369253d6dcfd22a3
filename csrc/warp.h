// WARP: hinges between present and absent labels, weighted by the rank of the present one; exact, or one sample.
//
// The bars s_p - 1 of a row's present labels, sorted, cut its absent labels into buckets: an absent score in bucket b
// violates the margin of the b lowest bars. Counts and sums by bucket give every present label its rank and its hinges,
// whatever the number of pairs.
#pragma once

#include "halves.h"
#include "order.h"

namespace SHORTLIST_ISA {

// L(0), ..., L(n): kept from call to call.
inline const double* harmonic_numbers(int64_t n) {
  static thread_local Scratch memory;
  static thread_local int64_t known = -1;
  if (n <= known) return memory.get<double>(1);
  double* table = memory.get<double>(n + 1);
  table[0] = 0;
  for (int64_t r = 1; r <= n; ++r) table[r] = table[r - 1] + 1 / double(r);
  known = n;
  return table;
}

// A number in [0, 1) that depends on nothing but the seed, the label and `which` (splitmix64). The twin has the same.
inline double uniform(uint64_t seed, uint64_t label, uint64_t which) {
  uint64_t z = seed + (2 * label + which + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return double((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

struct Buckets {
  Ranked* bar;      // the present labels' bars, highest first; label: position in Halves
  double* ascend;   // the bars again, lowest first
  int64_t bars;
  int32_t* cell;    // bars in the cells before this one; equal cells from the lowest bar to the highest
  int64_t cells;
  double per_unit;  // cells
  int32_t* of;      // bucket of each label: how many bars it is above
  int64_t* from;    // absent labels in bucket b and above, b = 0..bars + 1
  double* sum;      // sum of their scores less `offset`
  double offset, centre;  // centre: the known score of least magnitude, which all others are taken relative to

  // Rounded, but never out of order: a bar in an earlier cell than a score is below it.
  int64_t cell_of(double score) const {
    const double c = (score - ascend[0]) * per_unit;
    return c < double(cells - 1) ? int64_t(c) : cells - 1;
  }
  int32_t bucket(double score) const {
    if (!(score > ascend[0])) return 0;
    const int64_t c = cell_of(score);
    int32_t low = cell[c], high = cell[c + 1];
    while (low < high) {
      const int32_t middle = (low + high) / 2;
      if (ascend[middle] < score) low = middle + 1;
      else high = middle;
    }
    return low;
  }
};

// Of a score in double, what many can be added of.
inline double summable(double score) { return score > 1e300 ? 1e300 : score < -1e300 ? -1e300 : score; }

template <class T> Buckets fill_buckets(const Halves<T>& h, int64_t n) {
  static thread_local Scratch bars, ascend, cells, of, from, sum;
  Buckets b;
  b.bars = h.present;
  b.bar = bars.get<Ranked>(b.bars);
  b.centre = INFINITY;
  const auto nearer = [&b](double score) {
    const double a = std::fabs(score), c = std::fabs(b.centre);
    if (a < c || (a == c && score > b.centre)) b.centre = score;
  };
  for (int64_t i = 0; i < b.bars; ++i) nearer(-double(h.minus[i]));
  for (int64_t j = 0; j < n; ++j)
    if (h.code[j] == T(0)) nearer(double(h.x[j]));
  b.centre = summable(b.centre);
  for (int64_t i = 0; i < b.bars; ++i) b.bar[i] = {summable(-double(h.minus[i])) - b.centre - 1, int32_t(i)};
  sort_ranked(b.bar, b.bars);
  b.ascend = ascend.get<double>(b.bars);
  for (int64_t i = 0; i < b.bars; ++i) b.ascend[i] = b.bar[b.bars - 1 - i].value;
  b.cells = 4 * b.bars + 256;  // most hold no bar, and need no search
  const double span = b.ascend[b.bars - 1] - b.ascend[0];
  b.per_unit = span > 0 && double(b.cells) / span < INFINITY ? double(b.cells) / span : 0.0;
  b.cell = cells.get<int32_t>(b.cells + 1);
  for (int64_t i = 0, c = 0; c <= b.cells; ++c) {
    while (i < b.bars && b.cell_of(b.ascend[i]) < c) ++i;
    b.cell[c] = int32_t(i);
  }
  b.offset = summable(double(h.peak)) - b.centre;
  b.of = of.get<int32_t>(n);
  b.from = from.get<int64_t>(b.bars + 2);
  b.sum = sum.get<double>(b.bars + 2);
  fill(b.from, b.bars + 2, int64_t(0));
  fill(b.sum, b.bars + 2, 0.0);
  for (int64_t j = 0; j < n; ++j) {
    const double score = summable(double(h.x[j])) - b.centre;
    const int32_t k = b.of[j] = h.code[j] == T(0) ? b.bucket(score) : 0;
    if (!k) continue;
    ++b.from[k];
    b.sum[k] += score - b.offset;
  }
  for (int64_t k = b.bars - 1; k >= 0; --k) {
    b.from[k] += b.from[k + 1];
    b.sum[k] += b.sum[k + 1];
  }
  return b;
}

template <class T>
double exact_row(const Halves<T>& h, int64_t n, const double* harmonic, double weight, T* grad) {
  static thread_local Scratch pushes;
  const Buckets b = fill_buckets(h, n);
  double* push = pushes.get<double>(b.bars + 1);  // by bucket: what each of its labels is pushed
  push[0] = 0;
  double loss = 0;
  for (int64_t k = 0; k < b.bars; ++k) {  // from the lowest bar up: those above it are in buckets k + 1, ...
    const int64_t rank = b.from[k + 1];
    const double bar = b.ascend[k], each = rank ? harmonic[rank] / double(rank) : 0.0;
    push[k + 1] = push[k] + each;
    if (rank) loss += each * (b.sum[k + 1] + double(rank) * (b.offset - bar));
  }
  if (grad) {
    for (int64_t j = 0; j < n; ++j) grad[j] = T(weight * push[b.of[j]]);
    for (int64_t k = 0; k < b.bars; ++k)
      grad[h.label[b.bar[b.bars - 1 - k].label]] = T(-weight * harmonic[b.from[k + 1]]);
  }
  return loss;
}

// The absent labels above some bar, bucket by bucket from the highest; a bucket asked for often is sorted.
template <class T> class Violators {
 public:
  Violators(const Halves<T>& h, const Buckets& b, int64_t n) : b_(b) {
    static thread_local Scratch values, labels, places, asks;
    value_ = values.get<T>(b.from[1]);
    label_ = labels.get<int32_t>(b.from[1]);
    int64_t* place = places.get<int64_t>(b.bars + 1);
    asked_ = asks.get<uint8_t>(b.bars + 1);
    for (int64_t k = 1; k <= b.bars; ++k) {
      place[k] = b.from[k + 1];
      asked_[k] = 0;
    }
    for (int64_t j = 0; j < n; ++j)
      if (b.of[j]) {
        value_[place[b.of[j]]] = h.x[j];
        label_[place[b.of[j]]++] = int32_t(j);
      }
  }

  // The violator of rank `rank` (0: the largest).
  Ranked at(int64_t rank) {
    int64_t low = 1, high = b_.bars;  // the bucket with from[bucket + 1] <= rank < from[bucket]
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (b_.from[middle + 1] <= rank) high = middle;
      else low = middle + 1;
    }
    const int64_t start = b_.from[low + 1], count = b_.from[low] - start;
    if (asked_[low] < kOften && ++asked_[low] == kOften) sort(start, count);
    if (asked_[low] == kOften) return {double(value_[rank]), label_[rank]};
    const T value = ranked_value(value_ + start, count, rank - start);
    int64_t i = start;
    while (value_[i] != value) ++i;
    return {double(value), label_[i]};
  }

 private:
  void sort(int64_t start, int64_t count) {
    static thread_local Scratch memory;
    Ranked* entry = memory.get<Ranked>(count);
    for (int64_t i = 0; i < count; ++i) entry[i] = {double(value_[start + i]), label_[start + i]};
    sort_ranked(entry, count);
    for (int64_t i = 0; i < count; ++i) {
      value_[start + i] = T(entry[i].value);
      label_[start + i] = entry[i].label;
    }
  }

  static constexpr uint8_t kOften = 32;
  const Buckets& b_;
  T* value_;
  int32_t* label_;
  uint8_t* asked_;
};

// Drawing absent labels until one violates takes a geometric number of draws, and that one is uniform among the
// violators: both are drawn directly.
template <class T>
double sampled_row(const Halves<T>& h, int64_t n, const double* harmonic, uint64_t seed, double weight, T* grad) {
  if (grad) fill(grad, n, T(0));
  const Buckets b = fill_buckets(h, n);
  Violators<T> violators(h, b, n);
  const double candidates = double(h.absent), least = std::numeric_limits<double>::min();
  double loss = 0;
  for (int64_t k = 0; k < b.bars; ++k) {
    const int64_t count = b.from[k + 1], label = h.label[b.bar[b.bars - 1 - k].label];
    if (!count) continue;
    double patience = std::log1p(-double(count) / candidates);
    if (!(patience < -least)) patience = -least;
    double draws = std::ceil(std::log(1 - uniform(seed, uint64_t(label), 0)) / patience);
    if (draws < 1) draws = 1;
    if (draws > candidates) continue;
    int64_t pick = int64_t(uniform(seed, uint64_t(label), 1) * double(count));
    if (pick >= count) pick = count - 1;
    const Ranked found = violators.at(pick);
    const double rank_weight = harmonic[int64_t(candidates / draws)];
    loss += rank_weight * (summable(found.value) - b.centre - b.ascend[k]);
    if (grad) {
      grad[label] -= T(weight * rank_weight);
      grad[found.label] += T(weight * rank_weight);
    }
  }
  return loss;
}

// seeds: one per row for a sample, or null for exact ranks.
template <class T> void warp(LossCall& call, const int64_t* seeds) {
  const double* harmonic = harmonic_numbers(call.n);
  for_rows(call.rows, call.n * 32, call.threads, [&](int64_t row) {
    T* grad = call.grad ? static_cast<T*>(call.grad) + row * call.n : nullptr;
    const Halves<T> h = read_halves<T>(call, row);
    const double weight = h.present ? weight_of(call, row) : 0.0;
    double loss = h.nan ? kNaN<double> : 0.0;
    if (weight > 0 && !h.nan)
      loss = seeds ? sampled_row(h, call.n, harmonic, uint64_t(seeds[row]), weight, grad)
                   : exact_row(h, call.n, harmonic, weight, grad);
    finish(call, row, loss, weight, grad);
  });
}

}  // namespace SHORTLIST_ISA
