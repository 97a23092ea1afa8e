// The cache of answers: what it may give back and what it must not.

#include "tests/conformance/answer.hpp"

#include <unistd.h>

#include <fstream>

#include <gtest/gtest.h>

namespace tessera::testing {
namespace {

namespace fs = std::filesystem;

class AnswerFile : public ::testing::Test {
 protected:
  AnswerFile()
      : folder_(fs::temp_directory_path() / ("tessera-answer-" + std::to_string(::getpid()))),
        cache_(folder_) {
    Operands operands({.dtype = DType::bf16, .head_q = 2, .head_k = 1, .seq_q = 9, .seq_k = 17});
    answer_ = compute_answer(operands);
    answer_.seconds = 1;  // worth keeping
  }
  ~AnswerFile() override { fs::remove_all(folder_); }

  std::string contents() const {
    std::ifstream file(cache_.path_of(kKey), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& text) const {
    std::ofstream(cache_.path_of(kKey), std::ios::binary | std::ios::trunc) << text;
  }

  static constexpr const char* kKey = "0123456789abcdef";
  fs::path folder_;
  AnswerCache cache_;
  Answer answer_;
};

TEST_F(AnswerFile, GivesBackWhatItWasGiven) {
  EXPECT_FALSE(cache_.find(kKey));
  cache_.keep(kKey, answer_);
  const std::optional<Answer> found = cache_.find(kKey);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->cached);
  EXPECT_EQ(found->seconds, answer_.seconds);
  EXPECT_EQ(found->ref.out, answer_.ref.out);
  EXPECT_EQ(found->ref.lse, answer_.ref.lse);
  EXPECT_EQ(found->ref.magnitude, answer_.ref.magnitude);
  EXPECT_EQ(found->ref.score_magnitude, answer_.ref.score_magnitude);
  EXPECT_EQ(found->low.out, answer_.low.out);
  EXPECT_EQ(found->low.lse, answer_.low.lse);
  EXPECT_EQ(found->low.dim, 64);
  EXPECT_EQ(found->ref.seq, 9);
}

TEST_F(AnswerFile, DoesNotKeepWhatIsFasterToCompute) {
  answer_.seconds = 1e-6;
  cache_.keep(kKey, answer_);
  EXPECT_FALSE(fs::exists(cache_.path_of(kKey)));
}

TEST_F(AnswerFile, NoticesEveryChangedByte) {
  cache_.keep(kKey, answer_);
  const std::string good = contents();
  ASSERT_GT(good.size(), 100u);
  for (std::size_t i = 0; i < good.size(); i += i < 64 ? 1 : 97) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    write(bad);
    EXPECT_FALSE(cache_.find(kKey)) << "byte " << i;
  }
  write(good);
  EXPECT_TRUE(cache_.find(kKey));
}

TEST_F(AnswerFile, NoticesTruncationAndGarbage) {
  cache_.keep(kKey, answer_);
  const std::string good = contents();
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{5}, good.size() / 2, good.size() - 1}) {
    write(good.substr(0, size));
    EXPECT_FALSE(cache_.find(kKey)) << size;
  }
  write(good + "x");
  EXPECT_FALSE(cache_.find(kKey));
}

TEST_F(AnswerFile, IsNotFoundUnderAnotherKey) {
  cache_.keep(kKey, answer_);
  fs::copy_file(cache_.path_of(kKey), cache_.path_of("another"));
  EXPECT_FALSE(cache_.find("another"));
}

TEST_F(AnswerFile, OldestGoFirstWhenThereAreTooMany) {
  cache_.keep(kKey, answer_);
  const std::uint64_t size = contents().size();
  for (int i = 0; i < 8; ++i) {
    const std::string key = "key" + std::to_string(i);
    cache_.keep(key, answer_);
    fs::last_write_time(cache_.path_of(key),
                        fs::file_time_type::clock::now() - std::chrono::hours(10 - i));
  }
  AnswerCache(folder_, 100 * size).prune();
  EXPECT_TRUE(cache_.find("key0"));
  AnswerCache(folder_, 6 * size).prune();
  EXPECT_FALSE(cache_.find("key0"));
  EXPECT_TRUE(cache_.find("key7"));
  EXPECT_TRUE(cache_.find(kKey));
}

TEST_F(AnswerFile, FolderThatCannotBeWrittenIsNoError) {
  const AnswerCache nowhere("/proc/no-such-folder");
  nowhere.keep(kKey, answer_);
  EXPECT_FALSE(nowhere.find(kKey));
  nowhere.prune();
}

}  // namespace
}  // namespace tessera::testing
