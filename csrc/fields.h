// The fields of a plain struct, in their order: so that what Python passes need not be listed a second time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>

namespace shortlist {

struct AnyField {
  template <class T> operator T() const;
};

template <class Struct, class... Found> consteval size_t field_count() {
  if constexpr (requires { Struct{Found{}..., AnyField{}}; }) return field_count<Struct, Found..., AnyField>();
  else return sizeof...(Found);
}

template <class Struct> auto fields(Struct& s) {
  constexpr size_t count = field_count<Struct>();
  static_assert(count <= 13);
  if constexpr (count == 0) {
    return std::tie();
  } else if constexpr (count == 1) {
    auto& [a] = s;
    return std::tie(a);
  } else if constexpr (count == 2) {
    auto& [a, b] = s;
    return std::tie(a, b);
  } else if constexpr (count == 3) {
    auto& [a, b, c] = s;
    return std::tie(a, b, c);
  } else if constexpr (count == 4) {
    auto& [a, b, c, d] = s;
    return std::tie(a, b, c, d);
  } else if constexpr (count == 5) {
    auto& [a, b, c, d, e] = s;
    return std::tie(a, b, c, d, e);
  } else if constexpr (count == 6) {
    auto& [a, b, c, d, e, f] = s;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (count == 7) {
    auto& [a, b, c, d, e, f, g] = s;
    return std::tie(a, b, c, d, e, f, g);
  } else if constexpr (count == 8) {
    auto& [a, b, c, d, e, f, g, h] = s;
    return std::tie(a, b, c, d, e, f, g, h);
  } else if constexpr (count == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = s;
    return std::tie(a, b, c, d, e, f, g, h, i);
  } else if constexpr (count == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = s;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (count == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = s;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (count == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = s;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
  } else {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = s;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m);
  }
}

template <class... T> struct Types {};
template <class... T> Types<T...> types_of(const std::tuple<T&...>&);
template <class Struct> using FieldTypes = decltype(types_of(fields(std::declval<Struct&>())));

// As Python passes it: an address for a pointer.
template <class T> using Argument = std::conditional_t<std::is_pointer_v<T>, uintptr_t, T>;
template <class T> T from_argument(Argument<T> value) {
  if constexpr (std::is_pointer_v<T>) return reinterpret_cast<T>(value);
  else return value;
}

}  // namespace shortlist
