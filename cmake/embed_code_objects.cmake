# Writes TABLE, the C++ source that carries the code objects of LIST: lines of "name target file", in order. The files are
# taken in by the assembler; their sizes are part of the table, so that it is there before any code runs.
file(STRINGS "${LIST}" lines)
set(files "")
set(symbols "")
set(rows "")
set(count 0)
foreach(line IN LISTS lines)
  if(NOT line MATCHES "^([^ ]+) ([^ ]+) (.+)$")
    message(FATAL_ERROR "${LIST}: '${line}' must be: name target file")
  endif()
  set(symbol "tessera_hip_code_object_${count}")
  file(SIZE "${CMAKE_MATCH_3}" size)
  string(APPEND files "    .balign 64\n    .globl ${symbol}\n    .hidden ${symbol}\n${symbol}:\n"
         "    .incbin \"${CMAKE_MATCH_3}\"\n")
  string(APPEND symbols "__attribute__((visibility(\"hidden\"))) extern const std::byte ${symbol}[];\n")
  string(APPEND rows "    {\"${CMAKE_MATCH_1}\", \"${CMAKE_MATCH_2}\", ${symbol}, ${size}},\n")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE "${TABLE}" "// The kernels of this build. Generated.

#include <algorithm>
#include <array>

#include \"backends/hip/code_objects.hpp\"

asm(R\"(
    .pushsection .rodata
${files}    .popsection
)\");

extern \"C\" {
${symbols}}

namespace tessera::hip {
namespace {

constexpr std::array<CodeObject, ${count}> kAll{{
${rows}}};
static_assert(std::is_sorted(kAll.begin(), kAll.end(), comes_before));

}  // namespace

std::span<const CodeObject> code_objects() noexcept { return kAll; }

}  // namespace tessera::hip
")
