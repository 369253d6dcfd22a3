// The two-way loss: pair_loss.h along every row, and the same along every column, whose sums each row enters with its
// weight.
//
// Columns come first, in blocks narrow enough for all their rows to stay in the cache: peaks, then sums, and per column
// what its gradient needs. The pass over rows then writes both gradients at once.
#pragma once

#include "pair_loss.h"

namespace SHORTLIST_ISA {

template <class T> struct Columns {
  T *absent_peak, *present_peak, *absent_push, *present_push;  // padded; the pushes already divided by the sums
  double loss = 0, count = 0;
};

template <class T> int64_t block_width(int64_t rows) {
  const int64_t fits = int64_t(1 << 17) / (2 * int64_t(sizeof(T)) * (rows > 0 ? rows : 1)) / 64 * 64;
  return fits < 64 ? 64 : fits > 1024 ? 1024 : fits;
}

constexpr int64_t kColumnRows = 32;  // rows summed in the scores' type before the sum moves on in double

// Rows first..first+rows of one block of columns. `stored`: of which of them a sparse target stores something here, if
// all others are absent; or null.
template <class T>
void column_block(LossCall& call, int64_t first, int64_t rows, int64_t begin, int64_t width, const PairOptions& o,
                  Columns<T>& columns, const uint8_t* stored, uint8_t* seen, double& loss, double& count) {
  static thread_local Scratch memory, totals;
  constexpr int W = kWidth<T>;
  const int64_t n = call.n, wide = (width + W - 1) / W * W;
  T* code = memory.get<T>(rows * wide + 4 * wide);
  T *peak[2] = {columns.absent_peak + begin, columns.present_peak + begin};
  T* part[2] = {code + rows * wide, code + rows * wide + wide};
  double* total[2] = {totals.get<double>(2 * wide), nullptr};
  total[1] = total[0] + wide;
  const Vec<T> none = splat(kMinusInf<T>);
  for (int side = 0; side < 2; ++side) {
    fill(peak[side], wide, kMinusInf<T>);
    fill(part[side], wide, T(0));
    fill(total[side], wide, 0.0);
  }
  const auto scores = [&](int64_t row, int64_t j) {
    const T* s = static_cast<const T*>(call.scores) + (first + row) * n + begin + j;
    return j + W <= width ? load(s) : load_part(s, width - j, T(0));
  };
  for (int64_t row = 0; row < rows; ++row) {
    T* y = code + row * wide;
    if (stored && !stored[row]) {
      if (!(weight_of(call, first + row) > 0)) continue;
      for (int64_t j = 0; j < wide; j += W) {
        const Vec<T> x = bounded<T>(scores(row, j)), a = load(peak[0] + j);
        store(peak[0] + j, x > a ? x : a);
      }
      continue;
    }
    read_codes(call, first + row, begin, width, y);
    fill(y + width, wide - width, T(-1));
    if (!(weight_of(call, first + row) > 0)) continue;
    Int<T> present_here{};
    for (int64_t j = 0; j < wide; j += W) {
      Vec<T> x = scores(row, j);
      const Vec<T> c = load(y + j), a = load(peak[0] + j), p = load(peak[1] + j);
      const Int<T> present = c > T(0);
      present_here |= present;
      x = bounded<T>(present ? -x : x);
      const Vec<T> as_absent = c == T(0) ? x : none, as_present = present ? x : none;
      store(peak[0] + j, as_absent > a ? as_absent : a);
      store(peak[1] + j, as_present > p ? as_present : p);
    }
    if (bits<T>(present_here)) __atomic_store_n(seen + row, uint8_t(1), __ATOMIC_RELAXED);
  }
  for (int side = 0; side < 2; ++side)
    for (int64_t j = 0; j < wide; ++j)
      if (peak[side][j] == kMinusInf<T>) peak[side][j] = T(0);  // an empty side: no term will be taken relative to it
  const T absent_scale = T(1 / o.negative_temperature), present_scale = T(1 / o.positive_temperature);
  for (int64_t row = 0; row < rows; ++row) {
    const T weight = T(weight_of(call, first + row));
    if (weight > 0 && stored && !stored[row]) {
      const Int<T> counts = splat(weight) > T(0);  // always; with it, sums are rounded as below
      for (int64_t j = 0; j < wide; j += W) {
        const Vec<T> x = bounded<T>(scores(row, j));
        const Vec<T> e = exp<T>((x - load(peak[0] + j)) * splat(absent_scale)) * weight, zero{};
        store(part[0] + j, load(part[0] + j) + (counts ? e : zero));
      }
    } else if (weight > 0) {
      const T* y = code + row * wide;
      for (int64_t j = 0; j < wide; j += W) {
        Vec<T> x = scores(row, j);
        const Vec<T> c = load(y + j);
        const Int<T> present = c > T(0), known = c >= T(0);
        x = bounded<T>(present ? -x : x);
        x = known ? x : none;
        const Vec<T> e = exp<T>((x - (present ? load(peak[1] + j) : load(peak[0] + j))) *
                                (present ? splat(present_scale) : splat(absent_scale))) * weight;
        const Vec<T> zero{};
        store(part[0] + j, load(part[0] + j) + (present ? zero : e));
        store(part[1] + j, load(part[1] + j) + (present ? e : zero));
      }
    }
    if ((row + 1) % kColumnRows == 0 || row + 1 == rows)
      for (int side = 0; side < 2; ++side)
        for (int64_t j = 0; j < wide; ++j) {
          total[side][j] += double(part[side][j]);
          part[side][j] = T(0);
        }
  }
  for (int64_t j = 0; j < width; ++j) {
    const PairSums sums{double(peak[0][j]), total[0][j], double(peak[1][j]), total[1][j]};
    const double push = sums.both() ? sigmoid(sums.gap(o)) : 0 * total[1][j];  // NaN where a present score is
    columns.absent_push[begin + j] = T(sums.both() ? push / total[0][j] : push);
    columns.present_push[begin + j] = T(sums.both() ? push / total[1][j] : push);
    if (total[1][j] == 0) continue;  // no present label: not observed, whatever the absent scores are
    loss += sums.loss(o);
    ++count;
  }
}

// The gradient of the class way on one row, times `weight`.
template <class T>
void column_gradient(const T* s, const T* code, StoredPlaces<T> places, int64_t n, const Columns<T>& columns,
                     const PairOptions& o, T weight, T* grad) {
  constexpr int W = kWidth<T>;
  const T absent_scale = T(1 / o.negative_temperature), present_scale = T(1 / o.positive_temperature);
  const Vec<T> none = splat(kMinusInf<T>);
  for (int64_t j = 0; j < n; j += W) {
    if (j + W <= n && places.none_from(j)) {
      const Vec<T> x = bounded<T>(load(s + j));
      const Vec<T> e = exp<T>((x - load(columns.absent_peak + j)) * splat(absent_scale));
      const Vec<T> push = load(columns.absent_push + j) * weight, g = e * push, zero{};
      store(grad + j, push != T(0) ? g : zero);
      continue;
    }
    const Vec<T> c = load(code + j);
    const Int<T> present = c > T(0), known = c >= T(0);
    Vec<T> x = j + W <= n ? load(s + j) : load_part(s + j, n - j, T(0));
    x = bounded<T>(present ? -x : x);
    x = known ? x : none;
    const Vec<T> e = exp<T>((x - (present ? load(columns.present_peak + j) : load(columns.absent_peak + j))) *
                            (present ? splat(present_scale) : splat(absent_scale)));
    const Vec<T> push = (present ? -load(columns.present_push + j) : load(columns.absent_push + j)) * weight;
    const Int<T> counts = known & (push != T(0));  // a NaN in a column that is not observed does not
    const Vec<T> g = counts ? e * push : splat<T>(0);
    if (j + W <= n) store(grad + j, g);
    else store_part(grad + j, g, n - j);
  }
}

// One batch: rows first..first+rows. Returns the loss: its mean divides each way by what it observed.
template <class T>
double two_way_batch(LossCall& call, int64_t first, int64_t rows, const PairOptions& o, bool sample_way) {
  static thread_local Scratch memory, flags, results, marks;
  const int64_t n = call.n, stride = padded(n) + 64;
  T* arrays = memory.get<T>(4 * stride);
  Columns<T> columns{arrays, arrays + stride, arrays + 2 * stride, arrays + 3 * stride};
  fill(arrays, 4 * stride, T(0));
  uint8_t* seen = flags.get<uint8_t>(rows);
  std::memset(seen, 0, size_t(rows));
  const int64_t width = block_width<T>(rows), blocks = (n + width - 1) / width;
  double* result = results.get<double>(2 * blocks);
  fill(result, 2 * blocks, 0.0);
  uint8_t* stored = nullptr;  // by block and row
  if (rows > 0 && StoredPlaces<T>(call, first).next) {
    stored = marks.get<uint8_t>(blocks * rows);
    std::memset(stored, 0, size_t(blocks * rows));
    for (int64_t row = 0; row < rows; ++row)
      for (const int64_t* label = StoredPlaces<T>(call, first + row).next; *label < n; ++label)
        stored[*label / width * rows + row] = 1;
  }
  for_rows(blocks, rows * width, 1.5, call.threads, [&](int64_t b) {
    const int64_t begin = b * width, here = n - begin < width ? n - begin : width;
    const uint8_t* own = stored ? stored + b * rows : nullptr;
    column_block(call, first, rows, begin, here, o, columns, own, seen, result[2 * b], result[2 * b + 1]);
  });
  for (int64_t b = 0; b < blocks; ++b) {
    columns.loss += result[2 * b];
    columns.count += result[2 * b + 1];
  }
  double observed = 0;
  for (int64_t row = 0; row < rows; ++row) observed += seen[row] ? weight_of(call, first + row) : 0.0;
  const auto share = [&](double total) { return !call.mean ? 1.0 : total > 0 ? 1 / total : 0.0; };
  const double row_share = sample_way ? share(observed) : 0.0, column_share = share(columns.count);
  for_rows(rows, n, 2, call.threads, [&](int64_t row) {
    const double weight = weight_of(call, first + row);
    T* grad = row_of<T>(call.grad, first + row, n);
    call.row_loss[first + row] = 0;
    if (!(weight > 0)) {
      if (grad) fill(grad, n, T(0));
      return;
    }
    if (!sample_way && !grad) return;
    const LabelSides<T> sides = read_sides<T>(call, first + row);
    const T* s = row_of<const T>(call.scores, first + row, n);
    if (grad) column_gradient(s, sides.code, StoredPlaces<T>(call, first + row), n, columns, o, T(weight * column_share), grad);
    if (!sample_way || sides.present == 0) return;  // no present label: not observed, whatever the absent scores are
    if (sides.nan) {
      call.row_loss[first + row] = kNaN<double>;
      if (grad) fill(grad, n, kNaN<T>);
      return;
    }
    const PairSums sums = pair_sums(sides, n, o);
    call.row_loss[first + row] = weight * sums.loss(o);
    if (grad) pair_gradient(sides, n, sums, o, weight * row_share, true, grad);
  });
  double sample_loss = 0;
  for (int64_t row = 0; row < rows; ++row) sample_loss += call.row_loss[first + row];
  return (sample_way ? sample_loss * row_share : 0.0) + columns.loss * column_share;
}

// Each group of rows is a batch of its own.
template <class T> void two_way(LossCall& call, const shortlist::TwoWayOptions& o) {
  const PairOptions pair{o.positive_temperature, o.negative_temperature, o.margin};
  const int64_t rows = call.groups ? call.rows / call.groups : 0;
  for (int64_t g = 0; g < call.groups; ++g)
    call.group_loss[g] = two_way_batch<T>(call, g * rows, rows, pair, o.sample_way);
}

}  // namespace SHORTLIST_ISA
