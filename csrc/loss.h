// The contract of every loss kernel: what Python hands over, and what comes back.
#pragma once

#include <cstdint>

namespace shortlist {

[[noreturn]] void out_of_memory();  // throws std::bad_alloc, a MemoryError in Python

enum TargetKind : int { kIndices = 0, kInt8 = 1, kInt32 = 2, kInt64 = 3, kFloat32 = 4, kFloat64 = 5 };

struct LossCall {
  bool is_double;           // type of scores, weight and grad
  int64_t rows, n;          // scores are rows x n, contiguous
  const void* scores;
  const void* target;       // int64 class indices (rows), or a label matrix (rows x n)
  int target_kind;
  const void* weight;       // one per row, or null for 1
  double* row_loss;         // out: one per row
  double* row_weight;       // out: how much the row counts; 0 where nothing was observed
  void* grad;               // out: d row_loss / d scores times the row's weight (rows x n), or null
  int threads;
  const double* shares = nullptr;  // of class indices: what a group's rows count in its reduced loss, known beforehand
  int64_t group_rows = 0;
  int64_t bad = -1;         // out: flat position of the first target value that is not allowed, or -1
  bool complete = false;    // out: the gradient holds these shares already
};

struct AverageKCall {
  bool is_double;           // type of scores, proposals, weight, loss and gradients
  int64_t rows, n, groups;  // groups: equal parts of the rows, each a batch of its own
  const void *scores, *proposals;
  const int64_t* index;     // observed label of each row
  const void* weight;       // one per row; 0: not observed
  double k, alpha;
  bool mean;
  void* loss;               // out: one per group
  void *set_grad, *proposal_grad;
  int threads;
};

}  // namespace shortlist
