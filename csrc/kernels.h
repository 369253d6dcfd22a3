// The table of kernels, filled once per instruction set.
#pragma once

#include "calls.h"

namespace shortlist {

template <class Options> using LossKernel = void (*)(LossCall&, const Options&);
template <class Call> using RowKernel = void (*)(const Rows&, const Call&);

struct Kernels {
  const char* name;
  // losses of class indices; the last two also of a label matrix
  LossKernel<SmoothTopKOptions> smooth_topk;
  LossKernel<AssumeNegativeOptions> assume_negative;
  LossKernel<TruncatedEntropyOptions> truncated_entropy;
  LossKernel<LmlLossOptions> lml_loss;
  // losses of a label matrix
  LossKernel<BinaryOptions> binary;
  LossKernel<PartialBinaryOptions> partial_binary;
  LossKernel<AsymmetricOptions> asymmetric;
  LossKernel<PairOptions> pair_rows;
  LossKernel<TwoWayOptions> two_way;
  LossKernel<NoOptions> multilabel_softmax;
  LossKernel<WarpOptions> warp;
  LossKernel<RmlOptions> rml;
  // other functions of rows
  RowKernel<LmlCall> lml;
  RowKernel<LmlBackwardCall> lml_backward;
  RowKernel<SubsetSumsCall> subset_sums;
  RowKernel<SubsetSlopesCall> subset_slopes;
  RowKernel<KthLargestCall> kth_largest;
  RowKernel<NonnegativeFitCall> nonnegative_fit;
  RowKernel<AverageKCall> average_k;
  RowKernel<ExpOrLogCall> exp_or_log;
  int64_t (*single_positive)(const Rows&, const SinglePositiveCall&);  // the first bad target value, or -1
  int64_t (*looked_at)();  // entries that this thread's searches for more than a few of the largest have read so far
};

Kernels kernels_baseline();
Kernels kernels_avx2();
Kernels kernels_avx512();

}  // namespace shortlist
