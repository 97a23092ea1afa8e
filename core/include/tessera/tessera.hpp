#pragma once
/// All of Tessera's public interface, but for <tessera/kokkos.hpp>, which needs Kokkos.

#include <tessera/args.hpp>
#include <tessera/attention.hpp>
#include <tessera/buffer.hpp>
#include <tessera/dtype.hpp>
#include <tessera/error.hpp>
#include <tessera/event.hpp>
#include <tessera/info.hpp>
#include <tessera/options.hpp>
#include <tessera/plan.hpp>
#include <tessera/problem.hpp>
#include <tessera/stream.hpp>
#include <tessera/tensor.hpp>
#include <tessera/version.hpp>
