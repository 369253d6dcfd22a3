// The k-th largest entry of each row of scores + epsilon * noise.
#pragma once

#include "select.h"

namespace SHORTLIST_ISA {

template <class T>
void kth_largest(const T* scores, const T* noise, T epsilon, int64_t rows, int64_t n, int64_t k, T* values,
                 int64_t* indices, int threads) {
  for_rows(rows, n * 2, threads, [&](int64_t row) {
    static thread_local Scratch memory;
    T* x = memory.get<T>(padded(n));
    Peaks<T> peaks;
    const bool nan = finite_copy(scores + row * n, n, x, peaks);
    if (noise && !nan) {
      const T* z = noise + row * n;
      for (int64_t j = 0; j < n; ++j)  // a label that takes part keeps a finite score
        x[j] = x[j] == kMinusInf<T> ? x[j] : bounded(x[j] + epsilon * z[j]);
      peaks = find_peaks(x, padded(n));
    }
    const Top<T> top = nan ? Top<T>{} : select_top(x, n, k, peaks);
    const bool found = top.count == k;
    values[row] = nan ? kNaN<T> : found ? top.smallest() : kMinusInf<T>;
    indices[row] = found ? top.index[k - 1] : 0;
  });
}

}  // namespace SHORTLIST_ISA
