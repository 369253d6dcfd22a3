// RML: WARP's rank weights on a ramp R(t) = min(1 - ramp, max(0, 1 - t)), and the same ramp per label.
//
// Each present label has two bars, s_p - 1 and s_p - ramp: an absent score above the first is one of its violators, above
// the second it is hopeless, and costs 1 - ramp whatever it is. Counts and sums by bucket give all pairs at once.
#pragma once

#include "warp.h"

namespace SHORTLIST_ISA {

using shortlist::RmlOptions;

inline double lesser(double a, double b) { return a < b ? a : b; }  // of numbers: std::fmin would be called for each label

// Known scores that lie far apart, moved together: distances below `far` stay, larger ones become `far`. No pair on the
// slope is further apart than that, and a difference of moderate numbers has all its digits.
inline void gather(double* score, const int32_t* label, int64_t count, double far) {
  static thread_local Scratch memory;
  bool spread = false;
  for (int64_t i = 0; i < count; ++i) spread |= std::fabs(score[label[i]]) > 1e6 * far;
  if (!spread) return;
  Ranked* known = memory.get<Ranked>(count);
  for (int64_t i = 0; i < count; ++i) known[i] = {score[label[i]], label[i]};
  sort_ranked(known, count);
  double moved = 0;
  for (int64_t i = count - 1; i >= 0; --i) {
    if (i + 1 < count) moved += lesser(known[i].value - known[i + 1].value, far);
    score[known[i].label] = moved;
  }
}

// How many bars each score is above: few bars are compared with vectors of scores. score and above: padded.
constexpr int64_t kFewBars = 64;

inline void count_below(const Bars& b, const double* score, int64_t n, int64_t* above) {
  constexpr int W = kWidth<double>;
  for (int64_t j = 0; j < n; j += 2 * W) {
    const Vec<double> s = load(score + j), t = load(score + j + W);
    Int<double> first{}, second{};
    for (int64_t k = 0; k < b.count; ++k) {
      const Vec<double> bar = splat(b.ascend[k]);
      first -= s > bar;
      second -= t > bar;
    }
    std::memcpy(above + j, &first, sizeof first);
    std::memcpy(above + j + W, &second, sizeof second);
  }
}

// The ramp of every known label alone: their sum. grad: its slopes times `weight`, 0 for unknown labels.
template <class T> double label_ramps(const LabelSides<T>& sides, int64_t n, double ramp, T weight, T* grad) {
  constexpr int W = kWidth<T>;
  T bar = T(ramp);  // the first number of this type that is on the slope
  if (double(bar) < ramp) bar = std::nextafter(bar, std::numeric_limits<T>::infinity());
  const Vec<T> most = splat(T(1 - ramp)), zero{};
  double sum = 0;
  for (int64_t block = 0; block < padded(n); block += 64) {
    Vec<T> part{};
    for (int64_t j = block; j < block + 64; j += W) {
      const Vec<T> at = -load(sides.scores + j);  // of an absent label; +inf of others
      part += at < bar ? most : at > T(1) ? zero : T(1) - at;
      if (!grad || j >= n) continue;
      const Vec<T> slope = ((at >= bar) & (at <= T(1))) ? splat(weight) : zero;
      if (j + W <= n) store(grad + j, slope);
      else store_part(grad + j, slope, n - j);
    }
    sum += total<T>(part);
  }
  for (int64_t i = 0; i < sides.present; ++i) {
    const double at = -double(sides.minus_present[i]);
    if (grad) grad[sides.present_label[i]] = at >= ramp && at <= 1 ? -weight : T(0);
    sum += at < ramp ? 1 - ramp : at > 1 ? 0.0 : 1 - at;
  }
  return sum;
}

template <class T>
double rml_row(const LabelSides<T>& sides, int64_t n, const double* harmonic, const RmlOptions& o, double weight,
               T* grad) {
  static thread_local Scratch scores, labels, bars, of, numbers, counts;
  const double most = 1 - o.ramp, far = 3 - o.ramp, centre = centre_of(sides, n);
  double loss = o.label_weight * label_ramps(sides, n, o.ramp, T(weight * o.label_weight), grad);
  double* score = scores.get<double>(padded(n));
  int32_t* known = labels.get<int32_t>(n);
  int64_t count = 0;
  for (int64_t j = 0; j < n; ++j) {
    score[j] = summable(double(sides.scores[j])) - centre;
    known[count] = int32_t(j);
    count += sides.code[j] == T(0);
  }
  for (int64_t i = 0; i < sides.present; ++i) {
    score[sides.present_label[i]] = summable(-double(sides.minus_present[i])) - centre;
    known[count++] = sides.present_label[i];
  }
  fill(score + n, padded(n) - n, 0.0);
  gather(score, known, count, far);

  const int64_t present = sides.present;
  Ranked* bar = bars.get<Ranked>(2 * present);
  for (int64_t i = 0; i < present; ++i) {
    const double s = score[sides.present_label[i]];
    bar[i] = {s - 1, int32_t(i)};
    bar[present + i] = {s - o.ramp, int32_t(present + i)};
  }
  const Bars b = sort_bars(bar, 2 * present, 2 * present > kFewBars);
  // where each bar is, gaps that no pair bridges narrowed; sums of scores there; what buckets from here on are pushed
  double* at = numbers.get<double>(3 * (b.count + 2));
  double *sum = at + (b.count + 2), *push = sum + (b.count + 2);
  int64_t* from = counts.get<int64_t>(2 * (b.count + 2) + b.count);  // absent labels in bucket k and above
  int64_t *pushed = from + (b.count + 2), *place = pushed + (b.count + 2);
  at[0] = 0;
  for (int64_t k = 1; k < b.count; ++k) at[k] = at[k - 1] + lesser(b.ascend[k] - b.ascend[k - 1], far);
  fill(sum, b.count + 2, 0.0);
  fill(push, b.count + 2, 0.0);
  fill(from, b.count + 2, int64_t(0));
  fill(pushed, b.count + 2, int64_t(0));
  int64_t* bucket = of.get<int64_t>(padded(n));  // of each label: how many bars it is above
  const int64_t absent = count - present;
  if (b.count <= kFewBars) count_below(b, score, n, bucket);
  else
    for (int64_t i = 0; i < absent; ++i) bucket[known[i]] = b.below(score[known[i]]);
  for (int64_t i = 0; i < absent; ++i) {  // what is above no bar goes to bucket 0, which nobody asks for
    const int64_t k = bucket[known[i]], under = k ? k - 1 : 0;
    ++from[k];
    sum[k] += at[under] + lesser(score[known[i]] - b.ascend[under], far);
  }
  for (int64_t k = b.count - 1; k >= 0; --k) {
    from[k] += from[k + 1];
    sum[k] += sum[k + 1];
  }
  for (int64_t k = 0; k < b.count; ++k) place[b.bar[b.count - 1 - k].label] = k;
  for (int64_t i = 0; i < present; ++i) {
    const int64_t low = place[i] + 1, high = place[present + i] + 1, rank = from[low], flat = from[high];
    if (!rank) continue;
    const double each = harmonic[rank] / double(rank), sloped = double(rank - flat);
    loss += each * (sum[low] - sum[high] - sloped * at[low - 1] + double(flat) * most);
    push[low] += each;
    push[high] -= each;
    ++pushed[low];
    --pushed[high];
    if (grad) {
      const int32_t j = sides.present_label[i];
      grad[j] = T(double(grad[j]) - weight * each * sloped);
    }
  }
  if (!grad) return loss;
  for (int64_t k = 1; k <= b.count; ++k) {
    pushed[k] += pushed[k - 1];
    push[k] = pushed[k] ? push[k] + push[k - 1] : 0.0;  // nobody's violators any more: no rounding left over
  }
  for (int64_t i = 0; i < absent; ++i) {
    const int32_t j = known[i];
    grad[j] = T(double(grad[j]) + weight * push[bucket[j]]);  // push[0] is 0
  }
  return loss;
}

template <class T> void rml(LossCall& call, const RmlOptions& o) {
  const double* harmonic = harmonic_numbers(call.n);
  for_rows(call.rows, call.n, 12, call.threads, [&](int64_t row) {
    T* grad = row_of<T>(call.grad, row, call.n);
    const LabelSides<T> sides = read_sides<T>(call, row, false, true);
    const double weight = sides.present ? weight_of(call, row) : 0.0;
    double loss = sides.nan ? kNaN<double> : 0.0;
    if (weight > 0 && !sides.nan) loss = rml_row(sides, call.n, harmonic, o, weight, grad);
    finish(call, row, loss, weight, grad);
  });
}

}  // namespace SHORTLIST_ISA
