#pragma once
// The AMX intrinsics that the amx_bf16 unit uses, in plain C++, for processors without AMX: for
// tests alone. Numbers as the instruction's: products of even and of odd elements summed apart in
// fp32, then added. Unlike the instruction it keeps subnormal numbers. A use that the processor
// would answer with a fault ends the program.

#include <cstdint>

// Compilers have them as macros.
#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps

namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA {

struct EmulatedTiles {
  bool configured = false;
  std::uint8_t rows[8] = {};
  std::uint16_t row_bytes[8] = {};
  std::uint8_t bytes[8][16][64] = {};

  const std::uint8_t* row(int tile, int r) const { return bytes[tile][r]; }
  void check(int tile) const {
    if (!configured || rows[tile] == 0 || row_bytes[tile] == 0) __builtin_trap();
  }
};

static EmulatedTiles& emulated_tiles() {
  static thread_local EmulatedTiles tiles;
  return tiles;
}

static void _tile_loadconfig(const void* memory) {
  const auto* config = static_cast<const std::uint8_t*>(memory);
  EmulatedTiles& t = emulated_tiles();
  t = {};
  if (config[0] != 1 || config[1] != 0) __builtin_trap();
  for (int i = 0; i < 8; ++i) {
    __builtin_memcpy(&t.row_bytes[i], config + 16 + 2 * i, 2);
    t.rows[i] = config[48 + i];
    if (t.rows[i] > 16 || t.row_bytes[i] > 64) __builtin_trap();
  }
  t.configured = true;
}

static void _tile_release() { emulated_tiles() = {}; }

static void _tile_zero(int tile) {
  EmulatedTiles& t = emulated_tiles();
  t.check(tile);
  __builtin_memset(t.bytes[tile], 0, sizeof t.bytes[tile]);
}

static void _tile_loadd(int tile, const void* memory, std::int64_t stride) {
  EmulatedTiles& t = emulated_tiles();
  t.check(tile);
  for (int r = 0; r < t.rows[tile]; ++r)
    __builtin_memcpy(t.bytes[tile][r], static_cast<const char*>(memory) + r * stride,
                     t.row_bytes[tile]);
}

static void _tile_stored(int tile, void* memory, std::int64_t stride) {
  const EmulatedTiles& t = emulated_tiles();
  t.check(tile);
  for (int r = 0; r < t.rows[tile]; ++r)
    __builtin_memcpy(static_cast<char*>(memory) + r * stride, t.bytes[tile][r], t.row_bytes[tile]);
}

static void _tile_dpbf16ps(int sum, int a, int b) {
  EmulatedTiles& t = emulated_tiles();
  t.check(sum);
  t.check(a);
  t.check(b);
  const int words = t.row_bytes[a] / 4, columns = t.row_bytes[sum] / 4;
  if (t.rows[a] != t.rows[sum] || t.rows[b] != words || t.row_bytes[b] != t.row_bytes[sum])
    __builtin_trap();
  const auto number = [](const std::uint8_t* row, int i) {
    std::uint16_t half;
    __builtin_memcpy(&half, row + 2 * i, 2);
    const std::uint32_t bits = std::uint32_t{half} << 16;
    float value;
    __builtin_memcpy(&value, &bits, 4);
    return value;
  };
  for (int r = 0; r < t.rows[sum]; ++r) {
    float even[16] = {}, odd[16] = {}, total[16];
    for (int k = 0; k < words; ++k) {
      const float first = number(t.row(a, r), 2 * k), second = number(t.row(a, r), 2 * k + 1);
      for (int c = 0; c < columns; ++c) {
        even[c] += first * number(t.row(b, k), 2 * c);
        odd[c] += second * number(t.row(b, k), 2 * c + 1);
      }
    }
    __builtin_memcpy(total, t.bytes[sum][r], sizeof total);
    for (int c = 0; c < columns; ++c) total[c] += even[c] + odd[c];
    __builtin_memcpy(t.bytes[sum][r], total, t.row_bytes[sum]);
  }
}

}  // namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA
