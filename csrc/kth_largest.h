// The k-th largest entry of each row of scores + epsilon * noise.
#pragma once

#include "select.h"

namespace SHORTLIST_ISA {

template <class T> void kth_largest(const Rows& rows, const shortlist::KthLargestCall& call) {
  const int64_t n = rows.n, k = call.k;
  const T epsilon = T(call.epsilon);
  for_rows(rows.rows, n, 0.5, rows.threads, [&](int64_t row) {
    static thread_local Scratch memory;
    T* x = memory.get<T>(padded(n));
    Peaks<T> peaks;
    const bool nan = finite_copy(row_of<const T>(call.scores, row, n), n, x, peaks);
    const T* noise = row_of<const T>(call.noise, row, n);
    if (noise && !nan) {
      constexpr int W = kWidth<T>;
      for (int64_t j = 0; j < n; j += W) {  // a label that takes part keeps a finite score
        const Vec<T> v = load(x + j), z = j + W <= n ? load(noise + j) : load_part(noise + j, n - j, T(0));
        store(x + j, v > kMinusInf<T> ? bounded<T>(v + z * epsilon) : v);
      }
      peaks = find_peaks(x, padded(n));
    }
    const Top<T> top = nan ? Top<T>{} : select_top(x, n, k, peaks);
    const bool found = top.count == k;
    static_cast<T*>(call.values)[row] = nan ? kNaN<T> : found ? top.smallest() : kMinusInf<T>;
    call.indices[row] = found ? top.index[k - 1] : 0;
  });
}

}  // namespace SHORTLIST_ISA
