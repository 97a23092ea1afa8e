// Shapes and strides whose products do not fit into 63 bits: refused by the operand's name, for
// every operand of every operation.

#include <array>
#include <limits>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tests/unit/src/call.hpp"

namespace tessera::testing {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

struct Operand {
  const char* name;
  ConstTensor Args::* input;
  Tensor Args::* output;
};

constexpr std::array kOperands{
    Operand{"query", &Args::query, nullptr},
    Operand{"key", &Args::key, nullptr},
    Operand{"value", &Args::value, nullptr},
    Operand{"out", nullptr, &Args::out},
    Operand{"lse", nullptr, &Args::lse},
    Operand{"dout", &Args::dout, nullptr},
    Operand{"dlse", &Args::dlse, nullptr},
    Operand{"dq", nullptr, &Args::dq},
    Operand{"dk", nullptr, &Args::dk},
    Operand{"dv", nullptr, &Args::dv},
    Operand{"dbias", nullptr, &Args::dbias},
    Operand{"bias", &Args::bias, nullptr},
    Operand{"boolean_mask", &Args::boolean_mask, nullptr},
};

// Calls `spoil(tensor)` on the operand; false if the call has none.
template <class Spoil>
bool spoil_operand(Call& call, const Operand& operand, Spoil spoil) {
  const auto spoil_given = [&](auto& tensor) {
    if (tensor.data == nullptr) return false;
    spoil(tensor);
    return true;
  };
  return operand.input != nullptr ? spoil_given(call.args.*operand.input)
                                  : spoil_given(call.args.*operand.output);
}

template <class Spoil>
void expect_each_refused(Spoil spoil) {
  for (const Operation operation : {Operation::forward, Operation::backward, Operation::decode}) {
    int spoiled = 0;
    for (const Operand& operand : kOperands) {
      Call call = operation == Operation::backward ? Call::gradients() : Call::everything();
      call.operation = operation;
      if (!spoil_operand(call, operand, spoil)) continue;
      ++spoiled;
      const Thrown thrown = thrown_by([&] { call.run(); });
      EXPECT_EQ(thrown.kind, Thrown::Kind::InvalidArgument) << operand.name;
      EXPECT_TRUE(thrown.argument.starts_with(std::string(operand.name) + "."))
          << operand.name << ": " << thrown.text;
      EXPECT_TRUE(call.outputs_are_untouched()) << operand.name;
      EXPECT_EQ(supports(call.problem()).status, Support::Status::InvalidArgument) << operand.name;
    }
    EXPECT_GE(spoiled, operation == Operation::backward ? 12 : 7);
  }
}

TEST(Overflow, StrideOfEachAxis) {
  for (std::int64_t Strides::* axis : {&Strides::batch, &Strides::head, &Strides::seq}) {
    expect_each_refused([&](auto& tensor) { tensor.stride.*axis = kMost; });
    // The neighbour alone is still within 2^63 bytes.
    expect_each_refused([&](auto& tensor) { tensor.stride.*axis = kMost / size_of(tensor.dtype); });
  }
}

TEST(Overflow, ElementsOfAnExtent) {
  expect_each_refused([](auto& tensor) {
    tensor.extent = {kMost, kMost, kMost, kMost};
    tensor.stride = {0, 0, 0, 1};
  });
}

}  // namespace
}  // namespace tessera::testing
