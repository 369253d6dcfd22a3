// What every row kernel shares: scratch memory, the loop over rows, scores made finite, and the loss contract.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <limits>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "calls.h"
#include "simd.h"

namespace SHORTLIST_ISA {

using shortlist::Rows;

// A growing block of memory, one per thread and use, kept until the thread ends (csrc/README.md); plain malloc, because templates of the standard library
// compiled for one instruction set could be linked into another's code. No memory is an exception, never an abort.
class Scratch {
 public:
  ~Scratch() { std::free(data_); }
  template <class T> T* get(int64_t count) {
    if (count < 0 || count > (int64_t(1) << 60) / int64_t(sizeof(T))) shortlist::out_of_memory();
    const size_t need = size_t(count) * sizeof(T) + 64;
    if (need > size_) {
      std::free(data_);
      size_ = 0;
      data_ = std::malloc(need + need / 2);
      if (!data_) shortlist::out_of_memory();
      size_ = need + need / 2;
    }
    return reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(data_) + 63) & ~uintptr_t(63));
  }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

inline int64_t padded(int64_t n) { return (n + 63) / 64 * 64; }

// Row `row` of a matrix with n columns, or null where there is none.
template <class T, class V> inline T* row_of(V* matrix, int64_t row, int64_t n) {
  return matrix ? static_cast<T*>(matrix) + row * n : nullptr;
}

// When threads are woken. Where PyTorch wakes them for an operation on each number (from 32,768 numbers on), if one thread
// would take 50 us: it wins half of that, and waking costs 5 to 15. Below that many, only for half a millisecond: a
// training loop on small batches, beside data loaders that keep the cores busy, then never waits for a thread that is not
// given a core (a whole time slice, some 10 ms). nanoseconds: of one number on one thread of a common machine, roughly.
inline bool worth_waking(int64_t rows, int64_t numbers, double nanoseconds) {
  const double all = double(rows) * double(numbers), time = all * nanoseconds;
  return rows > 1 && time >= (all >= 32768 ? 5e4 : 5e5);
}

// Rows in parallel where that is worth it. The one thing that a row can throw, that there is no memory, is thrown again
// outside: an exception that leaves a parallel region ends the process.
template <class F> void for_rows(int64_t rows, int64_t numbers, double nanoseconds, int threads, F&& body) {
#ifdef _OPENMP
  if (threads > 1 && worth_waking(rows, numbers, nanoseconds)) {
    bool failed = false;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
      try {
        body(row);
      } catch (...) {
#pragma omp atomic write
        failed = true;
      }
    }
    if (failed) shortlist::out_of_memory();
    return;
  }
#endif
  for (int64_t row = 0; row < rows; ++row) body(row);
}

template <class T> constexpr T kMost = std::numeric_limits<T>::max() / 4;  // what +inf counts as
template <class T> constexpr T kMinusInf = -std::numeric_limits<T>::infinity();
// Scores of losses in which a label at -inf is low and not out of its row; a NaN stays one.
template <class T> inline Vec<T> bounded(Vec<T> x) {
  const Vec<T> most = splat(kMost<T>);
  x = x > most ? most : x;
  return x < -most ? -most : x;
}
template <class T> inline T bounded(T x) { return x > kMost<T> ? kMost<T> : x < -kMost<T> ? -kMost<T> : x; }

template <class T> constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();

template <class T> void fill(T* out, int64_t n, T value) {
  for (int64_t j = 0; j < n; ++j) out[j] = value;
}

// The largest entry of each of 4 W interleaved parts of a row: a first look at where its large entries are.
template <class T> struct Peaks {
  Vec<T> part[4];
};

// The row with +inf replaced by a huge number, padded with -inf to a whole number of blocks. True if it holds a NaN.
template <class T> bool finite_copy(const T* s, int64_t n, T* out, Peaks<T>& peaks) {
  constexpr int W = kWidth<T>;
  Vec<T> sum[4] = {}, peak[4];  // sum: NaN where an entry is one, or where infinities of both signs meet
  for (Vec<T>& part : peak) part = splat(kMinusInf<T>);
  const auto block = [&](const T* from, T* to) {
    for (int q = 0; q < 4; ++q) {
      const Vec<T> x = load(from + q * W);
      sum[q] += x;
      peak[q] = greater<T>(x, peak[q]);
      store(to + q * W, x);
    }
  };
  int64_t j = 0;
  for (; j + 4 * W <= n; j += 4 * W) block(s + j, out + j);
  if (j < n) {
    alignas(64) T tail[4 * W];
    for (int q = 0; q < 4; ++q) store(tail + q * W, splat(kMinusInf<T>));
    std::memcpy(tail, s + j, size_t(n - j) * sizeof(T));
    block(tail, out + j);
    j += 4 * W;
  }
  for (; j < padded(n); ++j) out[j] = kMinusInf<T>;
  Int<T> nan{}, huge{};
  for (int q = 0; q < 4; ++q) {
    nan |= sum[q] != sum[q];
    huge |= peak[q] > kMost<T>;
    peaks.part[q] = peak[q];
  }
  if (bits<T>(nan))
    for (int64_t i = 0; i < n; ++i)
      if (s[i] != s[i]) return true;
  if (bits<T>(huge)) {
    const Vec<T> most = splat(kMost<T>);
    for (Vec<T>& part : peaks.part) part = part > most ? most : part;
    for (int64_t i = 0; i < padded(n); i += W) store(out + i, load(out + i) > most ? most : load(out + i));
  }
  return false;
}

// The peaks of a padded row that has been changed since it was copied.
template <class T> Peaks<T> find_peaks(const T* x, int64_t n_padded) {
  constexpr int W = kWidth<T>;
  Peaks<T> peaks;
  for (Vec<T>& part : peaks.part) part = splat(kMinusInf<T>);
  for (int64_t j = 0; j < n_padded; j += 4 * W)
    for (int q = 0; q < 4; ++q) {
      const Vec<T> v = load(x + j + q * W);
      peaks.part[q] = greater<T>(v, peaks.part[q]);
    }
  return peaks;
}

}  // namespace SHORTLIST_ISA
