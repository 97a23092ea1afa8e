// Device memory that is owned, copies, streams, and what the build and its devices say of
// themselves.

#include <gtest/gtest.h>

#include <cctype>
#include <cstdint>
#include <limits>
#include <numeric>
#include <type_traits>

#include "tests/unit/src/call.hpp"

namespace tessera::testing {
namespace {

static_assert(!std::is_copy_constructible_v<Buffer> && !std::is_copy_assignable_v<Buffer>);
static_assert(std::is_nothrow_move_constructible_v<Buffer> &&
              std::is_nothrow_move_assignable_v<Buffer>);
static_assert(std::is_nothrow_copy_constructible_v<Plan> &&
              std::is_nothrow_copy_assignable_v<Plan>);
static_assert(std::is_trivially_copyable_v<Stream>);

TEST(Buffer, IsEmptyByDefault) {
  const Buffer buffer;
  EXPECT_EQ(buffer.data(), nullptr);
  EXPECT_EQ(buffer.size(), 0u);
  EXPECT_EQ(buffer.device(), 0);
}

TEST(Buffer, IsAligned) {
  for (const std::size_t bytes : {0u, 1u, 127u, 128u, 5000u}) {
    const Buffer buffer(bytes);
    EXPECT_NE(buffer.data(), nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 128, 0u);
    EXPECT_EQ(buffer.size(), bytes);
  }
}

TEST(Buffer, Moves) {
  Buffer first(64);
  void* const data = first.data();
  Buffer second(std::move(first));
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(first.data(), nullptr);  // NOLINT(bugprone-use-after-move): what is moved from is empty
  EXPECT_EQ(first.size(), 0u);
  Buffer third(32);
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.size(), 64u);
  EXPECT_EQ(second.data(), nullptr);  // NOLINT(bugprone-use-after-move): likewise
  Buffer& same = third;
  third = std::move(same);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.size(), 64u);
  first = Buffer(16);
  EXPECT_EQ(first.size(), 16u);
}

TEST(Buffer, RefusesDevicesThatAreNotThere) {
  for (const int device : {-1, device_count()}) {
    const Thrown thrown = thrown_by([&] { Buffer(64, device); });
    EXPECT_EQ(thrown.kind, Thrown::Kind::InvalidArgument);
    EXPECT_TRUE(thrown.text.starts_with("device is " + std::to_string(device) +
                                        "; must be in [0, device_count())"));
  }
}

TEST(Buffer, FailsForMoreMemoryThanThereIs) {
  EXPECT_EQ(thrown_by([] { Buffer{std::numeric_limits<std::size_t>::max() / 2}; }).kind,
            Thrown::Kind::DeviceError);
  EXPECT_EQ(thrown_by([] { Buffer{std::numeric_limits<std::size_t>::max()}; }).kind,
            Thrown::Kind::DeviceError);
}

// A number without a unit says nothing; what else there is to say is the device's.
TEST(Buffer, FailsInBytes) {
  const Thrown thrown = thrown_by([] { Buffer{std::numeric_limits<std::size_t>::max() / 2}; });
  ASSERT_FALSE(thrown.text.empty());
  EXPECT_FALSE(std::isdigit(static_cast<unsigned char>(thrown.text.back())) != 0) << thrown.text;
  if (thrown.text.find("the host has") != std::string::npos) {
    EXPECT_TRUE(matches(thrown.text,
                        "allocating 9223372036854775807 bytes failed: the host has * bytes of "
                        "memory"))
        << thrown.text;
  }
}

TEST(Copy, ThereAndBack) {
  std::vector<int> numbers(1000), back(1000);
  std::iota(numbers.begin(), numbers.end(), 7);
  const std::size_t bytes = numbers.size() * sizeof(int);
  Buffer first(bytes), second(bytes);
  copy(first.data(), numbers.data(), bytes);
  copy(second.data(), first.data(), bytes);
  copy(back.data(), second.data(), bytes);
  Stream{}.synchronize();
  EXPECT_EQ(back, numbers);
}

