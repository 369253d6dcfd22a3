// A label matrix read piece by piece: any type of target becomes codes 1 (present), 0 (absent), -1 (unknown) in the
// scores' own type, checked on the way.
#pragma once

#include "target.h"

namespace SHORTLIST_ISA {

template <class T, class U> bool convert(const U* y, int64_t count, T* code) {
  int bad = 0;
  for (int64_t i = 0; i < count; ++i) {
    const bool present = y[i] == U(1), absent = y[i] == U(0);
    code[i] = present ? T(1) : absent ? T(0) : T(-1);
    bad |= int(!(present | absent | (y[i] == U(-1))));
  }
  return bad != 0;
}

template <class T, class U> void read_as(LossCall& call, int64_t start, int64_t count, T* code) {
  const U* y = static_cast<const U*>(call.target) + start;
  if (!convert(y, count, code)) return;
  int64_t i = 0;
  while (y[i] == U(1) || y[i] == U(0) || y[i] == U(-1)) ++i;
  report_bad(call, start + i);
}

// What all codes of a piece are, where it is known that they are alike; only those of the first vector are then written.
enum Alike : int { kMixed, kAllAbsent, kAllUnknown };

template <class T, class I> Alike read_stored(const LossCall& call, int64_t row, int64_t begin, int64_t count, T* code, bool all) {
  const StoredEntries<I> y(call, row, begin, begin + count);
  if (!all && y.count == 0) {
    fill(code, kWidth<T>, T(y.rest));
    return y.rest == 0 ? kAllAbsent : kAllUnknown;
  }
  fill(code, count, T(y.rest == 0 ? 0 : -1));
  for (int64_t i = 0; i < y.count; ++i)
    code[int64_t(y.label[i]) - begin] = y.value[i] == 1 ? T(1) : y.value[i] == 0 ? T(0) : T(-1);
  return kMixed;
}

// Codes of `count` labels of a row from `begin` on, unless they are alike.
template <class T> Alike read_piece(LossCall& call, int64_t row, int64_t begin, int64_t count, T* code, bool all = false) {
  const int64_t start = row * call.n + begin;
  switch (call.target_kind) {
    case shortlist::kInt8: read_as<T, int8_t>(call, start, count, code); break;
    case shortlist::kInt32: read_as<T, int32_t>(call, start, count, code); break;
    case shortlist::kInt64: read_as<T, int64_t>(call, start, count, code); break;
    case shortlist::kFloat32: read_as<T, float>(call, start, count, code); break;
    case shortlist::kSparse32: return read_stored<T, int32_t>(call, row, begin, count, code, all);
    case shortlist::kSparse64: return read_stored<T, int64_t>(call, row, begin, count, code, all);
    default: read_as<T, double>(call, start, count, code);
  }
  return kMixed;
}

// The same, always written.
template <class T> void read_codes(LossCall& call, int64_t row, int64_t begin, int64_t count, T* code) {
  read_piece(call, row, begin, count, code, true);
}

}  // namespace SHORTLIST_ISA
