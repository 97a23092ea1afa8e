// Measures the figures that the project holds itself to, and writes them as JSON.
//
//   tessera_figures OUT.json [ROUNDS [SECTION...]]
//
// Sections: those of figures.hpp; without any, all of them. Exit status 0; 1 if a goal is missed; 2
// for wrong use or a failure.

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

#include "bench/figures/figures.hpp"

namespace tessera::bench {

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

void add_rounds(Json& figure, const std::string& prefix, const std::vector<double>& values) {
  const auto [low, high] = std::ranges::minmax_element(values);
  figure[prefix] = median(values);
  figure[prefix + "_lowest"] = *low;
  figure[prefix + "_highest"] = *high;
}

namespace {

constexpr int kDefaultRounds = 15;

struct Section {
  std::string_view name;
  Json (*measure)(int rounds);
};

// In this order: memory first.
constexpr Section kSections[] = {
    {"memory", [](int) { return memory_figures(); }},
    {"forward", [](int rounds) { return arithmetic_figures(Operation::forward, rounds); }},
    {"backward", [](int rounds) { return arithmetic_figures(Operation::backward, rounds); }},
    {"latency", latency_figures},
    {"recompute", recompute_figures},
    {"packed", packed_figures},
    {"growth", growth_figures},
    {"decode", decode_figures},
};

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

Json machine() {
  const DeviceInfo device = device_info();
  double load[1] = {-1};
  static_cast<void>(getloadavg(load, 1));
  return {{"device", device.name},     {"isa", device.isa},       {"space", device.space},
          {"threads", device.threads}, {"memory", device.memory}, {"load_average", load[0]}};
}

Json build() {
  const BuildInfo info = build_info();
  const Version& v = info.version;
  return {{"tessera_version", to_string(v)}, {"commit", info.commit},
          {"backend", info.backend},         {"toolkit", info.toolkit},
          {"compiler", info.compiler},       {"build_type", info.build_type}};
}

bool all_met(const Json& figures) {
  return std::ranges::all_of(figures, [](const Json& figure) { return figure["met"].get<bool>(); });
}

int measure(const char* path, int rounds, const std::vector<std::string_view>& sections) {
  for (const std::string_view name : sections) {
    if (std::ranges::find(kSections, name, &Section::name) != std::end(kSections)) continue;
    throw std::runtime_error("no section is called '" + std::string(name) + "'");
  }
  Json report{{"date", now_utc()},
              {"machine", machine()},
              {"build", build()},
              {"rounds", rounds},
              {"batch_heads", kHeads}};
  bool met = true;
  for (const Section& section : kSections) {
    if (!sections.empty() && std::ranges::find(sections, section.name) == sections.end()) continue;
    Json figures = section.measure(rounds);
    met = met && all_met(figures);
    report[section.name] = std::move(figures);
  }
  const std::string text = report.dump(2) + '\n';
  std::ofstream file(path);
  if (!(file << text).flush()) throw std::runtime_error(std::string(path) + ": cannot be written");
  std::cout << text;
  return met ? 0 : 1;
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) try {
  const int rounds = argc >= 3 ? std::atoi(argv[2]) : tessera::bench::kDefaultRounds;
  if (argc < 2 || rounds < 1 || argv[1][0] == '-') {
    std::fprintf(stderr, "usage: tessera_figures OUT.json [ROUNDS [SECTION...]]\n");
    return 2;
  }
  return tessera::bench::measure(argv[1], rounds, {argv + std::min(argc, 3), argv + argc});
} catch (const std::exception& error) {
  std::fprintf(stderr, "tessera_figures: %s\n", error.what());
  return 2;
}
