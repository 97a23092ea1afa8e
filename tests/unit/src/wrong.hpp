#pragma once
// Tables of wrong calls: what is spoiled, and the text that says so.

#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "tests/unit/src/call.hpp"

namespace tessera::testing {

struct Wrong {
  const char* name;
  void (*spoil)(Call&);
  const char* text;  // of the InvalidArgument, whole; * stands for anything
};
inline std::ostream& operator<<(std::ostream& stream, const Wrong& wrong) {
  return stream << wrong.name;
}

inline std::string name_of(const ::testing::TestParamInfo<Wrong>& info) { return info.param.name; }

enum class Within { Problem, Args };

// forward() refuses the spoiled call with the text, executing it with the plan of the sound call
// throws too, and neither writes anything. What is wrong within the problem, supports() and plan()
// refuse with the same text.
void expect_refused(Call (*make)(), const Wrong& wrong, Within within);

}  // namespace tessera::testing
