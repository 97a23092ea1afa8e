// A program that has its data in Kokkos::Views and its work on an execution space instance.
//
// Prints:
//   0 0.5 1 1.5
#include <iostream>

#include <Kokkos_Core.hpp>

#include <tessera/kokkos.hpp>
#include <tessera/tessera.hpp>

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  using View = Kokkos::View<float****, Kokkos::LayoutRight>;
  const View q("q", 1, 1, 4, 8), k("k", 1, 1, 4, 8), v("v", 1, 1, 4, 8), out("out", 1, 1, 4, 8);
  const auto values = Kokkos::create_mirror_view(v);
  for (int token = 0; token < 4; ++token) {
    for (int column = 0; column < 8; ++column)
      values(0, 0, token, column) = static_cast<float>(token);
  }
  Kokkos::deep_copy(v, values);

  const Kokkos::DefaultExecutionSpace space;
  tessera::forward({.query = tessera::as_tensor(q),
                    .key = tessera::as_tensor(k),
                    .value = tessera::as_tensor(v),
                    .out = tessera::as_tensor(out)},
                   {.mask = tessera::Mask::causal(tessera::Alignment::BottomRight)},
                   tessera::as_stream(space));
  space.fence();

  const auto result = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, out);
  for (int token = 0; token < 4; ++token) {
    std::cout << result(0, 0, token, 0) << (token < 3 ? ' ' : '\n');
  }
}
