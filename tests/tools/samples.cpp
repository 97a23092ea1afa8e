#include "tests/tools/samples.hpp"

namespace tessera::testing {
namespace {

std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

/// Bytes 0, 1, 2, …
std::string ramp(std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text += static_cast<char>(i & 0xff);
  return text;
}

std::string repeat(std::string_view text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

/// One tensor "q" whose fields are as given.
std::string entry(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return std::string(R"({"q":{"dtype":)")
      .append(dtype)
      .append(R"(,"shape":)")
      .append(shape)
      .append(R"(,"data_offsets":)")
      .append(offsets)
      .append("}}");
}

/// Two F32 tensors of two elements, "a" and "b", at these offsets.
std::string two(std::string_view offsets_a, std::string_view offsets_b) {
  return std::string(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":)")
      .append(offsets_a)
      .append(R"(},"b":{"dtype":"F32","shape":[2],"data_offsets":)")
      .append(offsets_b)
      .append("}}");
}

}  // namespace

std::string safetensors_bytes(std::string_view header, std::size_t data_size) {
  return little_endian(header.size(), 8).append(header).append(ramp(data_size));
}

std::string npy_bytes(std::string_view dictionary, std::size_t data_size, int major) {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(major);
  file += '\0';
  file += little_endian(dictionary.size(), major == 1 ? 2 : 4);
  return file.append(dictionary).append(ramp(data_size));
}

std::vector<Sample> safetensors_samples() {
  const std::string good = entry("\"F32\"", "[2,3]", "[0,24]");
  const auto wrong_entry = [](std::string_view dtype, std::string_view shape,
                              std::string_view offsets) {
    return safetensors_bytes(entry(dtype, shape, offsets), 24);
  };
  using namespace std::string_literals;
  return {
      // Fine.
      {"empty_header", safetensors_bytes("{}"), ""},
      {"one_tensor", safetensors_bytes(good, 24), ""},
      {"trailing_spaces", safetensors_bytes(good + "   \n", 24), ""},
      {"scalar", safetensors_bytes(entry("\"F64\"", "[]", "[0,8]"), 8), ""},
      {"zero_extent", safetensors_bytes(entry("\"BF16\"", "[4,0,2]", "[0,0]")), ""},
      {"unaligned",
       safetensors_bytes(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                         R"("b":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}})",
                         9),
       ""},
      {"not_in_order", safetensors_bytes(two("[8,16]", "[0,8]"), 16), ""},
      {"metadata", safetensors_bytes(R"({"__metadata__":{"layout":"bshd","note":"\u00e4\u0000"}})"),
       ""},
      {"unicode_name",
       safetensors_bytes("{\"\xc3\xa4\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}"),
       ""},
      // Length and begin.
      {"nothing", "", "has 0 bytes"},
      {"seven_bytes", "\x02\0\0\0\0\0\0"s, "has 7 bytes"},
      {"no_header", "\0\0\0\0\0\0\0\0"s, "does not begin with '{'"},
      {"huge_length", "\xff\xff\xff\xff\xff\xff\xff\xff{}"s, "at most 100000000 are allowed"},
      {"long_length", little_endian(99'999'999, 8) + "{}", "truncated?"},
      {"length_one_too_many", little_endian(3, 8) + "{}", "truncated?"},
      {"length_in_the_middle", little_endian(5, 8) + good, "not valid JSON"},
      {"space_first", safetensors_bytes(" {}"), "does not begin with '{'"},
      {"byte_order_mark", safetensors_bytes("\xef\xbb\xbf{}"), "does not begin with '{'"},
      {"array_first", safetensors_bytes("[]"), "does not begin with '{'"},
      {"zero_byte", safetensors_bytes(good + "\0garbage"s, 24), "zero byte"},
      // JSON.
      {"not_json", safetensors_bytes("{]"), "not valid JSON"},
      {"two_documents", safetensors_bytes("{}{}"), "not valid JSON"},
      {"open_end", safetensors_bytes(R"({"q":{"dtype")"), "not valid JSON"},
      {"comment", safetensors_bytes("{/* */}"), "not valid JSON"},
      {"not_utf8", safetensors_bytes("{\"\xff\":{}}"), "not valid JSON"},
      {"lone_surrogate", safetensors_bytes(R"({"\ud800":{}})"), "not valid JSON"},
      {"nan", wrong_entry("\"F32\"", "[NaN]", "[0,24]"), "not valid JSON"},
      {"infinity", wrong_entry("\"F32\"", "[Infinity]", "[0,24]"), "not valid JSON"},
      {"number_beyond_double", wrong_entry("\"F32\"", "[1e999]", "[0,24]"), "not valid JSON"},
      {"deep_arrays", safetensors_bytes(R"({"q":)" + repeat("[", 100'000)), "must be an object"},
      {"deep_shape", safetensors_bytes(R"({"q":{"shape":)" + repeat("[", 100'000)), "is an array"},
      {"deep_objects", safetensors_bytes(repeat(R"({"q":)", 100'000)), "has a field 'q'"},
      {"deep_dtype", safetensors_bytes(R"({"q":)" + repeat(R"({"dtype":)", 100'000)),
       "is an object"},
      {"deep_metadata", safetensors_bytes(R"({"__metadata__":{"a":)" + repeat("[", 100'000)),
       "is an array"},
      // Wrong kinds of value.
      {"entry_is_number", safetensors_bytes(R"({"q":1})"), "must be an object"},
      {"entry_is_null", safetensors_bytes(R"({"q":null})"), "must be an object"},
      {"metadata_is_text", safetensors_bytes(R"({"__metadata__":"x"})"), "must be an object"},
      {"metadata_number", safetensors_bytes(R"({"__metadata__":{"a":1}})"), "must be text"},
      {"metadata_object", safetensors_bytes(R"({"__metadata__":{"a":{}}})"), "must be text"},
      {"metadata_true", safetensors_bytes(R"({"__metadata__":{"a":true}})"), "must be text"},
      {"dtype_number", wrong_entry("1", "[2,3]", "[0,24]"), "must be text"},
      {"dtype_unknown", wrong_entry("\"F33\"", "[2,3]", "[0,24]"), "is 'F33'; must be one of F64"},
      {"dtype_control", wrong_entry(R"("\u001b[31m")", "[2,3]", "[0,24]"), R"(is '\x1b[31m')"},
      {"dtype_array", wrong_entry("[\"F32\"]", "[2,3]", "[0,24]"), "is an array"},
      {"shape_text", wrong_entry("\"F32\"", "\"2\"", "[0,24]"),
       "must be an array of whole numbers"},
      {"shape_number", wrong_entry("\"F32\"", "6", "[0,24]"), "must be an array of whole numbers"},
      {"shape_of_text", wrong_entry("\"F32\"", "[\"2\"]", "[0,24]"),
       "is text; must be a whole number"},
      {"shape_null", wrong_entry("\"F32\"", "[null]", "[0,24]"), "is null; must be a whole number"},
      {"shape_float", wrong_entry("\"F32\"", "[2.0,3]", "[0,24]"),
       "holds 2.0; must be a whole number"},
      {"shape_negative", wrong_entry("\"F32\"", "[-2,-3]", "[0,24]"),
       "holds -2; must be a whole number"},
      {"shape_exponent", wrong_entry("\"F32\"", "[6e0]", "[0,24]"),
       "holds 6e0; must be a whole number"},
      {"shape_2_63", wrong_entry("\"F32\"", "[9223372036854775808]", "[0,24]"),
       "must be below 2^63"},
      {"shape_2_64", wrong_entry("\"F32\"", "[18446744073709551616]", "[0,24]"),
       "must be a whole number"},
      {"shape_overflows", wrong_entry("\"F32\"", "[4294967296,4294967296]", "[0,0]"), "overflows"},
      {"shape_wraps_to_size", wrong_entry("\"F32\"", "[4611686018427387910]", "[0,24]"),
       "overflows"},
      {"shape_overflows_with_zero", wrong_entry("\"F32\"", "[0,4294967296,4294967296]", "[0,0]"),
       "overflows"},
      {"offsets_text", wrong_entry("\"F32\"", "[2,3]", "\"0\""), "must be an array of two"},
      {"offsets_float", wrong_entry("\"F32\"", "[2,3]", "[0,24.5]"), "must be a whole number"},
      {"offsets_negative", wrong_entry("\"F32\"", "[2,3]", "[-24,0]"), "must be a whole number"},
      {"offsets_one", wrong_entry("\"F32\"", "[2,3]", "[24]"), "must be [begin, end]"},
      {"offsets_three", wrong_entry("\"F32\"", "[2,3]", "[0,24,48]"), "longer than two"},
      {"offsets_reversed", wrong_entry("\"F32\"", "[2,3]", "[24,0]"), "begin <= end"},
      {"offsets_minus_zero", wrong_entry("\"F32\"", "[2,3]", "[-0,24]"), "must be a whole number"},
      // Names.
      {"tensor_twice", safetensors_bytes(good.substr(0, good.size() - 1) + R"(,"q":{}})", 24),
       "'q' is there twice"},
      {"field_twice", safetensors_bytes(R"({"q":{"dtype":"F32","dtype":"F32"}})"),
       "two fields dtype"},
      {"field_unknown", safetensors_bytes(R"({"q":{"stride":1}})"), "has a field 'stride'"},
      {"metadata_twice", safetensors_bytes(R"({"__metadata__":{"a":"1","a":"2"}})"),
       "'a' is there twice"},
      {"metadata_block_twice", safetensors_bytes(R"({"__metadata__":{},"__metadata__":{}})"),
       "is there twice"},
      {"dtype_missing", safetensors_bytes(R"({"q":{"shape":[2],"data_offsets":[0,8]}})", 8),
       "lacks one of"},
      {"shape_missing", safetensors_bytes(R"({"q":{"dtype":"F32","data_offsets":[0,8]}})", 8),
       "lacks one of"},
      {"offsets_missing", safetensors_bytes(R"({"q":{"dtype":"F32","shape":[2]}})", 8),
       "lacks one of"},
      // Where tensors lie.
      {"too_few_bytes_for_shape", wrong_entry("\"F32\"", "[2,3]", "[0,23]"), "span 23 bytes"},
      {"too_many_bytes_for_shape", wrong_entry("\"F16\"", "[2,3]", "[0,24]"), "need 12"},
      {"zero_extent_with_bytes", wrong_entry("\"F32\"", "[0]", "[0,24]"), "need 0"},
      {"overlap", safetensors_bytes(two("[0,8]", "[4,12]"), 12), "no overlap"},
      {"same_bytes", safetensors_bytes(two("[0,8]", "[0,8]"), 8), "no overlap"},
      {"gap", safetensors_bytes(two("[0,8]", "[12,20]"), 20), "no gap"},
      {"gap_first", safetensors_bytes(two("[4,12]", "[12,20]"), 20), "no gap"},
      {"data_truncated", safetensors_bytes(good, 23), "of which there are 23"},
      {"data_missing", safetensors_bytes(good, 0), "of which there are 0"},
      {"data_beyond_file",
       wrong_entry("\"U8\"", "[9223372036854775807]", "[0,9223372036854775807]"), "truncated?"},
      {"trailing_byte", safetensors_bytes(good, 25), "1 bytes follow"},
      {"data_without_tensor", safetensors_bytes("{}", 8), "8 bytes follow"},
  };
}

std::vector<Sample> npy_samples() {
  using namespace std::string_literals;
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  const auto shape = [](std::string_view text) {
    return npy_bytes(
        "{'descr': '<f4', 'fortran_order': False, 'shape': " + std::string(text) + ", }", 24);
  };
  const auto descr = [](std::string_view text) {
    return npy_bytes(
        "{'descr': " + std::string(text) + ", 'fortran_order': False, 'shape': (6,), }", 24);
  };
  const auto header = [](std::string_view text) { return npy_bytes(text, 24); };
  return {
      // Fine.
      {"version_1", npy_bytes(good + "    \n", 24), ""},
      {"version_2", npy_bytes(good, 24, 2), ""},
      {"version_3", npy_bytes(good, 24, 3), ""},
      {"double_quotes", header(R"({"descr":"<f4","fortran_order":False,"shape":(2,3)})"), ""},
      {"other_order", header("{'shape':(6,),'fortran_order':False,'descr':'<f4'}"), ""},
      {"scalar", npy_bytes("{'descr':'<f8','fortran_order':False,'shape':()}", 8), ""},
      {"zero_extent", npy_bytes("{'descr':'<f2','fortran_order':False,'shape':(4, 0)}"), ""},
      {"boolean", npy_bytes("{'descr':'|b1','fortran_order':False,'shape':(3,)}", 3), ""},
      // Begin and length.
      {"nothing", "", "is not a .npy file"},
      {"wrong_magic", "\x93NUMPX\1\0"s, "is not a .npy file"},
      {"zip", "PK\3\4aaaaaaaa", "is not a .npy file"},
      {"only_magic", "\x93NUMPY", "truncated?"},
      {"no_length", "\x93NUMPY\1\0\1"s, "truncated?"},
      {"version_0", npy_bytes(good, 24, 0), "version 0.0"},
      {"version_4", npy_bytes(good, 24, 4), "version 4.0"},
      {"version_1_1", "\x93NUMPY\1\1\0\0"s, "version 1.1"},
      {"huge_length", "\x93NUMPY\2\0\xff\xff\xff\xff{}"s, "at most 1048576 are allowed"},
      {"long_length", "\x93NUMPY\1\0\xff\xff{}"s, "truncated?"},
      {"no_header", "\x93NUMPY\1\0\0\0"s, "expected '{'"},
      // The dictionary.
      {"not_a_dictionary", header("[]"), "expected '{'"},
      {"empty_dictionary", header("{}"), "lacks one of"},
      {"code", header("__import__('os').system('true')"), "expected '{'"},
      {"open_end", header("{'descr': '<f4'"), "expected '}'"},
      {"open_text", header("{'descr"), "does not end"},
      {"backslash", header("{'de\\x73cr': '<f4'}"), "backslash"},
      {"key_unknown", header("{'description': '<f4'}"), "has a key 'description'"},
      {"key_twice", header("{'descr': '<f4', 'descr': '<f4'}"), "is there twice"},
      {"key_missing", header("{'descr': '<f4', 'shape': (6,)}"), "lacks one of"},
      {"something_after", header(good + "1"), "something follows"},
      {"zero_byte", header(good + "\0"s), "something follows"},
      {"deep", header("{'shape': " + repeat("(", 60'000)), "whole numbers"},
      {"deep_dictionaries", header(repeat("{", 60'000)), "expected '''"},
      // dtype.
      {"big_endian", descr("'>f4'"), "big-endian"},
      {"native_spelling", descr("'=f4'"), "must be one of"},
      {"object", descr("'|O'"), "never loaded"},
      {"records", descr("[('a', '<f4')]"), "holds records"},
      {"text_dtype", descr("'<U4'"), "must be one of"},
      {"complex", descr("'<c8'"), "must be one of"},
      {"void", descr("'|V2'"), "bf16: use .safetensors"},
      {"long_double", descr("'<f16'"), "must be one of"},
      {"empty_descr", descr("''"), "must be one of"},
      {"escape", descr("'\x1b[31m'"), R"('\x1b[31m')"},
      {"fortran", header("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}"),
       "Fortran order"},
      {"fortran_number", header("{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}"),
       "True or False"},
      // Shape.
      {"shape_number", shape("(6)"), "must be a tuple"},
      {"shape_list", shape("[6]"), "expected '('"},
      {"shape_float", shape("(2.0, 3)"), "expected ',' or ')'"},
      {"shape_nan", shape("(nan,)"), "whole numbers"},
      {"shape_negative", shape("(-6,)"), "whole numbers"},
      {"shape_plus", shape("(+6,)"), "whole numbers"},
      {"shape_long", shape("(6L,)"), "expected ',' or ')'"},
      {"shape_2_63", shape("(9223372036854775808,)"), "whole numbers"},
      {"shape_only_comma", shape("(,)"), "whole numbers"},
      {"shape_without_comma", shape("(2 3)"), "expected ',' or ')'"},
      {"shape_overflows", shape("(4294967296, 4294967296)"), "overflows"},
      {"shape_wraps_to_size", shape("(4611686018427387910,)"), "overflows"},
      {"shape_overflows_with_zero", shape("(0, 4294967296, 4294967296)"), "overflows"},
      // Data.
      {"data_truncated", npy_bytes(good, 23), "holds 23 bytes of data"},
      {"data_missing", npy_bytes(good, 0), "holds 0 bytes of data"},
      {"trailing_byte", npy_bytes(good, 25), "holds 25 bytes of data"},
      {"data_beyond_file", shape("(2305843009213693951,)"), "need 9223372036854775804"},
  };
}

}  // namespace tessera::testing
