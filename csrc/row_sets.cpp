#include "row_sets.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace nb = nanobind;

namespace {

using Row = const float*;

// What is found of a row, until it is copied into bytes of its own size. One for each thread: nothing is allocated twice.
// A label is written whether it is in the set or not, and the next one takes its place if it is not: whether it is cannot
// be guessed, and a wrong guess takes longer.
class Found {
 public:
  explicit Found(int64_t n) {
    if (int64_t(space().size()) < n) space().resize(n);
    labels_ = space().data();
  }
  void see(int64_t label, bool inside) {
    labels_[size_] = int32_t(label);
    size_ += inside;
  }
  int64_t size() const { return size_; }
  nb::object bytes() const { return nb::bytes(labels_, size_ * sizeof(int32_t)); }

 private:
  static std::vector<int32_t>& space() {
    static thread_local std::vector<int32_t> labels;
    return labels;
  }
  int32_t* labels_;
  int64_t size_ = 0;
};

// The labels whose number is at least the threshold, one for all labels or one for each. With at_ties false, a number
// that is the threshold wants a closer look.
template <class Threshold> nb::object reaching(Row row, int64_t n, Threshold threshold, bool at_ties) {
  Found found(n);
  bool nan = false, tied = false;
  for (int64_t i = 0; i < n; ++i) {
    const double value = row[i], wanted = threshold(i);
    nan |= value != value;
    tied |= value == wanted;
    found.see(i, value >= wanted);
  }
  return nan || (tied && !at_ties) ? nb::none() : found.bytes();
}

// The labels whose number is at least that on rank `size` (from 1), which no other rank may share.
nb::object first(Row row, int64_t n, int64_t size, float last) {
  Found found(n);
  for (int64_t i = 0; i < n; ++i) found.see(i, row[i] >= last);
  return found.size() == size ? found.bytes() : nb::none();
}

// A copy of the row, to be put in order. False where a number is NaN.
bool read(Row row, int64_t n, std::vector<float>& numbers) {
  numbers.assign(row, row + n);
  bool nan = false;
  for (const float value : numbers) nan |= value != value;
  return !nan;
}

// The numbers of a row, the largest first, one by one. A heap gives the first few of many without sorting the others;
// if they do not suffice, what is left is sorted.
class Ranked {
 public:
  explicit Ranked(std::vector<float>& numbers) : numbers_(numbers) {
    const int64_t n = numbers.size();
    from_heap_ = n > SORTED_AT_ONCE ? n / 16 : 0;
    if (from_heap_)
      std::make_heap(numbers_.begin(), numbers_.end());
    else
      std::sort(numbers_.begin(), numbers_.end());
  }

  float next() {
    if (from_heap_) {
      std::pop_heap(numbers_.begin(), numbers_.end());
      if (--from_heap_ == 0) std::sort(numbers_.begin(), numbers_.end() - 1);
    }
    const float value = numbers_.back();
    numbers_.pop_back();
    return value;
  }

 private:
  static constexpr int64_t SORTED_AT_ONCE = 256;
  std::vector<float>& numbers_;
  int64_t from_heap_;  // how many more the heap gives
};

nb::object best(Row row, int64_t n, int64_t k) {
  static thread_local std::vector<float> numbers;
  if (k < 1 || k > n || !read(row, n, numbers)) return nb::none();
  const auto last = numbers.begin() + (k - 1);
  std::nth_element(numbers.begin(), last, numbers.end(), std::greater<float>());
  return first(row, n, k, *last);
}

// The labels up to the last rank whose score is at most the limit. The score of rank r (from 0) is what the ranks before
// it amount to, plus steps[r] where there are steps: 'm', their sum; 'f', the first of them; 'n', nothing. It never falls.
nb::object first_ranks(Row row, int64_t n, char before, const double* steps, double limit) {
  static thread_local std::vector<float> numbers;
  if (!read(row, n, numbers)) return nb::none();
  if (before != 'n' && std::any_of(row, row + n, [](float value) { return value < 0; })) return nb::none();  // no mass
  Ranked ranked(numbers);
  double amount = 0;
  float last = 0;
  int64_t size = 0;
  for (; size < n; ++size) {
    if (!(amount + (steps ? steps[size] : 0.0) <= limit)) break;
    last = ranked.next();
    if (before == 'm' || (before == 'f' && size == 0)) amount += double(last);
  }
  return size ? first(row, n, size, last) : Found(0).bytes();
}

// Numbers that Python passes: an address, an array that has this many of them, or None.
template <class T> class Numbers {
 public:
  Numbers(nb::handle given, int64_t n) {
    if (PyLong_CheckExact(given.ptr())) {
      numbers_ = reinterpret_cast<const T*>(nb::cast<uintptr_t>(given));
    } else if (!given.is_none()) {
      if (PyObject_GetBuffer(given.ptr(), &buffer_, PyBUF_C_CONTIGUOUS) != 0) throw nb::python_error();
      held_ = true;
      if (buffer_.len != Py_ssize_t(n * sizeof(T))) {
        PyBuffer_Release(&buffer_);
        throw nb::value_error("an array has another length or type than the row");
      }
      numbers_ = static_cast<const T*>(buffer_.buf);
    }
  }
  ~Numbers() {
    if (held_) PyBuffer_Release(&buffer_);
  }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  operator const T*() const { return numbers_; }

 private:
  const T* numbers_ = nullptr;
  Py_buffer buffer_{};
  bool held_ = false;
};

}  // namespace

void shortlist::define_row_sets(nb::module_& m) {
  m.def("row_reaching", [](nb::handle row, int64_t n, double threshold, bool at_ties) {
    return reaching(Numbers<float>(row, n), n, [=](int64_t) { return threshold; }, at_ties);
  });
  m.def("row_reaching_each", [](nb::handle row, int64_t n, nb::handle thresholds) {
    const Numbers<double> own(thresholds, n);
    return reaching(Numbers<float>(row, n), n, [&](int64_t label) { return own[label]; }, true);
  });
  m.def("row_best", [](nb::handle row, int64_t n, int64_t k) { return best(Numbers<float>(row, n), n, k); });
  m.def("row_first_ranks", [](nb::handle row, int64_t n, char before, nb::handle steps, double limit) {
    return first_ranks(Numbers<float>(row, n), n, before, Numbers<double>(steps, n), limit);
  }, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
}
