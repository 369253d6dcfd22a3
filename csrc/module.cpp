// The Python module: plain addresses in, results written in place. shortlist/kernels/ops.py calls it, and shortlist/sets what row_sets.h defines.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <new>
#include <string>
#include <utility>
#include <vector>

#include "fields.h"
#include "kernels.h"
#include "row_sets.h"

namespace nb = nanobind;
using namespace shortlist;

static std::vector<Kernels> available() {
  std::vector<Kernels> out;
#ifdef SHORTLIST_X86
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    out.push_back(kernels_avx512());
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) out.push_back(kernels_avx2());
#endif
  out.push_back(kernels_baseline());
  return out;
}

static const std::vector<Kernels> kAvailable = available();  // the best first
static const Kernels* usual = &kAvailable.front();  // of threads that have not chosen
static thread_local const Kernels* chosen = nullptr;
static const Kernels& active() { return chosen ? *chosen : *usual; }

void shortlist::out_of_memory() { throw std::bad_alloc(); }

static const Kernels* find(const std::string& name) {
  for (const Kernels& k : kAvailable)
    if (name == k.name) return &k;
  throw nb::value_error(("this machine has no kernels for '" + name + "'").c_str());
}

// Adds up rows into groups. mean: divided by the weight observed, 0 where there is none. Returns the first group's scale.
template <class T> static double reduce(const LossCall& call, char reduction, T* loss, T* scale) {
  if (reduction == 'n') {
    for (int64_t row = 0; row < call.rows; ++row) loss[row] = T(call.row_loss[row] * call.row_weight[row]);
    return 1;
  }
  const int64_t size = call.groups ? call.rows / call.groups : 0;
  double first = 1;
  for (int64_t g = 0; g < call.groups; ++g) {
    double sum = 0, weight = 0;
    for (int64_t row = g * size; row < (g + 1) * size; ++row) {
      if (call.row_weight[row] > 0) sum += call.row_loss[row] * call.row_weight[row];
      weight += call.row_weight[row];
    }
    const double one = call.mean ? (weight > 0 ? 1 / weight : 0.0) : 1.0, left = T(call.complete ? 1.0 : one);
    loss[g] = T(weight > 0 ? sum * one : 0.0);
    if (scale) scale[g] = T(left);
    if (g == 0) first = left;
  }
  return first;
}

// The same where the kernel has reduced its groups itself.
template <class T> static double copy_groups(const LossCall& call, T* loss, T* scale) {
  for (int64_t g = 0; g < call.groups; ++g) {
    loss[g] = T(call.group_loss[g]);
    if (scale) scale[g] = 1;
  }
  return 1;
}

// 1 / the weight observed in each group of rows with class indices: a mean's divisor, before the rows are computed.
static void mean_shares(const LossCall& call, double* out) {
  const int64_t size = call.rows / call.groups;
  const int64_t* index = static_cast<const int64_t*>(call.target);
  const double* wide = call.is_double ? static_cast<const double*>(call.weight) : nullptr;
  const float* narrow = call.is_double ? nullptr : static_cast<const float*>(call.weight);
  for (int64_t g = 0; g < call.groups; ++g) {
    double total = 0;
    for (int64_t row = g * size; row < (g + 1) * size; ++row)
      if (index[row] >= 0 && index[row] < call.n) total += wide ? wide[row] : narrow ? double(narrow[row]) : 1.0;
    out[g] = total > 0 ? 1 / total : 0;
  }
}

