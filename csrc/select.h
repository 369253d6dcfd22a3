// The k largest entries of a row. Few of them: the row's peaks give a threshold that almost only they pass. Many: narrow
// an interval around the k-th largest by counting, then pick inside it. Among ties the lower label wins, in both.
#pragma once

#include <cmath>
#include <type_traits>

#include "rows.h"

namespace SHORTLIST_ISA {

template <class T> struct Top {
  T* value;        // the smallest one last
  int32_t* index;
  int64_t count;   // fewer than asked for where the row has fewer entries above -inf
  bool sorted;     // in descending order; else only the last is in place

  T smallest() const { return value[count - 1]; }
};

// Put the smallest last; ties: the highest label.
template <class T> void sink_smallest(Top<T>& top) {
  int64_t low = 0;
  for (int64_t i = 1; i < top.count; ++i)
    if (top.value[i] < top.value[low] || (top.value[i] == top.value[low] && top.index[i] > top.index[low])) low = i;
  const int64_t last = top.count - 1;
  const T v = top.value[low];
  const int32_t j = top.index[low];
  top.value[low] = top.value[last];
  top.index[low] = top.index[last];
  top.value[last] = v;
  top.index[last] = j;
}

// Into the descending list of the k best so far.
template <class T> inline void insert(Top<T>& top, int64_t k, T v, int32_t j) {
  int64_t p = top.count < k ? top.count++ : k - 1;
  for (; p > 0 && top.value[p - 1] < v; --p) {
    top.value[p] = top.value[p - 1];
    top.index[p] = top.index[p - 1];
  }
  top.value[p] = v;
  top.index[p] = j;
}

// Visit every entry above `threshold` (which the visit may raise) in order; x is padded with -inf.
template <class T, class F> inline void for_each_above(const T* x, int64_t n_padded, T& threshold, F&& visit) {
  constexpr int W = kWidth<T>;
  for (int64_t j = 0; j < n_padded; j += 4 * W) {
    const Vec<T> t = splat(threshold);
    const Int<T> hit[4] = {load(x + j) > t, load(x + j + W) > t, load(x + j + 2 * W) > t, load(x + j + 3 * W) > t};
    if (!bits<T>(hit[0] | hit[1] | hit[2] | hit[3])) continue;
    for (int q = 0; q < 4; ++q)
      for (unsigned m = bits<T>(hit[q]); m; m &= m - 1) {
        const int64_t i = j + q * W + __builtin_ctz(m);
        if (x[i] > threshold) visit(i);
      }
  }
}

// A number that x, and nothing much smaller, is above; also where tiny numbers are flushed to 0.
template <class T> T just_below(T x) {
  constexpr T tiny = std::numeric_limits<T>::min();
  return std::fabs(x) > tiny ? std::nextafter(x, kMinusInf<T>) : -2 * tiny;
}

// The k-th largest of these vectors' numbers: for each how many are larger, all at once.
template <int Parts, class T> T kth_among(const Vec<T>* part, int64_t k) {
  constexpr int W = kWidth<T>;
  alignas(64) T flat[Parts * W];
  std::memcpy(flat, part, sizeof flat);
  Int<T> larger[Parts] = {};
  for (int i = 0; i < Parts * W; ++i) {
    const Vec<T> one = splat(flat[i]);
    for (int q = 0; q < Parts; ++q) larger[q] -= one > part[q];
  }
  Vec<T> least = splat(std::numeric_limits<T>::infinity());  // of those that fewer than k are larger than
  const Vec<T> none = least;
  for (int q = 0; q < Parts; ++q) {
    const Vec<T> among = larger[q] < Whole<T>(k) ? part[q] : none;
    least = among < least ? among : least;
  }
  T out = least[0];
  for (int l = 1; l < W; ++l) out = least[l] < out ? least[l] : out;
  return out;
}

// The k-th largest of the peaks, or of the larger of each four where those are many beside k: hardly more entries pass it.
template <class T> T kth_peak(const Peaks<T>& peaks, int64_t k) {
  if (2 * k > kWidth<T>) return kth_among<4, T>(peaks.part, k);
  const Vec<T> larger = greater<T>(greater<T>(peaks.part[0], peaks.part[1]), greater<T>(peaks.part[2], peaks.part[3]));
  return kth_among<1, T>(&larger, k);
}

constexpr int64_t kFewPass = 96;  // entries above the threshold that are ranked at once
constexpr int32_t kFree = -1;     // a place in the list that no label has yet

template <class T> void select_by_peaks(const T* x, int64_t n_padded, int64_t k, const Peaks<T>& peaks, Top<T>& top) {
  constexpr int W = kWidth<T>;
  // k entries reach the k-th largest peak; what does not is not among the k largest
  T threshold = just_below(kth_peak(peaks, k));
  alignas(64) T value[kFewPass + 4 * W];
  int32_t index[kFewPass + 4 * W];
  int64_t count = 0, j = 0;
  const Vec<T> bar = splat(threshold);
  while (j < n_padded && count <= kFewPass) {
    // first where some pass, without a branch: nobody could foresee which way it goes
    uint64_t passed[32];
    int64_t place[32], places = 0;
    for (const int64_t end = j + 32 * 4 * W; j < end && j < n_padded; j += 4 * W) {
      uint64_t hits = 0;
      for (int q = 0; q < 4; ++q) hits |= uint64_t(bits_above<T>(load(x + j + q * W), bar)) << (q * W);
      passed[places] = hits;
      place[places] = j;
      places += hits != 0;
    }
    for (int64_t p = 0; p < places && count <= kFewPass; ++p)
      for (uint64_t hits = passed[p]; hits; hits &= hits - 1) {
        const int64_t i = place[p] + __builtin_ctzll(hits);
        value[count] = x[i];
        index[count++] = int32_t(i);
      }
  }
  if (count <= kFewPass) {
    for (int64_t i = count; i % W; ++i) value[i] = kMinusInf<T>;
    fill(top.index, k + 1, kFree);
    for (int64_t i = 0; i < count; i += W) {
      const Vec<T> own = load(value + i);
      Int<T> larger{};
      for (int64_t h = 0; h < count; ++h) larger -= splat(value[h]) > own;
      for (int64_t l = 0; l < W && i + l < count; ++l) {
        int64_t rank = larger[l] < k ? larger[l] : k;  // k: none of them, and written over
        while (top.index[rank] != kFree) ++rank;  // a tie: the earlier one has this place
        top.value[rank] = value[i + l];
        top.index[rank] = rank < k ? index[i + l] : kFree;
      }
    }
    top.count = count < k ? count : k;
    return;
  }
  for_each_above(x, n_padded, threshold, [&](int64_t i) {  // many ties, or all large entries in one part
    insert(top, k, x[i], int32_t(i));
    if (top.count == k) threshold = top.smallest();
  });
}

struct Counts {
  int64_t greater = 0, equal = 0;
};

template <class T> Counts count_against(const T* x, int64_t n_padded, T pivot) {
  constexpr int W = kWidth<T>;
  Counts out;
  const Vec<T> p = splat(pivot);
  for (int64_t start = 0; start < n_padded; start += int64_t(1) << 20) {  // lane counters stay far from overflow
    const int64_t end = start + (int64_t(1) << 20) < n_padded ? start + (int64_t(1) << 20) : n_padded;
    Int<T> greater{}, equal{};
    for (int64_t j = start; j < end; j += W) {
      greater -= load(x + j) > p;
      equal -= load(x + j) == p;
    }
    for (int i = 0; i < W; ++i) {
      out.greater += greater[i];
      out.equal += equal[i];
    }
  }
  return out;
}

// The entries between two numbers, in order, into `out`, which may be x itself; returns how many.
template <class T> int64_t keep_between(const T* x, int64_t n_padded, T low, T high, T* out) {
  constexpr int W = kWidth<T>;
  int64_t count = 0;
  for (int64_t j = 0; j < n_padded; j += 4 * W) {
    Int<T> hit[4];
    for (int q = 0; q < 4; ++q) {
      const Vec<T> v = load(x + j + q * W);
      hit[q] = (v > low) & (v < high);
    }
    if (!bits<T>(hit[0] | hit[1] | hit[2] | hit[3])) continue;
    for (int q = 0; q < 4; ++q)
      for (unsigned m = bits<T>(hit[q]); m; m &= m - 1) out[count++] = x[j + q * W + __builtin_ctz(m)];
  }
  return count;
}

// The number halfway between two in the order of the type's numbers: 32 or 64 of these steps end any search.
template <class T> T halfway(T low, T high) {
  using I = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  using U = std::make_unsigned_t<I>;
  constexpr I most = std::numeric_limits<I>::max();
  const auto key = [](T x) {
    I bits;
    std::memcpy(&bits, &x, sizeof x);
    return bits < 0 ? I(bits ^ most) : bits;
  };
  const I a = key(low), b = key(high), middle = I(a + I((U(b) - U(a)) / 2)), bits = middle < 0 ? I(middle ^ most) : middle;
  T out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}

inline int64_t& looked_at() {  // entries read by this thread's searches: what the tests count instead of seconds
  static thread_local int64_t entries = 0;
  return entries;
}

// Linear in any order of the entries: what is left of the row is copied together when it has become a small part, so that
// draws are even and rounds shorter; and a round whose draws were unlucky is followed by one that halves the interval.
template <class T> void select_by_counting(const T* x, int64_t n_padded, int64_t k, Top<T>& top) {
  static thread_local Scratch memory;
  T low = kMinusInf<T>, high = std::numeric_limits<T>::infinity();  // more than k above low, fewer than k from high on
  int64_t from_high = 0, above_low = count_against(x, n_padded, low).greater, ties = 0;
  const T* left = x;  // holds everything between low and high
  int64_t size = n_padded, before = 0;  // `before`: entries from high on that it no longer holds
  bool unlucky = false;
  uint32_t random = 12345;
  looked_at() += n_padded;
  for (int64_t inside; above_low > k && (inside = above_low - from_high) > 48;) {
    if (inside * 32 < size) {
      T* kept = left == x ? memory.get<T>(padded(inside)) : const_cast<T*>(left);
      const int64_t count = keep_between(left, size, low, high, kept);
      looked_at() += size;
      size = padded(inside);
      fill(kept + count, size - count, kMinusInf<T>);
      left = kept;
      before = from_high;
    }
    // of a few entries drawn from inside the interval, the one whose rank is about the rank wanted
    constexpr int draws = 7;
    T drawn[draws];
    int found = 0;
    for (int tries = 0; !unlucky && found < draws && tries < 32 * draws; ++tries) {
      random = random * 1664525u + 1013904223u;
      const T value = left[uint64_t(random) * uint64_t(size) >> 32];
      if (!(value > low && value < high)) continue;
      int p = found++;
      for (; p > 0 && drawn[p - 1] < value; --p) drawn[p] = drawn[p - 1];
      drawn[p] = value;
    }
    T pivot = found ? drawn[found * (k - from_high) / (inside + 1)] : halfway(low, high);
    if (!(pivot > low)) pivot = high;  // nothing between the two: there are infinite entries
    Counts n = count_against(left, size, pivot);
    n.greater += before;
    looked_at() += size;
    if (n.greater >= k) {
      low = pivot;
      above_low = n.greater;
    } else if (n.greater + n.equal < k) {
      high = pivot;
      from_high = n.greater + n.equal;
    } else {  // the k-th largest itself
      low = pivot;
      high = pivot;
      from_high = n.greater;
      ties = k - n.greater;
      break;
    }
    unlucky = found && (above_low - from_high) * 4 > inside * 3;
  }
  looked_at() += n_padded;
  if (above_low <= k) {  // no more than asked for: all of them
    for_each_above(x, n_padded, low, [&](int64_t i) {
      top.value[top.count] = x[i];
      top.index[top.count++] = int32_t(i);
    });
    if (top.count) sink_smallest(top);
    return;
  }
  // everything from high on, and the best of what lies between (or the first ties)
  Top<T> inside{top.value + from_high, top.index + from_high, 0, true};
  int64_t sure = 0;
  const int64_t wanted = k - from_high;
  T threshold = ties ? just_below(low) : low;
  for_each_above(x, n_padded, threshold, [&](int64_t i) {
    if (x[i] > high || (!ties && x[i] == high)) {
      top.value[sure] = x[i];
      top.index[sure++] = int32_t(i);
    } else if (ties ? x[i] == low && inside.count < wanted : inside.count < wanted || x[i] > inside.smallest()) {
      insert(inside, wanted, x[i], int32_t(i));
    }
  });
  top.count = sure + inside.count;
}

template <class T> constexpr int64_t kByPeaks = 3 * kWidth<T>;  // beyond, too many entries pass the threshold

// x: no NaN, padded with -inf, with its peaks. The result lives until the next call on this thread.
template <class T> Top<T> select_top(const T* x, int64_t n, int64_t k, const Peaks<T>& peaks) {
  if (k > n) k = n;
  static thread_local Scratch values, indices;
  Top<T> top{values.get<T>(padded(k + 1)), indices.get<int32_t>(padded(k + 1)), 0, k <= kByPeaks<T>};
  if (k <= 0) return top;
  if (top.sorted) select_by_peaks(x, padded(n), k, peaks, top);
  else select_by_counting(x, padded(n), k, top);
  return top;
}

// Take one label out of the k + 1 largest, or the smallest of them where the label is not among them.
template <class T> void drop(Top<T>& top, int64_t label, int64_t k) {
  int64_t at = 0;
  while (at < top.count && top.index[at] != label) ++at;
  if (at == top.count) {
    if (top.count > k) --top.count;
  } else {
    for (--top.count; at < top.count; ++at) {
      top.value[at] = top.value[at + 1];
      top.index[at] = top.index[at + 1];
    }
  }
  if (!top.sorted && top.count) sink_smallest(top);
}

}  // namespace SHORTLIST_ISA
