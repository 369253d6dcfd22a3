// The table of kernels, filled once per instruction set.
#pragma once

#include "loss.h"

namespace shortlist {

struct Kernels {
  const char* name;
  void (*smooth_topk)(LossCall&, int64_t k, double tau, double alpha);  // tau = 0: the hinge
  void (*truncated_entropy)(LossCall&, int64_t k);
  void (*lml_loss)(LossCall&, int64_t k, const int64_t* k_rows);  // k_rows: one per row, or null
  // p: rows x n probabilities; frame: rows x 3 doubles (k-th largest, next largest, delta), kept for the gradient
  void (*lml)(bool is_double, const void* scores, int64_t rows, int64_t n, int64_t k, const int64_t* k_rows, void* p,
              double* frame, int threads);
  void (*lml_backward)(bool is_double, const void* scores, const void* p, const double* frame, const void* upstream,
                       int64_t rows, int64_t n, void* grad, int threads);
  // marginals may be null
  void (*subset_sums)(bool is_double, const void* scores, int64_t rows, int64_t n, int64_t k, double* log_sum,
                      void* marginals, int threads);
  // k-th largest of scores + epsilon * noise (noise may be null): value and label of each row
  void (*kth_largest)(bool is_double, const void* scores, const void* noise, double epsilon, int64_t rows, int64_t n,
                      int64_t k, void* values, int64_t* indices, int threads);
};

Kernels kernels_baseline();
Kernels kernels_avx2();
Kernels kernels_avx512();

}  // namespace shortlist
