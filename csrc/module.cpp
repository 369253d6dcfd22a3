// The Python module: plain addresses in, results written in place. shortlist/kernels/ops.py is its only caller.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <new>
#include <string>
#include <vector>

#include "kernels.h"

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

template <class T> static T* at(uintptr_t address) { return reinterpret_cast<T*>(address); }

// Adds up rows into `groups` losses. mean: divided by the weight observed, 0 where there is none.
// loss: one per group (or per row for "none"); scale: what a group's gradient has yet to be multiplied by.
template <class T> static void reduce(const LossCall& call, int64_t groups, char reduction, T* loss, T* scale) {
  if (reduction == 'n') {
    for (int64_t row = 0; row < call.rows; ++row) loss[row] = T(call.row_loss[row] * call.row_weight[row]);
    return;
  }
  const int64_t size = groups ? call.rows / groups : 0;
  for (int64_t g = 0; g < groups; ++g) {
    double sum = 0, weight = 0;
    for (int64_t row = g * size; row < (g + 1) * size; ++row) {
      if (call.row_weight[row] > 0) sum += call.row_loss[row] * call.row_weight[row];
      weight += call.row_weight[row];
    }
    const double one = reduction == 'm' ? (weight > 0 ? 1 / weight : 0.0) : 1.0;
    loss[g] = T(weight > 0 ? sum * one : 0.0);
    scale[g] = T(call.complete ? 1.0 : one);
  }
}

// 1 / the weight observed in each group of rows with class indices: a mean's divisor, before the rows are computed.
static std::vector<double> mean_shares(const LossCall& call, int64_t groups) {
  std::vector<double> out(groups);
  const int64_t size = groups ? call.rows / groups : 0;
  const int64_t* index = static_cast<const int64_t*>(call.target);
  const double* wide = call.is_double ? static_cast<const double*>(call.weight) : nullptr;
  const float* narrow = call.is_double ? nullptr : static_cast<const float*>(call.weight);
  for (int64_t g = 0; g < groups; ++g) {
    double total = 0;
    for (int64_t row = g * size; row < (g + 1) * size; ++row)
      if (index[row] >= 0 && index[row] < call.n) total += wide ? wide[row] : narrow ? double(narrow[row]) : 1.0;
    out[g] = total > 0 ? 1 / total : 0;
  }
  return out;
}

struct Addresses {
  bool is_double;
  int64_t rows, n;
  uintptr_t scores, target;
  int target_kind;
  uintptr_t weight, loss, scale, grad;
  int64_t groups;
  char reduction;
  int threads;
};

template <class F> static int64_t run_loss(const Addresses& a, F&& kernel) {
  std::vector<double> memory(2 * a.rows);
  LossCall call{a.is_double, a.rows, a.n, at<void>(a.scores), at<void>(a.target), a.target_kind, at<void>(a.weight),
                memory.data(), memory.data() + a.rows, at<void>(a.grad), a.threads};
  std::vector<double> shares;
  if (a.reduction == 'm' && a.target_kind == kIndices && a.grad && a.groups) {
    shares = mean_shares(call, a.groups);
    call.shares = shares.data();
    call.group_rows = a.rows / a.groups;
  }
  kernel(call);
  if (a.is_double) reduce(call, a.groups, a.reduction, at<double>(a.loss), at<double>(a.scale));
  else reduce(call, a.groups, a.reduction, at<float>(a.loss), at<float>(a.scale));
  return call.bad;
}

// The same for a loss that couples the rows of a batch and reduces them itself: kernel(call, one loss per group).
template <class F> static int64_t run_batches(const Addresses& a, F&& kernel) {
  std::vector<double> memory(a.rows + a.groups);
  LossCall call{a.is_double, a.rows, a.n, at<void>(a.scores), at<void>(a.target), a.target_kind, at<void>(a.weight),
                memory.data(), nullptr, at<void>(a.grad), a.threads};
  const double* loss = memory.data() + a.rows;
  kernel(call, memory.data() + a.rows);
  for (int64_t g = 0; g < a.groups; ++g) {
    if (a.is_double) at<double>(a.loss)[g] = loss[g], at<double>(a.scale)[g] = 1;
    else at<float>(a.loss)[g] = float(loss[g]), at<float>(a.scale)[g] = 1;
  }
  return call.bad;
}

