// Code objects that the build compiled and embedded are in the table as they are in their files.

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backends/hip/code_objects.hpp"

namespace tessera::testing {
namespace {

std::string contents(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST(Embedded, AreWhatTheCompilerWrote) {
  std::istringstream list(contents(CODE_OBJECTS));
  std::string instance, target, file;
  std::size_t count = 0;
  while (list >> instance >> target >> file) {
    SCOPED_TRACE(file);
    const hip::CodeObject* const object = hip::find(hip::code_objects(), instance, target);
    ASSERT_NE(object, nullptr);
    const std::string embedded(reinterpret_cast<const char*>(object->data), object->size);
    EXPECT_EQ(embedded, contents(file));
    EXPECT_EQ(embedded.substr(0, 4),
              "\x7f"
              "ELF");
    EXPECT_NE(embedded.find("tessera_" + instance), std::string::npos);
    ++count;
  }
  EXPECT_GT(count, 0U);
  EXPECT_EQ(hip::code_objects().size(), count);
}

TEST(Embedded, TheSameSourceIsAnotherObjectForEachTarget) {
  const auto all = hip::code_objects();
  for (std::size_t i = 1; i < all.size(); ++i) {
    EXPECT_LT(all[i - 1].target, all[i].target);
    EXPECT_NE(all[i - 1].data, all[i].data);
  }
}

}  // namespace
}  // namespace tessera::testing
