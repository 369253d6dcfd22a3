#include "row_sets.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace nb = nanobind;

namespace {

using Row = const float*;

// What is found of a row, until it is copied into bytes of its own size. One for each thread: nothing is allocated twice.
std::vector<int32_t>& scratch_labels() {
  static thread_local std::vector<int32_t> labels;
  labels.clear();
  return labels;
}

nb::object as_bytes(const std::vector<int32_t>& labels) {
  return nb::bytes(labels.data(), labels.size() * sizeof(int32_t));
}

// The labels whose number is at least the threshold, one for all labels or one for each. With at_ties false, a number
// that is the threshold wants a closer look.
template <class Threshold> nb::object reaching(Row row, int64_t n, Threshold threshold, bool at_ties) {
  std::vector<int32_t>& labels = scratch_labels();
  bool look = false;
  for (int64_t i = 0; i < n; ++i) {
    const double value = row[i], wanted = threshold(i);
    look |= value != value || (!at_ties && value == wanted);
    if (value >= wanted) labels.push_back(int32_t(i));
  }
  return look ? nb::none() : as_bytes(labels);
}

// The labels whose number is at least that on rank `size` (from 1), which no other rank may share.
nb::object first(Row row, int64_t n, int64_t size, float last) {
  std::vector<int32_t>& labels = scratch_labels();
  for (int64_t i = 0; i < n; ++i)
    if (row[i] >= last) labels.push_back(int32_t(i));
  return int64_t(labels.size()) == size ? as_bytes(labels) : nb::none();
}

// The row as a heap: its largest numbers come out one by one. False where a number is NaN.
bool fill_heap(Row row, int64_t n, std::vector<float>& heap) {
  heap.assign(row, row + n);
  for (const float value : heap)
    if (value != value) return false;
  std::make_heap(heap.begin(), heap.end());
  return true;
}

float pop(std::vector<float>& heap) {
  std::pop_heap(heap.begin(), heap.end());
  const float value = heap.back();
  heap.pop_back();
  return value;
}

thread_local std::vector<float> heap;

nb::object best(Row row, int64_t n, int64_t k) {
  if (k < 1 || k > n || !fill_heap(row, n, heap)) return nb::none();
  float last = 0;
  for (int64_t rank = 0; rank < k; ++rank) last = pop(heap);
  return first(row, n, k, last);
}

// The labels up to the last rank whose score is at most the limit. The score of rank r (from 0) is what the ranks before
// it amount to, plus steps[r] where there are steps: 'm', their sum; 'f', the first of them; 'n', nothing. It never falls.
nb::object first_ranks(Row row, int64_t n, char before, const double* steps, double limit) {
  if (!fill_heap(row, n, heap)) return nb::none();
  double amount = 0;
  float last = 0;
  int64_t size = 0;
  for (; size < n; ++size) {
    if (!(amount + (steps ? steps[size] : 0.0) <= limit)) break;
    last = pop(heap);
    if (before != 'n' && last < 0) return nb::none();  // no mass
    if (before == 'm' || (before == 'f' && size == 0)) amount += double(last);
  }
  if (before != 'n' && std::any_of(heap.begin(), heap.end(), [](float value) { return value < 0; })) return nb::none();
  return size ? first(row, n, size, last) : as_bytes(scratch_labels());
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
