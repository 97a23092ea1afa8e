// expect: no match for 'operator=' .*'const tessera::ConstTensor'
// expect: no viable overloaded '='
#include <tessera/args.hpp>

void use(tessera::Args& args, const tessera::Tensor& out, const tessera::ConstTensor& query) {
#ifdef SOUND
  args.query = query;
  args.out = out;
#else
  args.query = out;
  args.out = query;
#endif
}
