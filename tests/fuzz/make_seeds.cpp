/// Writes the samples of tests/tools as files that the fuzzers start from: make_seeds FOLDER.
/// Samples longer than a few kilobytes, which only try depth, would slow every mutation down and
/// are left out.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/tools/samples.hpp"

namespace {

void write(const std::filesystem::path& folder,
           const std::vector<tessera::testing::Sample>& samples) {
  std::filesystem::create_directories(folder);
  for (const auto& sample : samples) {
    if (sample.bytes.size() > 4096) continue;
    std::ofstream(folder / sample.name, std::ios::binary) << sample.bytes;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "make_seeds FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  write(folder / "safetensors", tessera::testing::safetensors_samples());
  write(folder / "npy", tessera::testing::npy_samples());
  return 0;
}
