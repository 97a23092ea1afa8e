// Plans once, executes often: one plan serves every call of its shape, whatever the data and the
// scale. Asks first whether the shape works, and shows what a call of another shape is told.
//
// Prints:
//   supported: yes
//   scale 0: the mean is 1.5
//   scale 1: the last value is 3
//   query.extent.seq is 3; the plan was made for 4: plan again for other shapes
#include <cmath>
#include <iostream>
#include <vector>

#include <tessera/tessera.hpp>

int main() {
  using namespace tessera;
  const Extents shape{.batch = 1, .head = 1, .seq = 4, .dim = 8};
  // Token j has the value j, and a key that queries of 1 score as 80·j.
  std::vector<float> ones(32, 1), keys(32), values(32), result(32);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t key = i / 8;
    values[i] = static_cast<float>(key);
    keys[i] = 10 * values[i];
  }
  const std::size_t bytes = 32 * sizeof(float);
  Buffer q(bytes), k(bytes), v(bytes), out(bytes);
  copy(q.data(), ones.data(), bytes);
  copy(k.data(), keys.data(), bytes);
  copy(v.data(), values.data(), bytes);

  Args args{.query = ConstTensor::bhsd(q.data(), DType::fp32, shape),
            .key = ConstTensor::bhsd(k.data(), DType::fp32, shape),
            .value = ConstTensor::bhsd(v.data(), DType::fp32, shape),
            .out = Tensor::bhsd(out.data(), DType::fp32, shape)};
  const Problem problem = describe(args);
  const Support support = supports(problem);
  std::cout << "supported: " << (support ? "yes" : support.reason) << '\n';
  const Plan plan = tessera::plan(problem);

  // With its own workspace, a call allocates nothing.
  Buffer workspace(plan.workspace_size());
  args.workspace = {.data = workspace.data(), .size = workspace.size()};
  const auto first_element = [&](float scale) {
    args.scale = scale;
    execute(plan, args);
    copy(result.data(), out.data(), bytes);
    Stream{}.synchronize();
    return result[0];
  };
  std::cout << "scale 0: the mean is " << first_element(0) << '\n';
  std::cout << "scale 1: the last value is " << first_element(1) << '\n';

  args.query.extent.seq = args.out.extent.seq = 3;
  try {
    execute(plan, args);
  } catch (const InvalidArgument& error) {
    std::cout << error.what() << '\n';
  }
}
