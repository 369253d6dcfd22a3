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
  // the marginals' Jacobian times a direction; k up to 8
  void (*subset_slopes)(bool is_double, const void* scores, const void* direction, int64_t rows, int64_t n, int64_t k,
                        void* slopes, int threads);
  // k-th largest of scores + epsilon * noise (noise may be null): value and label of each row
  void (*kth_largest)(bool is_double, const void* scores, const void* noise, double epsilon, int64_t rows, int64_t n,
                      int64_t k, void* values, int64_t* indices, int threads);
  int64_t (*looked_at)();  // entries that this thread's searches for more than a few of the largest have read so far
  // rows as nonnegative combinations of dictionary rows; picked: rows x t, negative for none; t up to 8
  void (*nonnegative_fit)(bool is_double, const void* target, const void* dictionary, const int64_t* picked,
                          double singular, int64_t rows, int64_t n, int64_t t, double* coefficients, void* residual,
                          int threads);

  // losses of a label matrix
  void (*binary)(LossCall&, const void* pos_weight);  // one per label, in the scores' type, or null
  void (*partial_binary)(LossCall&, double boost);
  void (*asymmetric)(LossCall&, double gamma_present, double gamma_absent, double gamma_assumed, double clip,
                     bool detach, int unknown_rule, int64_t likely, const uint8_t* frequent);
  void (*pair_rows)(LossCall&, double present_temperature, double absent_temperature, double margin);
  void (*two_way)(LossCall&, double present_temperature, double absent_temperature, double margin, bool sample_way,
                  bool mean, int64_t groups, double* loss);
  void (*multilabel_softmax)(LossCall&);
  void (*warp)(LossCall&, const int64_t* seeds);  // seeds: one per row for a sample, or null for exact ranks
  // losses of one observed label per row
  void (*single_positive)(LossCall&, int64_t* index);  // -1: none in the row; below: minus how many there are
  void (*assume_negative)(LossCall&, bool weighted, double smoothing);
  void (*average_k)(AverageKCall&);
};

Kernels kernels_baseline();
Kernels kernels_avx2();
Kernels kernels_avx512();

}  // namespace shortlist
