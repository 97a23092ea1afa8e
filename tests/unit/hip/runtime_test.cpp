// Which library is taken for the HIP runtime, and what is said of one that is none.

#include "backends/hip/runtime.hpp"

#include <string>

#include <gtest/gtest.h>

namespace tessera::testing {
namespace {

TEST(Runtime, IsTheFileThatIsNamed) {
  for (const char* const file : {FAKE_HIP_6, FAKE_HIP_5}) {
    const hip::Opened opened = hip::open_runtime(file);
    EXPECT_EQ(opened.why_not, "");
    EXPECT_EQ(opened.library, file);
    EXPECT_NE(opened.runtime.module_launch_kernel, nullptr);
    int count = 0;
    EXPECT_EQ(opened.runtime.get_device_count(&count), 0);
    EXPECT_EQ(count, 2);
  }
}

TEST(Runtime, TakesTheNewerProperties) {
  EXPECT_EQ(hip::open_runtime(FAKE_HIP_6).runtime.properties.size, 1472U);
  EXPECT_EQ(hip::open_runtime(FAKE_HIP_5).runtime.properties.size, 792U);
}

TEST(Runtime, NamesAFileThatCannotBeOpened) {
  const std::string why = hip::open_runtime("/nowhere/libamdhip64.so").why_not;
  const std::string begins =
      "the environment variable TESSERA_HIP_RUNTIME is '/nowhere/libamdhip64.so', which cannot be "
      "opened: ";
  EXPECT_EQ(why.substr(0, begins.size()), begins);
  EXPECT_GT(why.size(), begins.size()) << "the reason is missing";
}

TEST(Runtime, NamesTheFunctionsThatAreMissing) {
  EXPECT_EQ(hip::open_runtime(FAKE_HIP_LACKING).why_not,
            "the HIP runtime " FAKE_HIP_LACKING " lacks hipFreeAsync, hipModuleLoadData");
}

// ctest runs it where libamdhip64.so.7 is a fake.
TEST(SystemRuntime, IsFoundByItsName) {
  for (const char* const unset : {static_cast<const char*>(nullptr), ""}) {
    const hip::Opened opened = hip::open_runtime(unset);
    EXPECT_EQ(opened.why_not, "");
    EXPECT_EQ(opened.library, "libamdhip64.so.7");
  }
}

}  // namespace
}  // namespace tessera::testing