// Returns the position of the first bad target value (-1: none), and the first group's scale.
template <class Options>
static std::pair<int64_t, double> run_loss(const LossArguments& a, LossKernel<Options> kernel, const Options& options,
                                           bool couples_rows) {
  std::vector<double> memory(2 * (a.rows + a.groups));
  double *row_loss = memory.data(), *row_weight = row_loss + a.rows, *group_loss = row_weight + a.rows;
  LossCall call{a.is_double, a.rows,  a.n,       a.groups, a.scores,   a.target,   a.target_kind, a.weight,
                a.reduction == 'm', a.grad, a.threads, row_loss, row_weight, group_loss, nullptr, nullptr};
  if (call.mean && call.grad && call.groups && call.target_kind == kIndices) {
    mean_shares(call, group_loss + a.groups);
    call.shares = group_loss + a.groups;
  }
  const bool sparse = call.target_kind == kSparse32 || call.target_kind == kSparse64;
  if (call.mean && !a.scale && call.grad && call.groups && sparse) call.unknown_shares = group_loss + a.groups;
  kernel(call, options);
  const auto results = [&]<class T>(T*) {
    T *loss = static_cast<T*>(a.loss), *scale = static_cast<T*>(a.scale);
    return couples_rows ? copy_groups(call, loss, scale) : reduce(call, a.reduction, loss, scale);
  };
  const double scale = a.is_double ? results(static_cast<double*>(nullptr)) : results(static_cast<float*>(nullptr));
  return {call.bad, scale};
}

using unlocked = nb::call_guard<nb::gil_scoped_release>;

// A loss in Python takes the fields of LossArguments, then those of its options.
template <class Options>
static void def_loss(nb::module_& m, const char* name, LossKernel<Options> Kernels::*kernel, bool couples_rows = false) {
  [&]<class... A, class... O>(Types<A...>, Types<O...>) {
    m.def(name, [=](Argument<A>... arguments, Argument<O>... options) {
      return run_loss<Options>(LossArguments{from_argument<A>(arguments)...}, active().*kernel,
                               Options{from_argument<O>(options)...}, couples_rows);
    }, unlocked());
  }(FieldTypes<LossArguments>(), FieldTypes<Options>());
}

// Another function of rows takes the fields of Rows, then those of its call.
template <class Call, class Result>
static void def_rows(nb::module_& m, const char* name, Result (*Kernels::*kernel)(const Rows&, const Call&)) {
  [&]<class... R, class... C>(Types<R...>, Types<C...>) {
    m.def(name, [=](Argument<R>... rows, Argument<C>... call) {
      return (active().*kernel)(Rows{from_argument<R>(rows)...}, Call{from_argument<C>(call)...});
    }, unlocked());
  }(FieldTypes<Rows>(), FieldTypes<Call>());
}

NB_MODULE(_native, m) {
  m.def("isas", [] {
    std::vector<std::string> names;
    for (const Kernels& k : kAvailable) names.push_back(k.name);
    return names;
  });
  m.def("isa", [] { return std::string(active().name); });
  m.def("use_isa", [](const std::string& name) { chosen = find(name); });  // in this thread
  m.def("use_isa_usually", [](const std::string& name) { usual = find(name); });
  m.def("looked_at", [] { return active().looked_at(); });
  m.attr("sparse_targets") = true;  // this build reads a SparseTarget
  def_loss(m, "smooth_topk", &Kernels::smooth_topk);
  def_loss(m, "assume_negative", &Kernels::assume_negative);
  def_loss(m, "truncated_entropy", &Kernels::truncated_entropy);
  def_loss(m, "lml_loss", &Kernels::lml_loss);
  def_loss(m, "binary", &Kernels::binary);
  def_loss(m, "partial_binary", &Kernels::partial_binary);
  def_loss(m, "asymmetric", &Kernels::asymmetric);
  def_loss(m, "pair_rows", &Kernels::pair_rows);
  def_loss(m, "two_way", &Kernels::two_way, true);
  def_loss(m, "multilabel_softmax", &Kernels::multilabel_softmax);
  def_loss(m, "warp", &Kernels::warp);
  def_loss(m, "rml", &Kernels::rml);
  def_rows(m, "lml", &Kernels::lml);
  def_rows(m, "lml_backward", &Kernels::lml_backward);
  def_rows(m, "subset_sums", &Kernels::subset_sums);
  def_rows(m, "subset_slopes", &Kernels::subset_slopes);
  def_rows(m, "kth_largest", &Kernels::kth_largest);
  def_rows(m, "nonnegative_fit", &Kernels::nonnegative_fit);
  def_rows(m, "average_k", &Kernels::average_k);
  def_rows(m, "exp_or_log", &Kernels::exp_or_log);
  def_rows(m, "single_positive", &Kernels::single_positive);
  define_row_sets(m);
}