TEST(Copy, RefusesWhatIsWrong) {
  char bytes[16] = "untouched";
  char other[16] = {};
  const auto text = [](auto work) {
    const Thrown thrown = thrown_by(work);
    EXPECT_EQ(thrown.kind, Thrown::Kind::InvalidArgument) << thrown.text;
    return thrown.text;
  };
  EXPECT_EQ(text([&] { copy(nullptr, bytes, 4); }), "destination is null; must point to 4 bytes");
  EXPECT_EQ(text([&] { copy(bytes, nullptr, 4); }), "source is null; must point to 4 bytes");
  EXPECT_TRUE(matches(
      text([&] { copy(bytes + 3, bytes, 4); }),
      "destination is 0x*; must not overlap the bytes that are read, from source (0x*) on"));
  EXPECT_TRUE(
      matches(text([&] { copy(bytes, bytes + 3, 4); }), "destination is 0x*; must not overlap *"));
  EXPECT_TRUE(
      matches(text([&] { copy(bytes, bytes, 1); }), "destination is 0x*; must not overlap *"));
  EXPECT_TRUE(matches(text([&] { copy(bytes, other, std::numeric_limits<std::size_t>::max()); }),
                      "destination is 0x*; bytes from there must not run past the end of memory"));
  EXPECT_TRUE(matches(text([&] { copy(bytes, other, 4, Stream::from_native(nullptr, -3)); }),
                      "stream.device is -3; *"));
  EXPECT_STREQ(bytes, "untouched");
}

TEST(Copy, NothingIsLegal) {
  EXPECT_NO_THROW(copy(nullptr, nullptr, 0));
  char byte = 0;
  EXPECT_NO_THROW(copy(&byte, &byte, 0));
  char two[2] = {'a', 'b'};
  EXPECT_NO_THROW(copy(two + 1, two, 1));  // neighbours do not overlap
}

TEST(Stream, IsAHandle) {
  int native = 0;
  const Stream stream = Stream::from_native(&native, 3);
  EXPECT_EQ(stream.native(), &native);
  EXPECT_EQ(stream.device(), 3);
  EXPECT_EQ(stream, Stream::from_native(&native, 3));
  EXPECT_NE(stream, Stream{});
}

TEST(Stream, Synchronizes) {
  EXPECT_NO_THROW(Stream{}.synchronize());
  const Thrown thrown = thrown_by([] { Stream::from_native(nullptr, -1).synchronize(); });
  EXPECT_EQ(thrown.kind, Thrown::Kind::InvalidArgument);
  EXPECT_TRUE(thrown.text.starts_with("stream.device is -1; must be in [0, device_count())"));
}

TEST(Info, Version) {
  EXPECT_EQ(library_version(), kHeaderVersion);
  EXPECT_EQ(to_string(Version{1, 20, 3}), "1.20.3");
  EXPECT_EQ(kHeaderVersion,
            (Version{TESSERA_VERSION_MAJOR, TESSERA_VERSION_MINOR, TESSERA_VERSION_PATCH}));
  EXPECT_EQ(build_info().version, library_version());
}

TEST(Info, Build) {
  const BuildInfo info = build_info();
  for (const std::string_view text :
       {info.backend, info.toolkit, info.compiler, info.build_type, info.head_dims, info.commit}) {
    EXPECT_FALSE(text.empty());
  }
}

TEST(Info, Devices) {
  ASSERT_GE(device_count(), 1);
  for (int device = 0; device < device_count(); ++device) {
    const DeviceInfo info = device_info(device);
    EXPECT_FALSE(info.name.empty());
    EXPECT_FALSE(info.isa.empty());
    EXPECT_FALSE(info.space.empty());
    EXPECT_GE(info.threads, 1);
  }
  for (const int device : {-1, device_count(), std::numeric_limits<int>::min()}) {
    const Thrown thrown = thrown_by([&] { device_info(device); });
    EXPECT_EQ(thrown.kind, Thrown::Kind::InvalidArgument);
    EXPECT_EQ(thrown.argument, "device");
  }
}

TEST(DTypes, HaveNamesAndSizes) {
  const struct {
    DType type;
    std::string_view name;
    std::int64_t size;
  } all[] = {{DType::fp32, "fp32", 4},   {DType::fp16, "fp16", 2},   {DType::bf16, "bf16", 2},
             {DType::int32, "int32", 4}, {DType::int64, "int64", 8}, {DType::uint8, "uint8", 1}};
  for (const auto& [type, name, size] : all) {
    EXPECT_EQ(to_string(type), name);
    EXPECT_EQ(size_of(type), size);
  }
  EXPECT_EQ(to_string(static_cast<DType>(200)), "unknown");
  EXPECT_EQ(size_of(static_cast<DType>(200)), 0);
}

TEST(Errors, SayWhatTheyAre) {
  const InvalidArgument error("value.extent.seq", "is 511; must equal key.extent.seq (512)");
  EXPECT_STREQ(error.what(), "value.extent.seq is 511; must equal key.extent.seq (512)");
  EXPECT_EQ(error.argument(), "value.extent.seq");
  EXPECT_THROW(throw InvalidArgument("a", "b"), Error);
  EXPECT_THROW(throw Unsupported("a"), Error);
  EXPECT_THROW(throw DeviceError("a"), std::runtime_error);
}

}  // namespace
}  // namespace tessera::testing
