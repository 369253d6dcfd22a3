// Targets of one row: the labels observed present, found and checked in one pass.
#pragma once

#include "calls.h"
#include "rows.h"

namespace SHORTLIST_ISA {

using shortlist::LossCall;

struct Present {
  int32_t* label;
  int64_t count;
};

inline void report_bad(LossCall& call, int64_t position) {
#ifdef _OPENMP
#pragma omp critical(shortlist_bad_target)
#endif
  if (call.bad < 0 || position < call.bad) call.bad = position;
}

inline double weight_of(const LossCall& call, int64_t row) {
  if (!call.weight) return 1;
  return call.is_double ? static_cast<const double*>(call.weight)[row] : static_cast<const float*>(call.weight)[row];
}

// What the row's gradient is multiplied by: its weight, and where it is known beforehand its share of the reduced loss.
inline double share_of(const LossCall& call, int64_t row, double weight) {
  if (!call.shares) return weight;
  return weight * call.shares[call.groups == 1 ? 0 : row / (call.rows / call.groups)];  // to divide takes long
}

// The row's class index, -1 for unknown; a value out of range is reported and treated as unknown.
inline int64_t index_of(LossCall& call, int64_t row) {
  const int64_t y = static_cast<const int64_t*>(call.target)[row];
  if (y < -1 || y >= call.n) {
    report_bad(call, row);
    return -1;
  }
  return y;
}

template <class U> Present scan(LossCall& call, int64_t row, int32_t* label, uint8_t* flag) {
  const U* y = static_cast<const U*>(call.target) + row * call.n;
  uint8_t bad = 0;
  for (int64_t j = 0; j < call.n; ++j) {
    flag[j] = y[j] == U(1);
    bad |= uint8_t(!((y[j] == U(1)) | (y[j] == U(0)) | (y[j] == U(-1))));
  }
  if (bad) {
    int64_t j = 0;
    while (y[j] == U(1) || y[j] == U(0) || y[j] == U(-1)) ++j;
    report_bad(call, row * call.n + j);
    return {label, 0};
  }
  int64_t count = 0, j = 0;
  for (; j + 8 <= call.n; j += 8) {
    uint64_t eight;
    std::memcpy(&eight, flag + j, 8);
    if (!eight) continue;
    for (int q = 0; q < 8; ++q)
      if (flag[j + q]) label[count++] = int32_t(j + q);
  }
  for (; j < call.n; ++j)
    if (flag[j]) label[count++] = int32_t(j);
  return {label, count};
}

// What a sparse target stores of a row, from label `begin` up to label `end`.
template <class I> struct StoredEntries {
  const I* label;
  const int8_t* value;
  int64_t count = 0;
  int8_t rest;

  StoredEntries(const LossCall& call, int64_t row, int64_t begin, int64_t end) {
    const auto& t = *static_cast<const shortlist::SparseTarget*>(call.target);
    rest = t.values[t.stored];
    int64_t low = t.offsets[row], high = t.offsets[row + 1];
    low = low < 0 ? 0 : low, high = high > t.stored ? t.stored : high;
    const I* all = static_cast<const I*>(t.indices);
    for (int64_t last = high; begin > 0 && low < last;) {  // the first that is not below begin
      const int64_t middle = low + (last - low) / 2;
      if (int64_t(all[middle]) < begin) low = middle + 1;
      else last = middle;
    }
    label = all + low, value = t.values + low;
    while (low + count < high && int64_t(label[count]) >= begin && int64_t(label[count]) < end) ++count;
  }
};

template <class I> Present stored_present(const LossCall& call, int64_t row, int32_t* label) {
  const StoredEntries<I> y(call, row, 0, call.n);
  int64_t count = 0;
  for (int64_t i = 0; i < y.count && count < call.n; ++i)
    if (y.value[i] == 1) label[count++] = int32_t(y.label[i]);
  return {label, count};
}

// The labels observed present in a row, whatever the target's form. Lives until the next call on this thread.
inline Present present(LossCall& call, int64_t row) {
  static thread_local Scratch labels, flags;
  int32_t* label = labels.get<int32_t>(call.n + 1);
  if (call.target_kind == shortlist::kIndices) {
    const int64_t y = index_of(call, row);
    label[0] = int32_t(y);
    return {label, y >= 0};
  }
  if (call.target_kind == shortlist::kSparse32) return stored_present<int32_t>(call, row, label);
  if (call.target_kind == shortlist::kSparse64) return stored_present<int64_t>(call, row, label);
  uint8_t* flag = flags.get<uint8_t>(call.n + 8);
  switch (call.target_kind) {
    case shortlist::kInt8: return scan<int8_t>(call, row, label, flag);
    case shortlist::kInt32: return scan<int32_t>(call, row, label, flag);
    case shortlist::kInt64: return scan<int64_t>(call, row, label, flag);
    case shortlist::kFloat32: return scan<float>(call, row, label, flag);
    default: return scan<double>(call, row, label, flag);
  }
}

inline double softplus(double z) { return z > 0 ? z + std::log1p(std::exp(-z)) : std::log1p(std::exp(z)); }
inline double sigmoid(double z) {
  const double e = std::exp(-std::fabs(z));
  return z >= 0 ? 1 / (1 + e) : e / (1 + e);
}

// Every loss kernel has this outline: rows in parallel, unobserved rows 0, a row with a NaN all NaN.
//   body(row, scores, weight, grad or null) -> the row's loss; `observed` says whether there is a label to learn from.
template <class T> void finish(LossCall& call, int64_t row, double loss, double weight, T* grad) {
  call.row_loss[row] = weight > 0 ? loss : 0.0;
  call.row_weight[row] = weight;
  if (grad && (loss != loss || !(weight > 0))) fill(grad, call.n, weight > 0 ? kNaN<T> : T(0));
}

}  // namespace SHORTLIST_ISA
