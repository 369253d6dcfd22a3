// What Python hands over, declared once: module.cpp takes the fields of these structs, in their order, as arguments, and
// the schemas of shortlist/kernels/ops.py name them alike. `void*` is memory in the scores' type.
#pragma once

#include <cstdint>

namespace shortlist {

[[noreturn]] void out_of_memory();  // throws std::bad_alloc, a MemoryError in Python

// ---- losses ----

enum TargetKind : int { kIndices = 0, kInt8 = 1, kInt32 = 2, kInt64 = 3, kFloat32 = 4, kFloat64 = 5, kSparse32 = 6, kSparse64 = 7 };

// A label matrix of which some entries are stored: those of a row from offsets[row] to offsets[row + 1]. Python hands over
// its address as the target. Nothing is trusted: whatever the numbers, no memory is touched that is not the matrix's.
struct SparseTarget {
  const int64_t* offsets;  // rows + 1
  const void* indices;     // labels, increasing within a row; of 32 or 64 bits, as the kind says
  const int8_t* values;    // 1, 0 or -1 of each, and last that of all entries that are not stored
  int64_t stored;
};

struct LossArguments {
  bool is_double;           // type of scores, weight, loss, scale and grad
  int64_t rows, n;          // scores are rows x n, contiguous
  const void* scores;
  const void* target;       // int64 class indices (rows), or a label matrix (rows x n), or a SparseTarget
  int target_kind;
  const void* weight;       // one per row, or null for 1
  void* loss;               // out: one per group, or one per row where nothing is reduced
  void* scale;              // out: what a group's gradient has yet to be multiplied by; or null. Who asks for it learns
                            // from it what the mean of a label matrix was divided by
  void* grad;               // out: d row loss / d scores times the row's weight (rows x n), or null
  int64_t groups;           // equal parts of the rows, reduced apart
  char reduction;           // m(ean), s(um), n(one)
  int threads;
};

// The same as a kernel sees it: rows, not yet reduced.
struct LossCall {
  bool is_double;
  int64_t rows, n, groups;
  const void *scores, *target;
  int target_kind;
  const void* weight;
  bool mean;
  void* grad;
  int threads;
  double* row_loss;         // out: one per row
  double* row_weight;       // out: how much the row counts; 0 where nothing was observed
  double* group_loss;       // out, of losses that couple the rows of a group: one per group, reduced
  const double* shares;     // what a group's rows (or entries) count in its mean, where it is known beforehand; or null
  double* unknown_shares;   // of a sparse target: memory for the shares, if the kernel can find them beforehand; or null
  int64_t bad = -1;         // out: flat position of the first target value that is not allowed, or -1
  bool complete = false;    // out: the gradient holds these shares already
};

struct NoOptions {};

struct SmoothTopKOptions {
  int64_t k;
  double tau, alpha;  // tau = 0: the hinge
};

struct TruncatedEntropyOptions {
  int64_t k;
};

struct LmlLossOptions {
  int64_t k;
  const int64_t* k_rows;  // one per row, or null for k
};

struct BinaryOptions {
  const void* pos_weight;  // one per label, or null
};

struct PartialBinaryOptions {
  double boost;
};

struct AsymmetricOptions {
  double gamma_pos, gamma_neg, gamma_unknown;  // gamma_unknown: of unknown labels that count as absent
  double clip;
  bool detach_focus;
  int unknown_rule;         // UnknownRule
  int64_t likelihood_topk;  // the selective rule ignores so many of a row's likeliest unknown labels,
  const uint8_t* frequent;  // and those flagged here, one per label; or null
};

struct PairOptions {
  double positive_temperature, negative_temperature, margin;
};

struct TwoWayOptions {
  double positive_temperature, negative_temperature, margin;
  bool sample_way;  // rows too, not columns alone
};

struct WarpOptions {
  const int64_t* seeds;  // one per row for a sample, or null for exact ranks
};

struct RmlOptions {
  double ramp, label_weight;
};

struct AssumeNegativeOptions {
  bool weighted;
  double label_smoothing;
};

// ---- other functions of rows: first the inputs, then what is written ----

struct Rows {
  bool is_double;
  int64_t rows, n;
  int threads;
};

struct LmlCall {
  const void* scores;
  const int64_t* k_rows;  // one per row, or null for k
  int64_t k;
  void* p;                // rows x n probabilities
  double* frame;          // rows x 3: k-th largest, next largest, delta; kept for the gradient
};

struct LmlBackwardCall {
  const void *scores, *p;
  const double* frame;
  const void* upstream;
  void* grad;
};

struct SubsetSumsCall {
  const void* scores;
  int64_t k;
  bool with_marginals;
  double* log_sum;
  void* marginals;
};

struct SubsetSlopesCall {  // the marginals' Jacobian times a direction
  const void *scores, *direction;
  int64_t k;               // up to 8
  void* slopes;
};

struct KthLargestCall {
  const void *scores, *noise;  // of scores + epsilon * noise; or null
  double epsilon;
  int64_t k;
  void* values;
  int64_t* indices;
};

struct NonnegativeFitCall {
  const void *target, *dictionary;  // rows x n; any number x n
  const int64_t* picked;            // rows x atoms: rows of the dictionary, negative for none
  int64_t atoms;                    // up to 8
  double singular;
  double* coefficients;             // rows x atoms
  void* residual;                   // rows x n
};

struct SinglePositiveCall {
  const void* target;
  int target_kind;
  int64_t* index;  // -1: none in the row; below: minus how many there are
};

struct AverageKCall {
  const void *set_scores, *proposal_scores;
  const int64_t* index;  // observed label of each row
  const void* weight;    // one per row; 0: not observed
  double k, alpha;
  bool mean;
  int64_t groups;        // equal parts of the rows, each a batch of its own
  void* loss;            // one per group
  void *set_grad, *proposal_grad;
};

struct ExpOrLogCall {  // for the tests: exp or log of every number, as the kernels compute it
  const void* x;
  bool logarithm;
  void* out;
};

}  // namespace shortlist
