// The three symbols that Debian's libkokkoscore.so takes from glibc 2.38 and libstdc++ 13.1, for
// systems whose own libraries are older. ci/get-kokkos.sh compiles this file and makes that library
// need the result; tests/package/kokkos_compat_test.cpp tests it.
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ios>

// libstdc++ 13 opens std::cout and its kin by itself when it is loaded. An older one leaves that to
// each user of <iostream>, and in Kokkos, built for the newer one, there is none: this object
// stands in.
static const std::ios_base::Init standard_streams;

extern "C" {

// Never called: <iostream> of libstdc++ 13 names it to state the need above.
void _ZSt21ios_base_library_initv() {}

// C23's strtol also reads "0b101" in bases 0 and 2. Kokkos reads base 10 only, where the two agree.
long __isoc23_strtol(const char* text, char** end, int base) {
  return std::strtol(text, end, base);
}

// std::string::_M_replace_cold(place, old_size, source, new_size, rest): replaces the old_size
// characters at place by the new_size characters at source, which lie in the same string, and moves
// the rest that follows them. The caller has seen to the capacity and sets the length afterwards.
void _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE15_M_replace_coldEPcmPKcmm(
    void* /*string*/, char* place, std::size_t old_size, const char* source, std::size_t new_size,
    std::size_t rest) {
  if (new_size <= old_size) {  // the source is read before anything is moved over it
    std::memmove(place, source, new_size);
    std::memmove(place + new_size, place + old_size, rest);
    return;
  }
  std::memmove(place + new_size, place + old_size, rest);
  // The source's characters in front of old_end still lie where they were, the others have just
  // moved.
  const std::size_t moved_by = new_size - old_size;
  const char* const old_end = place + old_size;
  const std::size_t in_front =
      source < old_end ? static_cast<std::size_t>(old_end - source) : std::size_t{0};
  const std::size_t unmoved = in_front < new_size ? in_front : new_size;
  std::memmove(place, source, unmoved);
  std::memmove(place + unmoved, source + unmoved + moved_by, new_size - unmoved);
}

}  // extern "C"
