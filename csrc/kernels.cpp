// Compiled once per instruction set (SHORTLIST_ISA names it): instantiates the row kernels for float and double.
#include <cmath>

#include "asymmetric.h"
#include "average_k.h"
#include "binary.h"
#include "kernels.h"
#include "kth.h"
#include "lml.h"
#include "nonnegative.h"
#include "smooth_topk.h"
#include "subset_slope.h"
#include "truncated.h"
#include "two_way.h"
#include "warp.h"

#define SHORTLIST_JOIN_(a, b) a##b
#define SHORTLIST_JOIN(a, b) SHORTLIST_JOIN_(a, b)
#define SHORTLIST_TEXT_(a) #a
#define SHORTLIST_TEXT(a) SHORTLIST_TEXT_(a)

namespace shortlist {
namespace isa = SHORTLIST_ISA;

// f(T{}) with T the scores' type
template <class F> static void with_type(bool is_double, F&& f) {
  if (is_double) f(double{});
  else f(float{});
}

Kernels SHORTLIST_JOIN(kernels_, SHORTLIST_ISA)() {
  Kernels out;
  out.name = SHORTLIST_TEXT(SHORTLIST_ISA);
  out.smooth_topk = [](LossCall& call, int64_t k, double tau, double alpha) {
    with_type(call.is_double, [&](auto t) { isa::smooth_topk<decltype(t)>(call, k, tau, alpha); });
  };
  out.truncated_entropy = [](LossCall& call, int64_t k) {
    with_type(call.is_double, [&](auto t) { isa::truncated_entropy<decltype(t)>(call, k); });
  };
  out.lml_loss = [](LossCall& call, int64_t k, const int64_t* k_rows) {
    with_type(call.is_double, [&](auto t) { isa::lml_loss<decltype(t)>(call, k, k_rows); });
  };
  out.lml = [](bool is_double, const void* scores, int64_t rows, int64_t n, int64_t k, const int64_t* k_rows, void* p,
               double* frame, int threads) {
    with_type(is_double, [&](auto t) {
      using T = decltype(t);
      isa::lml(static_cast<const T*>(scores), rows, n, k, k_rows, static_cast<T*>(p), frame, threads);
    });
  };
  out.lml_backward = [](bool is_double, const void* scores, const void* p, const double* frame, const void* upstream,
                        int64_t rows, int64_t n, void* grad, int threads) {
    with_type(is_double, [&](auto t) {
      using T = decltype(t);
      isa::lml_backward(static_cast<const T*>(scores), static_cast<const T*>(p), frame,
                        static_cast<const T*>(upstream), rows, n, static_cast<T*>(grad), threads);
    });
  };
  out.subset_sums = [](bool is_double, const void* scores, int64_t rows, int64_t n, int64_t k, double* log_sum,
                       void* marginals, int threads) {
    with_type(is_double, [&](auto t) {
      using T = decltype(t);
      isa::subset_sums(static_cast<const T*>(scores), rows, n, k, log_sum, static_cast<T*>(marginals), threads);
    });
  };
  out.subset_slopes = [](bool is_double, const void* scores, const void* direction, int64_t rows, int64_t n, int64_t k,
                         void* slopes, int threads) {
    with_type(is_double, [&](auto t) {
      using T = decltype(t);
      isa::subset_slopes(static_cast<const T*>(scores), static_cast<const T*>(direction), rows, n, k,
                         static_cast<T*>(slopes), threads);
    });
  };
  out.kth_largest = [](bool is_double, const void* scores, const void* noise, double epsilon, int64_t rows, int64_t n,
                       int64_t k, void* values, int64_t* indices, int threads) {
    with_type(is_double, [&](auto t) {
      using T = decltype(t);
      isa::kth_largest(static_cast<const T*>(scores), static_cast<const T*>(noise), T(epsilon), rows, n, k,
                       static_cast<T*>(values), indices, threads);
    });
  };
  out.looked_at = [] { return isa::looked_at(); };
  out.nonnegative_fit = [](bool is_double, const void* target, const void* dictionary, const int64_t* picked,
                           double singular, int64_t rows, int64_t n, int64_t t, double* coefficients, void* residual,
                           int threads) {
    with_type(is_double, [&](auto type) {
      using T = decltype(type);
      isa::nonnegative_fit(static_cast<const T*>(target), static_cast<const T*>(dictionary), picked, singular, rows, n,
                           t, coefficients, static_cast<T*>(residual), threads);
    });
  };
  out.binary = [](LossCall& call, const void* pos_weight) {
    with_type(call.is_double, [&](auto t) { isa::binary(call, static_cast<const decltype(t)*>(pos_weight)); });
  };
  out.partial_binary = [](LossCall& call, double boost) {
    with_type(call.is_double, [&](auto t) { isa::partial_binary<decltype(t)>(call, boost); });
  };
  out.asymmetric = [](LossCall& call, double gamma_present, double gamma_absent, double gamma_assumed, double clip,
                      bool detach, int unknown_rule, int64_t likely, const uint8_t* frequent) {
    const isa::Focus focus{gamma_present, gamma_absent, gamma_assumed, clip, detach};
    with_type(call.is_double, [&](auto t) { isa::asymmetric<decltype(t)>(call, focus, unknown_rule, likely, frequent); });
  };
  out.pair_rows = [](LossCall& call, double present_temperature, double absent_temperature, double margin) {
    const isa::PairOptions options{present_temperature, absent_temperature, margin};
    with_type(call.is_double, [&](auto t) { isa::pair_rows<decltype(t)>(call, options); });
  };
  out.two_way = [](LossCall& call, double present_temperature, double absent_temperature, double margin,
                   bool sample_way, bool mean, int64_t groups, double* loss) {
    const isa::PairOptions options{present_temperature, absent_temperature, margin};
    with_type(call.is_double, [&](auto t) { isa::two_way<decltype(t)>(call, options, sample_way, mean, groups, loss); });
  };
  out.multilabel_softmax = [](LossCall& call) {
    with_type(call.is_double, [&](auto t) { isa::multilabel_softmax<decltype(t)>(call); });
  };
  out.warp = [](LossCall& call, const int64_t* seeds) {
    with_type(call.is_double, [&](auto t) { isa::warp<decltype(t)>(call, seeds); });
  };
  out.single_positive = [](LossCall& call, int64_t* index) { isa::single_positive(call, index); };
  out.assume_negative = [](LossCall& call, bool weighted, double smoothing) {
    with_type(call.is_double, [&](auto t) { isa::assume_negative<decltype(t)>(call, weighted, smoothing); });
  };
  out.average_k = [](AverageKCall& call) {
    with_type(call.is_double, [&](auto t) { isa::average_k<decltype(t)>(call); });
  };
  return out;
}

}  // namespace shortlist
