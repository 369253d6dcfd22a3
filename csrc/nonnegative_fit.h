// Nonnegative least squares: each row as a combination of a few rows of a dictionary, none taken away.
#pragma once

#include <cmath>

#include "rows.h"

namespace SHORTLIST_ISA {

constexpr int kMostAtoms = 8;

template <class T> double inner(const T* a, const T* b, int64_t n) {
  constexpr int W = 16;
  double sum[W] = {};
  int64_t j = 0;
  for (; j + W <= n; j += W)
    for (int q = 0; q < W; ++q) sum[q] += double(a[j + q]) * double(b[j + q]);
  for (int q = 0; j < n; ++j, ++q) sum[q] += double(a[j]) * double(b[j]);
  for (int width = W / 2; width; width /= 2)
    for (int q = 0; q < width; ++q) sum[q] += sum[q + width];
  return sum[0];
}

// The best nonnegative combination of atoms of length 1: least squares on every set of them, depth first, so that each
// set adds one row to the triangular factor of the set before. No set holds an atom that is a mixture of the others.
struct Combination {
  double gram[kMostAtoms][kMostAtoms], moment[kMostAtoms];
  double best[kMostAtoms] = {};  // one per atom
  int atoms = 0;

  void solve(double singular) { extend(0, 0, singular); }

 private:
  int member[kMostAtoms];
  double lower[kMostAtoms][kMostAtoms], pivot[kMostAtoms], z[kMostAtoms];
  double best_gain = 0;

  void extend(int first, int size, double singular) {
    for (int atom = first; atom < atoms; ++atom) {
      double distance = 1, value = moment[atom];  // from the members, squared; and what is left to explain along it
      for (int j = 0; j < size; ++j) {
        double scaled = gram[atom][member[j]];
        for (int h = 0; h < j; ++h) scaled -= lower[size][h] * lower[j][h] * pivot[h];
        lower[size][j] = scaled / pivot[j];
        distance -= lower[size][j] * scaled;
        value -= lower[size][j] * z[j];
      }
      if (!(distance > singular)) continue;
      member[size] = atom;
      pivot[size] = distance;
      z[size] = value;
      keep(size + 1);
      extend(atom + 1, size + 1, singular);
    }
  }

  void keep(int size) {
    double x[kMostAtoms], gain = 0;  // gain: what it takes off the sum of squares
    for (int i = size - 1; i >= 0; --i) {
      x[i] = z[i] / pivot[i];
      for (int j = i + 1; j < size; ++j) x[i] -= lower[j][i] * x[j];
      if (!(x[i] >= 0)) return;
      gain += x[i] * moment[member[i]];
    }
    if (!(gain > best_gain)) return;
    best_gain = gain;
    for (double& one : best) one = 0;
    for (int i = 0; i < size && i < kMostAtoms; ++i) best[member[i]] = x[i];
  }
};

// residual: what is left of the target.
template <class T> void nonnegative_fit(const Rows& rows, const shortlist::NonnegativeFitCall& call) {
  const int64_t n = rows.n, t = call.atoms;
  for_rows(rows.rows, n, 0.3 * double((t + 1) * (t + 1)), rows.threads, [&](int64_t row) {
    const T* goal = row_of<const T>(call.target, row, n);
    T* residual = row_of<T>(call.residual, row, n);
    const T* atom[kMostAtoms];
    double norm[kMostAtoms];
    int place[kMostAtoms];
    Combination all;
    for (int j = 0; j < t; ++j) {
      const int64_t number = call.picked[row * t + j];
      if (number < 0) continue;
      const T* vector = row_of<const T>(call.dictionary, number, n);
      const double length = std::sqrt(inner(vector, vector, n));
      if (!(length > 0)) continue;
      const int i = all.atoms++;
      atom[i] = vector, norm[i] = length, place[i] = j;
      for (int h = 0; h < i; ++h) all.gram[i][h] = all.gram[h][i] = inner(vector, atom[h], n) / length / norm[h];
      all.moment[i] = inner(vector, goal, n) / length;
    }
    all.solve(call.singular);
    double* x = call.coefficients + row * t;
    for (int j = 0; j < t; ++j) x[j] = 0;
    for (int i = 0; i < all.atoms; ++i) all.best[i] /= norm[i], x[place[i]] = all.best[i];
    constexpr int kPart = 64;
    for (int64_t start = 0; start < n; start += kPart) {
      const int64_t size = n - start < kPart ? n - start : kPart;
      double left[kPart];
      for (int64_t j = 0; j < size; ++j) left[j] = double(goal[start + j]);
      for (int i = 0; i < all.atoms; ++i)
        for (int64_t j = 0; j < size; ++j) left[j] -= all.best[i] * double(atom[i][start + j]);
      for (int64_t j = 0; j < size; ++j) residual[start + j] = T(left[j]);
    }
  });
}

}  // namespace SHORTLIST_ISA
