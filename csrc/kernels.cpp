// Compiled once per instruction set (SHORTLIST_ISA names it): instantiates the row kernels for float and double.
#include <cmath>

#include "kernels.h"

#include "asymmetric.h"
#include "average_k.h"
#include "binary.h"
#include "kth_largest.h"
#include "lml.h"
#include "nonnegative_fit.h"
#include "rml.h"
#include "smooth_topk.h"
#include "subset_slopes.h"
#include "truncated_entropy.h"
#include "two_way.h"
#include "warp.h"

#define SHORTLIST_JOIN_(a, b) a##b
#define SHORTLIST_JOIN(a, b) SHORTLIST_JOIN_(a, b)
#define SHORTLIST_TEXT_(a) #a
#define SHORTLIST_TEXT(a) SHORTLIST_TEXT_(a)

// A kernel that is a template of the scores' type, as an entry of the table.
#define SHORTLIST_KERNEL(kernel)                              \
  out.kernel = [](auto& rows, const auto& call) {             \
    if (rows.is_double) isa::kernel<double>(rows, call);      \
    else isa::kernel<float>(rows, call);                      \
  }

namespace shortlist {
namespace isa = SHORTLIST_ISA;

Kernels SHORTLIST_JOIN(kernels_, SHORTLIST_ISA)() {
  Kernels out;
  out.name = SHORTLIST_TEXT(SHORTLIST_ISA);
  SHORTLIST_KERNEL(smooth_topk);
  SHORTLIST_KERNEL(assume_negative);
  SHORTLIST_KERNEL(truncated_entropy);
  SHORTLIST_KERNEL(lml_loss);
  SHORTLIST_KERNEL(binary);
  SHORTLIST_KERNEL(partial_binary);
  SHORTLIST_KERNEL(asymmetric);
  SHORTLIST_KERNEL(pair_rows);
  SHORTLIST_KERNEL(two_way);
  SHORTLIST_KERNEL(multilabel_softmax);
  SHORTLIST_KERNEL(warp);
  SHORTLIST_KERNEL(rml);
  SHORTLIST_KERNEL(lml);
  SHORTLIST_KERNEL(lml_backward);
  SHORTLIST_KERNEL(subset_sums);
  SHORTLIST_KERNEL(subset_slopes);
  SHORTLIST_KERNEL(kth_largest);
  SHORTLIST_KERNEL(nonnegative_fit);
  SHORTLIST_KERNEL(average_k);
  SHORTLIST_KERNEL(exp_or_log);
  out.single_positive = isa::single_positive;
  out.looked_at = [] { return isa::looked_at(); };
  return out;
}

}  // namespace shortlist
