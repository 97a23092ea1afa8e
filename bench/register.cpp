#include "bench/register.hpp"

#include <exception>
#include <string>

namespace tessera::bench {
namespace {

const Adapter* chosen = nullptr;

}  // namespace

const Adapter* adapter() noexcept { return chosen; }
void set_adapter(const Adapter* adapter) noexcept { chosen = adapter; }

void add(std::string_view kind, void (*function)(benchmark::State&, const Case&), const Case& c,
         benchmark::TimeUnit unit) {
  const std::string name = std::string(kind) + '/' + name_of(c);
  const auto run = [function, c](benchmark::State& state) {
    try {
      function(state, c);
    } catch (const std::exception& error) {
      state.SkipWithError(error.what());
    }
  };
#ifdef __clang_analyzer__  // takes Google Benchmark's list of benchmarks for a leak
  static_cast<void>(name), static_cast<void>(run), static_cast<void>(unit);
#else
  benchmark::RegisterBenchmark(name.c_str(), run)->Unit(unit);
#endif
}

}  // namespace tessera::bench
