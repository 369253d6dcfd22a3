// WARP: hinges between present and absent labels, weighted by the rank of the present one; exact, or one sample.
//
// The bars s_p - 1 of a row's present labels, sorted, cut its absent labels into buckets: an absent score in bucket b
// violates the margin of the b lowest bars. Counts and sums by bucket give every present label its rank and its hinges,
// whatever the number of pairs.
#pragma once

#include "label_sides.h"
#include "sorting.h"

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

// Bars, sorted, and the cells by which a score finds the bars below it.
struct Bars {
  Ranked* bar;      // highest first; label: whose it is
  double* ascend;   // the bars again, lowest first
  int64_t count;
  int32_t* cell;    // bars in the cells before this one; equal cells from the lowest bar to the highest
  int64_t cells;
  double per_unit;  // cells

  // Rounded, but never out of order: a bar in an earlier cell than a score is below it.
  int64_t cell_of(double score) const {
    const double c = (score - ascend[0]) * per_unit;
    return c < double(cells - 1) ? int64_t(c) : cells - 1;
  }
  // How many bars a score is above.
  int32_t below(double score) const {
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

// bar: count of them, in any order; sorted in place. with_cells: scores will be looked up one by one. Lives until the next
// call on this thread.
inline Bars sort_bars(Ranked* bar, int64_t count, bool with_cells = true) {
  static thread_local Scratch ascend, cells;
  Bars b;
  b.bar = bar;
  b.count = count;
  sort_ranked(bar, count);
  b.ascend = ascend.get<double>(count);
  for (int64_t i = 0; i < count; ++i) b.ascend[i] = bar[count - 1 - i].value;
  if (!with_cells) return b;
  b.cells = 4 * count + 256;  // most hold no bar, and need no search
  const double span = b.ascend[count - 1] - b.ascend[0];
  b.per_unit = span > 0 && double(b.cells) / span < INFINITY ? double(b.cells) / span : 0.0;
  b.cell = cells.get<int32_t>(b.cells + 1);
  int64_t c = 0;
  for (int64_t i = 0; i < count; ++i)
    for (const int64_t own = b.cell_of(b.ascend[i]); c <= own; ++c) b.cell[c] = int32_t(i);
  for (; c <= b.cells; ++c) b.cell[c] = int32_t(count);
  return b;
}

// Of a score in double, what many can be added of.
inline double summable(double score) { return score > 1e300 ? 1e300 : score < -1e300 ? -1e300 : score; }

// The known score of least magnitude, which all others are taken relative to: an offset costs no digits.
template <class T> double centre_of(const LabelSides<T>& sides, int64_t n) {
  constexpr int W = kWidth<T>;
  const Vec<T> none = splat(std::numeric_limits<T>::infinity());
  Vec<T> above = none, below = none;  // the least distances from 0
  const auto look = [&](Vec<T> x) {   // -inf: a label that takes no part
    const Vec<T> up = x >= T(0) ? x : none, down = x < T(0) ? -x : none;
    above = up < above ? up : above;
    below = down < below ? down : below;
  };
  for (int64_t j = 0; j < padded(n); j += W) look(load(sides.scores + j));
  for (int64_t i = 0; i < padded(sides.present); i += W) {
    const Vec<T> minus = load(sides.minus_present + i);
    look(minus > kMinusInf<T> ? -minus : splat(kMinusInf<T>));
  }
  T up = above[0], down = below[0];
  for (int l = 1; l < W; ++l) {
    up = above[l] < up ? above[l] : up;
    down = below[l] < down ? below[l] : down;
  }
  return summable(up <= down ? double(up) : -double(down));
}

struct Buckets : Bars {
  int32_t* of;      // bucket of each label: how many bars it is above
  int64_t* from;    // absent labels in bucket b and above, b = 0..count + 1
  double* sum;      // sum of their scores less `offset`
  double offset, centre;
};

template <class T> Buckets fill_buckets(const LabelSides<T>& sides, int64_t n) {
  static thread_local Scratch bars, of, from, sum;
  const double centre = centre_of(sides, n);
  Ranked* bar = bars.get<Ranked>(sides.present);
  for (int64_t i = 0; i < sides.present; ++i)
    bar[i] = {summable(-double(sides.minus_present[i])) - centre - 1, int32_t(i)};
  Buckets b{sort_bars(bar, sides.present)};
  b.centre = centre;
  b.offset = summable(double(sides.peak)) - b.centre;
  b.of = of.get<int32_t>(n);
  b.from = from.get<int64_t>(b.count + 2);
  b.sum = sum.get<double>(b.count + 2);
  fill(b.from, b.count + 2, int64_t(0));
  fill(b.sum, b.count + 2, 0.0);
  for (int64_t j = 0; j < n; ++j) {
    const double score = summable(double(sides.scores[j])) - b.centre;
    const int32_t k = b.of[j] = sides.code[j] == T(0) ? b.below(score) : 0;
    if (!k) continue;
    ++b.from[k];
    b.sum[k] += score - b.offset;
  }
  for (int64_t k = b.count - 1; k >= 0; --k) {
    b.from[k] += b.from[k + 1];
    b.sum[k] += b.sum[k + 1];
  }
  return b;
}

template <class T>
double exact_row(const LabelSides<T>& sides, int64_t n, const double* harmonic, double weight, T* grad) {
  static thread_local Scratch pushes;
  const Buckets b = fill_buckets(sides, n);
  double* push = pushes.get<double>(b.count + 1);  // by bucket: what each of its labels is pushed
  push[0] = 0;
  double loss = 0;
  for (int64_t k = 0; k < b.count; ++k) {  // from the lowest bar up: those above it are in buckets k + 1, ...
    const int64_t rank = b.from[k + 1];
    const double bar = b.ascend[k], each = rank ? harmonic[rank] / double(rank) : 0.0;
    push[k + 1] = push[k] + each;
    if (rank) loss += each * (b.sum[k + 1] + double(rank) * (b.offset - bar));
  }
  if (grad) {
    for (int64_t j = 0; j < n; ++j) grad[j] = T(weight * push[b.of[j]]);
    for (int64_t k = 0; k < b.count; ++k)
      grad[sides.present_label[b.bar[b.count - 1 - k].label]] = T(-weight * harmonic[b.from[k + 1]]);
  }
  return loss;
}

// The absent labels above some bar, bucket by bucket from the highest; a bucket asked for often is sorted.
template <class T> class Violators {
 public:
  Violators(const LabelSides<T>& sides, const Buckets& b, int64_t n) : b_(b) {
    static thread_local Scratch values, labels, places, asks;
    value_ = values.get<T>(b.from[1]);
    label_ = labels.get<int32_t>(b.from[1]);
    int64_t* place = places.get<int64_t>(b.count + 1);
    asked_ = asks.get<uint8_t>(b.count + 1);
    for (int64_t k = 1; k <= b.count; ++k) {
      place[k] = b.from[k + 1];
      asked_[k] = 0;
    }
    for (int64_t j = 0; j < n; ++j)
      if (b.of[j]) {
        value_[place[b.of[j]]] = sides.scores[j];
        label_[place[b.of[j]]++] = int32_t(j);
      }
  }

  // The violator of rank `rank` (0: the largest).
  Ranked at(int64_t rank) {
    int64_t low = 1, high = b_.count;  // the bucket with from[bucket + 1] <= rank < from[bucket]
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
double sampled_row(const LabelSides<T>& sides, int64_t n, const double* harmonic, uint64_t seed, double weight, T* grad) {
  if (grad) fill(grad, n, T(0));
  const Buckets b = fill_buckets(sides, n);
  Violators<T> violators(sides, b, n);
  const double candidates = double(sides.absent), least = std::numeric_limits<double>::min();
  double loss = 0;
  for (int64_t k = 0; k < b.count; ++k) {
    const int64_t count = b.from[k + 1], label = sides.present_label[b.bar[b.count - 1 - k].label];
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

template <class T> void warp(LossCall& call, const shortlist::WarpOptions& o) {
  const double* harmonic = harmonic_numbers(call.n);
  for_rows(call.rows, call.n, 10, call.threads, [&](int64_t row) {
    T* grad = row_of<T>(call.grad, row, call.n);
    const LabelSides<T> sides = read_sides<T>(call, row, false, true);
    const double weight = sides.present ? weight_of(call, row) : 0.0;
    double loss = sides.nan ? kNaN<double> : 0.0;
    if (weight > 0 && !sides.nan)
      loss = o.seeds ? sampled_row(sides, call.n, harmonic, uint64_t(o.seeds[row]), weight, grad)
                   : exact_row(sides, call.n, harmonic, weight, grad);
    finish(call, row, loss, weight, grad);
  });
}

}  // namespace SHORTLIST_ISA
