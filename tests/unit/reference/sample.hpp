#pragma once
// Small random problems with any combination of options, and their memory.

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include <tessera/args.hpp>
#include <tessera/options.hpp>

namespace tessera::testing {

// What a sample has. Names are for test names.
struct Traits {
  std::string name;
  DType dtype = DType::fp32;
  Mask mask = Mask::none();
  std::int64_t batch = 2, head_q = 4, head_k = 2, seq_q = 6, seq_k = 9, dim = 8, dim_v = 8;
  bool transposed = false;  // bshd, with gaps
  bool ranges = false;      // key_begin, key_end, query_end
  int packed = 0;           // bits of the prefix sums: 32 or 64; 0: not packed
  double scale = 0;         // 0: the default
  bool zero_scale = false;
  double softcap = 0;
  int alibi = 0;  // 1: a slope a head, 2: a slope a head and batch entry
  int bias = 0;   // bits: 1 has one, 2 batch broadcasts, 4 heads, 8 rows, 16 columns, 32 stride-0
                  // instead of extent 1
  bool bias_fp32 = true;
  bool boolean_mask = false;
  bool sinks = false;
  double dropout = 0;
  std::uint64_t seed = 1;
};

struct Sample {
  explicit Sample(const Traits& traits);
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;

  void* allocate(std::int64_t bytes);
  // Filled with multiples of 2^-8, so that small steps from them are exact in fp32.
  Tensor random(DType dtype, const Extents& extent, bool transposed, std::uint64_t seed);

  Args args;
  Options options;
  Tensor out;         // args.out
  Tensor lse;         // args.lse
  Tensor dout, dlse;  // random
  std::deque<std::vector<char>> memory;
};

// One of each option, then mixtures.
std::vector<Traits> all_traits();

// forward by its definition, one element at a time, in long double.
struct BruteForward {
  std::vector<long double> out, lse, magnitude, score_magnitude;
  std::vector<bool> visible;  // [batch, head, seq]: does the row see a key
};
BruteForward brute_forward(const Sample& sample);

}  // namespace tessera::testing
