#pragma once
/// The right answer of a case, computed once: kept on disk for the other builds and for later runs.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "reference/reference.hpp"
#include "tests/conformance/operands.hpp"

namespace tessera::testing {

/// A cross-compiled build, where computing takes some ten times as long as elsewhere.
#if defined(TESSERA_EMULATED_PROCESSOR)
inline constexpr bool kEmulatedProcessor = true;
#else
inline constexpr bool kEmulatedProcessor = false;
#endif

struct Answer {
  reference::Forward
      ref{};  ///< of backward: what it is given as out and lse, before they are rounded
  reference::Forward low{};
  reference::Backward gradients{};  ///< of backward
  reference::Backward low_gradients{};
  double seconds = 0;   ///< that computing it took, now or when it was put on disk
  bool cached = false;  ///< was read from disk
};

/// ${XDG_CACHE_HOME:-~/.cache}/tessera/reference. Empty if neither variable is set: nothing is kept
/// then.
std::filesystem::path answer_folder();

/// A folder of answers, one file each. Files are written aside and renamed, so that readers see
/// whole ones; a file that is truncated, altered or another key's is not an answer.
class AnswerCache {
 public:
  explicit AnswerCache(std::filesystem::path folder,
                       std::uint64_t limit_bytes = std::uint64_t{768} << 20);

  std::optional<Answer> find(const std::string& key) const;
  /// Keeps the answer unless that costs more than computing it again. Failing to write is not an
  /// error.
  void keep(const std::string& key, const Answer& answer) const;
  /// Removes the oldest files until at most three quarters of the limit are left, if there is more
  /// than the limit.
  void prune() const;

  std::filesystem::path path_of(const std::string& key) const;

 private:
  std::filesystem::path folder_;
  std::uint64_t limit_;
};

/// Reference and low of these operands, from disk if it is there. The key is made of all inputs,
/// bit for bit, of which kind of answer is asked for, and of the reference's own sources: decode's
/// is forward's.
/// Of backward, out and lse of the operands are set to what the reference's forward gives,
/// rounded: backward is judged by what it makes of its arguments, whoever rounded them.
Answer answer(const Operands& operands);

/// Backward's with δ of the out that the operands hold now, whoever computed and rounded it;
/// `known` is what answer() gave.
Answer answer_to_out(const Operands& operands, Answer known);

/// Likewise with weights of the lse that they hold now, too: gradients as a function of all that
/// backward is given.
Answer answer_to_results(const Operands& operands, Answer known);

/// Computes it without looking anywhere; sets out and lse, too.
Answer compute_answer(const Operands& operands);

/// What the rule says of the operands' outputs.
reference::Verdict judge(const Operands& operands, const Answer& answer);

}  // namespace tessera::testing
