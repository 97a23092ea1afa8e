#pragma once
/// NumPy's .npy format, versions 1.0, 2.0 and 3.0: magic, version, length, a Python dictionary,
/// then the array's bytes.
///
///     {'descr': '<f4', 'fortran_order': False, 'shape': (2, 256, 12, 32), }
///
/// Strict: exactly these three keys; little-endian numbers and booleans in C order; the bytes must
/// be as many as the shape says. Big-endian, Fortran-ordered, structured, text and object arrays
/// are refused, the last never unpickled.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tools/io/array.hpp"
#include "tools/io/file.hpp"

namespace tessera::io {

struct NpyHeader {
  Element element = Element::f32;
  std::vector<std::int64_t> shape{};
  std::uint64_t data_start = 0;  ///< bytes from the begin of the file
};

/// Whether these are a .npy file's first bytes.
bool looks_like_npy(std::span<const std::byte> file) noexcept;

/// Reads the header of a whole file in memory and checks it against the file's size. Throws
/// FormatError.
NpyHeader parse_npy(std::span<const std::byte> file);

/// Reads a whole file. Throws FileError.
Array read_npy(const std::filesystem::path& path);

/// The bytes before the array's, a multiple of 64. Throws FormatError for an element type that
/// NumPy lacks.
std::string npy_prefix(const ArrayView& array);

/// Writes into a file that the caller commits. Throws FileError.
void write_npy(AtomicFile& file, const ArrayView& array);

}  // namespace tessera::io
