/// info: what is said of the build, the devices and their threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/command.hpp"

namespace tessera::testing {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

TEST(Info, TextAndJson) {
  const Outcome text = run_tessera({"info"});
  EXPECT_EQ(text.status, 0);
  EXPECT_EQ(text.error, "");
  EXPECT_THAT(text.out, HasSubstr("backend"));
  for (const Words& arguments : {Words{"info", "--json"}, Words{"--json", "info"}}) {
    const Outcome outcome = run_tessera(arguments);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.error, "");
    const nlohmann::json json = outcome.json();
    EXPECT_FALSE(json.at("backend").get<std::string>().empty());
    EXPECT_GE(json.at("devices").size(), 1u);
  }
}

TEST(Info, SaysWhetherTheForcedKernelExists) {
  for (const auto& [name, known] : {std::pair<std::string, bool>{"generic", true},
                                    {"forward.generic", true},
                                    {"nope", false},
                                    {"gener", false}}) {
    SCOPED_TRACE(name);
    const std::map<std::string, std::string> forced{{"TESSERA_KERNEL", name}};
    const Outcome text = run_tessera({"info"}, forced);
    EXPECT_EQ(text.status, 0);
    EXPECT_THAT(text.out, HasSubstr("restricted to '" + name + "' by TESSERA_KERNEL"));
    EXPECT_EQ(text.out.find("names no kernel of this build") == std::string::npos, known);
    const nlohmann::json json = run_tessera({"info", "--json"}, forced).json();
    EXPECT_EQ(json.at("kernel_forced"), name);
    EXPECT_EQ(json.at("kernel_known"), known);
  }
  EXPECT_FALSE(run_tessera({"info", "--json"}).json().contains("kernel_known"));
}

TEST(Info, Threads) {
  const auto threads = [](const Words& arguments,
                          const std::map<std::string, std::string>& variables) {
    return run_tessera(arguments, variables).json().at("devices").at(0).at("threads").get<int>();
  };
  const auto device = run_tessera({"info", "--json"}).json().at("devices").at(0);
  // One thread runs Serial, and queues what a GPU runs.
  const int most = device.at("space") == "OpenMP" || device.at("space") == "Threads" ? 2 : 1;
  const std::map<std::string, std::string> one = {{"OMP_NUM_THREADS", "1"},
                                                  {"KOKKOS_NUM_THREADS", "1"}};
  EXPECT_EQ(threads({"info", "--json"}, one), 1);
  EXPECT_EQ(threads({"info", "--json", "--threads", "1"}, {}), 1);
  EXPECT_EQ(threads({"info", "--json", "--threads", "2"}, one), most);
}

}  // namespace
}  // namespace tessera::testing