// Arguments shared by every loss, in this order; each returns the position of a bad target value, or -1.
#define LOSS_PARAMETERS                                                                                             \
  bool is_double, int64_t rows, int64_t n, uintptr_t scores, uintptr_t target, int target_kind, uintptr_t weight,   \
      uintptr_t loss, uintptr_t scale, uintptr_t grad, int64_t groups, char reduction, int threads
#define LOSS_ARGUMENTS \
  Addresses { is_double, rows, n, scores, target, target_kind, weight, loss, scale, grad, groups, reduction, threads }

NB_MODULE(_native, m) {
  using unlocked = nb::call_guard<nb::gil_scoped_release>;
  m.def("isas", [] {
    std::vector<std::string> names;
    for (const Kernels& k : kAvailable) names.push_back(k.name);
    return names;
  });
  m.def("isa", [] { return std::string(active().name); });
  m.def("use_isa", [](const std::string& name) { chosen = find(name); });  // in this thread
  m.def("use_isa_usually", [](const std::string& name) { usual = find(name); });
  m.def("smooth_topk", [](LOSS_PARAMETERS, int64_t k, double tau, double alpha) {
    return run_loss(LOSS_ARGUMENTS, [&](LossCall& call) { active().smooth_topk(call, k, tau, alpha); });
  }, unlocked());
  m.def("truncated_entropy", [](LOSS_PARAMETERS, int64_t k) {
    return run_loss(LOSS_ARGUMENTS, [&](LossCall& call) { active().truncated_entropy(call, k); });
  }, unlocked());
  m.def("lml_loss", [](LOSS_PARAMETERS, int64_t k, uintptr_t k_rows) {
    return run_loss(LOSS_ARGUMENTS, [&](LossCall& call) { active().lml_loss(call, k, at<int64_t>(k_rows)); });
  }, unlocked());
  m.def("lml", [](bool is_double, uintptr_t scores, int64_t rows, int64_t n, int64_t k, uintptr_t k_rows, uintptr_t p,
                  uintptr_t frame, int threads) {
    active().lml(is_double, at<void>(scores), rows, n, k, at<int64_t>(k_rows), at<void>(p), at<double>(frame), threads);
  }, unlocked());
  m.def("lml_backward", [](bool is_double, uintptr_t scores, uintptr_t p, uintptr_t frame, uintptr_t upstream,
                           int64_t rows, int64_t n, uintptr_t grad, int threads) {
    active().lml_backward(is_double, at<void>(scores), at<void>(p), at<double>(frame), at<void>(upstream), rows, n,
                        at<void>(grad), threads);
  }, unlocked());
  m.def("subset_sums", [](bool is_double, uintptr_t scores, int64_t rows, int64_t n, int64_t k, uintptr_t log_sum,
                          uintptr_t marginals, int threads) {
    active().subset_sums(is_double, at<void>(scores), rows, n, k, at<double>(log_sum), at<void>(marginals), threads);
  }, unlocked());
  m.def("subset_slopes", [](bool is_double, uintptr_t scores, uintptr_t direction, int64_t rows, int64_t n, int64_t k,
                            uintptr_t slopes, int threads) {
    active().subset_slopes(is_double, at<void>(scores), at<void>(direction), rows, n, k, at<void>(slopes), threads);
  }, unlocked());
  m.def("kth_largest", [](bool is_double, uintptr_t scores, uintptr_t noise, double epsilon, int64_t rows, int64_t n,
                          int64_t k, uintptr_t values, uintptr_t indices, int threads) {
    active().kth_largest(is_double, at<void>(scores), at<void>(noise), epsilon, rows, n, k, at<void>(values),
                       at<int64_t>(indices), threads);
  }, unlocked());
  m.def("looked_at", [] { return active().looked_at(); });
  m.def("nonnegative_fit", [](bool is_double, uintptr_t target, uintptr_t dictionary, uintptr_t picked, double singular,
                              int64_t rows, int64_t n, int64_t t, uintptr_t coefficients, uintptr_t residual,
                              int threads) {
    active().nonnegative_fit(is_double, at<void>(target), at<void>(dictionary), at<int64_t>(picked), singular, rows, n, t,
                           at<double>(coefficients), at<void>(residual), threads);
  }, unlocked());
  m.def("binary", [](LOSS_PARAMETERS, uintptr_t pos_weight) {
    return run_loss(LOSS_ARGUMENTS, [&](LossCall& call) { active().binary(call, at<void>(pos_weight)); });
  }, unlocked());
  m.def("partial_binary", [](LOSS_PARAMETERS, double boost) {
    return run_loss(LOSS_ARGUMENTS, [&](LossCall& call) { active().partial_binary(call, boost); });
  }, unlocked());
  m.def("asymmetric", [](LOSS_PARAMETERS, double gamma_present, double gamma_absent, double gamma_assumed, double clip,
                         bool detach, int unknown_rule, int64_t likely, uintptr_t frequent) {
    return run_loss(LOSS_ARGUMENTS, [&](LossCall& call) {
      active().asymmetric(call, gamma_present, gamma_absent, gamma_assumed, clip, detach, unknown_rule, likely,
                        at<uint8_t>(frequent));
    });
  }, unlocked());
  m.def("pair_rows", [](LOSS_PARAMETERS, double present_temperature, double absent_temperature, double margin) {
    return run_loss(LOSS_ARGUMENTS, [&](LossCall& call) {
      active().pair_rows(call, present_temperature, absent_temperature, margin);
    });
  }, unlocked());
  m.def("two_way", [](LOSS_PARAMETERS, double present_temperature, double absent_temperature, double margin,
                      bool sample_way) {
    return run_batches(LOSS_ARGUMENTS, [&](LossCall& call, double* batch_loss) {
      active().two_way(call, present_temperature, absent_temperature, margin, sample_way, reduction == 'm', groups,
                     batch_loss);
    });
  }, unlocked());
  m.def("multilabel_softmax", [](LOSS_PARAMETERS) {
    return run_loss(LOSS_ARGUMENTS, [&](LossCall& call) { active().multilabel_softmax(call); });
  }, unlocked());
  m.def("warp", [](LOSS_PARAMETERS, uintptr_t seeds) {
    return run_loss(LOSS_ARGUMENTS, [&](LossCall& call) { active().warp(call, at<int64_t>(seeds)); });
  }, unlocked());
  m.def("assume_negative", [](LOSS_PARAMETERS, bool weighted, double smoothing) {
    return run_loss(LOSS_ARGUMENTS, [&](LossCall& call) { active().assume_negative(call, weighted, smoothing); });
  }, unlocked());
  m.def("single_positive", [](int64_t rows, int64_t n, uintptr_t target, int target_kind, uintptr_t index, int threads) {
    LossCall call{};
    call.rows = rows;
    call.n = n;
    call.target = at<void>(target);
    call.target_kind = target_kind;
    call.threads = threads;
    active().single_positive(call, at<int64_t>(index));
    return call.bad;
  }, unlocked());
  m.def("average_k", [](bool is_double, int64_t rows, int64_t n, int64_t groups, uintptr_t scores, uintptr_t proposals,
                        uintptr_t index, uintptr_t weight, double k, double alpha, bool mean, uintptr_t loss,
                        uintptr_t set_grad, uintptr_t proposal_grad, int threads) {
    AverageKCall call{is_double, rows, n, groups, at<void>(scores), at<void>(proposals), at<int64_t>(index),
                      at<void>(weight), k, alpha, mean, at<void>(loss), at<void>(set_grad), at<void>(proposal_grad),
                      threads};
    active().average_k(call);
  }, unlocked());
}
