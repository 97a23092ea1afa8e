#pragma once
// The C interface's structs, read and written by the size that the caller gives them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <tessera/tessera.h>
#include <tessera/args.hpp>
#include <tessera/options.hpp>
#include <tessera/problem.hpp>
#include <tessera/stream.hpp>

#include "core/src/text.hpp"

namespace tessera::detail {

// Throws InvalidArgument for a size that no struct of ours ever had or will have: 0 was forgotten,
// and what is larger than this was never set. Else returns it.
std::size_t checked_size(std::string_view name, const void* data, std::size_t alignment);
// Throws Unsupported if one of the bytes from `begin` to `end` is not 0.
void check_tail(std::string_view name, const void* data, std::size_t begin, std::size_t end);

// The caller's struct as this library knows it: what it lacks is 0, and beyond what is known all
// must be 0.
template <class Struct>
Struct read_struct(std::string_view name, const Struct* from) {
  const std::size_t size = checked_size(name, from, alignof(Struct));
  Struct value{};
  std::memcpy(static_cast<void*>(&value), from, std::min(size, sizeof value));
  check_tail(name, from, sizeof value, size);
  return value;
}

// Fills the caller's struct as far as it goes, and clears what this library does not know. Its size
// stays.
template <class Struct>
void write_struct(std::string_view name, Struct value, Struct* to) {
  const std::size_t size = checked_size(name, to, alignof(Struct));
  value.size = size;
  std::memcpy(static_cast<void*>(to), &value, std::min(size, sizeof value));
  if (size > sizeof value) {
    std::memset(static_cast<void*>(reinterpret_cast<unsigned char*>(to) + sizeof value), 0,
                size - sizeof value);
  }
}

// What a C program gave, in C++'s terms. Throw InvalidArgument for numbers that have no meaning
// there, and as above; everything else is validated as it is for C++.
Operation to_operation(std::int32_t operation);
Args to_args(const tessera_args* args);
Options to_options(const tessera_options* options);
Stream to_stream(const tessera_stream* stream);

}  // namespace tessera::detail
