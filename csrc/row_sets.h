// The set of one row: which of its labels a set rule lets in. For a single row that waits for its answer: one call takes
// the place of a dozen on arrays of 100 numbers. Each gives None where the row wants a closer look, a NaN or a tie that a
// hash breaks: shortlist.sets then goes the way of blocks of rows.
#pragma once

#include <nanobind/nanobind.h>

namespace shortlist {

void define_row_sets(nanobind::module_& m);

}  // namespace shortlist
