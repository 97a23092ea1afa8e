#include "core/kernel/work_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <tuple>
#include <vector>

namespace tessera::testing {
namespace {

using kernel::Heaviest;
using kernel::Index;
using kernel::WorkItem;
using kernel::WorkOrder;

std::vector<WorkItem> items(const WorkOrder& order) {
  std::vector<WorkItem> all;
  all.reserve(static_cast<std::size_t>(order.size()));
  for (Index task = 0; task < order.size(); ++task) all.push_back(order.item(task));
  return all;
}

// Every (batch, head, block) exactly once, given the blocks of each batch.
void expect_each_once(const WorkOrder& order, const std::vector<Index>& blocks) {
  std::map<std::tuple<Index, Index, Index>, int> count;
  for (const WorkItem& item : items(order)) ++count[{item.batch, item.head, item.block}];
  std::size_t expected = 0;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (Index h = 0; h < order.head_q; ++h) {
      for (Index i = 0; i < blocks[b]; ++i, ++expected)
        ASSERT_EQ((count[{static_cast<Index>(b), h, i}]), 1);
    }
  }
  ASSERT_EQ(count.size(), expected);
}

constexpr Heaviest kAll[] = {Heaviest::None, Heaviest::Last, Heaviest::First};

TEST(WorkOrder, EveryItemOnce) {
  for (const Heaviest heaviest : kAll) {
    for (const Index batch : {0, 1, 3}) {
      for (const auto& [head_q, head_k] : {std::pair<Index, Index>{1, 1}, {6, 2}, {5, 1}, {4, 4}}) {
        for (const Index blocks : {0, 1, 2, 7}) {
          expect_each_once({batch, head_q, head_k, blocks, heaviest},
                           std::vector<Index>(static_cast<std::size_t>(batch), blocks));
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(WorkOrder, NarrowIndicesGiveTheSameItems) {
  const std::vector<Index> prefix{0, 3, 3, 4, 9};
  for (const Heaviest heaviest : kAll) {
    for (const bool packed : {false, true}) {
      WorkOrder order{4, 6, 2, 5, heaviest, packed ? prefix.data() : nullptr};
      for (const bool together : {false, true}) {
        order.heads_together = together;
        for (Index task = 0; task < order.size(); ++task) {
          const WorkItem wide = order.item(task);
          const WorkItem narrow = order.item(static_cast<std::uint32_t>(task));
          EXPECT_EQ(std::tie(narrow.batch, narrow.head, narrow.block),
                    std::tie(wide.batch, wide.head, wide.block));
        }
      }
    }
  }
}

TEST(WorkOrder, HeaviestBlocksFirst) {
  for (const Heaviest heaviest : {Heaviest::Last, Heaviest::First}) {
    const auto all = items({3, 6, 2, 5, heaviest});
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [&](const WorkItem& a, const WorkItem& b) {
      return heaviest == Heaviest::Last ? a.block > b.block : a.block < b.block;
    }));
  }
}

// What reads the same keys is contiguous: a group's heads always, all blocks of a key head where
// blocks are equal.
TEST(WorkOrder, SharedKeysAreNeighbours) {
  constexpr Index kGroup = 3;
  for (const Heaviest heaviest : kAll) {
    const auto all = items({2, 6, 2, 4, heaviest});
    const std::size_t run = kGroup * (heaviest == Heaviest::None ? 4 : 1);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const WorkItem& first = all[i / run * run];
      EXPECT_EQ(all[i].batch, first.batch);
      EXPECT_EQ(all[i].head / kGroup, first.head / kGroup);
    }
  }
}

TEST(WorkOrder, MasksSayWhatIsHeaviest) {
  constexpr Index kOpen = kernel::kUnbounded;
  EXPECT_EQ(kernel::heaviest(kOpen, kOpen), Heaviest::None);
  EXPECT_EQ(kernel::heaviest(kOpen, 0), Heaviest::Last);
  EXPECT_EQ(kernel::heaviest(kOpen, 100), Heaviest::Last);
  EXPECT_EQ(kernel::heaviest(0, kOpen), Heaviest::First);
  EXPECT_EQ(kernel::heaviest(128, 0), Heaviest::None);
}

// All blocks of a head follow one another, heaviest first inside it.
TEST(WorkOrder, HeadsTogether) {
  for (const Heaviest heaviest : kAll) {
    WorkOrder order{2, 6, 2, 4, heaviest};
    order.heads_together = true;
    expect_each_once(order, {4, 4});
    const auto all = items(order);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const WorkItem& first = all[i / 12 * 12];  // three heads that share keys, four blocks each
      EXPECT_EQ(all[i].batch, first.batch);
      EXPECT_EQ(all[i].head / 3, first.head / 3);
      const Index rank = static_cast<Index>(i) % 12 / 3;
      EXPECT_EQ(all[i].block, heaviest == Heaviest::Last ? 3 - rank : rank);
    }
  }
}

// Compared with the work itself: keys that each block of rows sees.
TEST(WorkOrder, WeightsNeverGrow) {
  for (const auto& [left, right] : {std::pair<Index, Index>{kernel::kUnbounded, 0},
                                    {0, kernel::kUnbounded},
                                    {kernel::kUnbounded, 5}}) {
    kernel::ForwardArguments a;
    a.batch = 2, a.head_q = 4, a.head_k = 2, a.seq_q = a.seq_k = 100, a.left = left,
    a.right = right;
    const WorkOrder order = kernel::work_order(a, 16, nullptr);
    EXPECT_EQ(order.size(), 2 * 4 * 7);
    Index before = 1 << 20;
    for (const WorkItem& item : items(order)) {
      const Index first = item.block * 16, last = std::min<Index>(100, first + 16);
      const auto any = kernel::sequence(a, item.batch).band.any_of(first, last);
      EXPECT_LE(any.end - any.begin, before);
      before = any.end - any.begin;
    }
  }
}

// Of keys: rows that see each block.
TEST(WorkOrder, WeightsOfKeysNeverGrow) {
  for (const auto& [left, right] : {std::pair<Index, Index>{kernel::kUnbounded, 0},
                                    {0, kernel::kUnbounded},
                                    {kernel::kUnbounded, 5}}) {
    kernel::ForwardArguments a;
    a.batch = 2, a.head_q = 4, a.head_k = 2, a.seq_q = a.seq_k = 100, a.left = left,
    a.right = right;
    const WorkOrder order = kernel::key_work_order(a, 16, nullptr);
    expect_each_once(order, {7, 7});
    EXPECT_EQ(order.size(), 2 * 2 * 7);
    Index before = 1 << 20;
    for (const WorkItem& item : items(order)) {
      const Index first = item.block * 16, last = std::min<Index>(100, first + 16);
      const auto rows = kernel::sequence(a, item.batch).band.seeing(first, last, 100);
      EXPECT_LE(rows.end - rows.begin, before);
      before = rows.end - rows.begin;
    }
  }
}

TEST(WorkOrder, PackedSegmentsOfAnyLength) {
  std::mt19937 random(6);
  for (int repeat = 0; repeat < 300; ++repeat) {
    const std::size_t segments = random() % 12;
    std::vector<std::int32_t> sums{0};
    std::vector<Index> blocks;
    Index longest = 0;
    for (std::size_t s = 0; s < segments; ++s) {
      const std::int32_t lengths[] = {0, 0, 1, 15, 16, 17, 200};  // many segments are empty
      const std::int32_t length = lengths[random() % std::size(lengths)];
      sums.push_back(sums.back() + length);
      blocks.push_back((length + 15) / 16);
      longest = std::max<Index>(longest, length);
    }
    kernel::ForwardArguments a;
    a.batch = static_cast<Index>(segments), a.head_q = 6, a.head_k = 3, a.seq_q = longest,
    a.seq_k = 7;
    a.total_q = sums.back(), a.total_k = 7;
    a.cu_seqlens_q = {sums.data(), false}, a.cu_seqlens_k = {sums.data(), false};
    if (repeat % 2) a.right = 0;
    std::vector<Index> prefix(segments + 1, -1);
    kernel::build_block_prefix(a, 16, prefix.data());
    WorkOrder order = kernel::work_order(a, 16, prefix.data());
    order.heads_together = repeat % 3 == 0;
    expect_each_once(order, blocks);
    if (HasFatalFailure()) return;
    a.seq_k = longest, a.total_k = a.total_q;  // the keys' segments are the rows'
    kernel::build_key_block_prefix(a, 16, prefix.data());
    expect_each_once(kernel::key_work_order(a, 16, prefix.data()), blocks);
    if (HasFatalFailure()) return;
  }
}

TEST(WorkOrder, FindsSegments) {
  const std::vector<Index> prefix{0, 0, 3, 3, 3, 4, 10, 10};
  const std::vector<Index> expected{1, 1, 1, 4, 5, 5, 5, 5, 5, 5};
  for (Index x = 0; x < 10; ++x) {
    EXPECT_EQ(kernel::find_segment(prefix.data(), 7, x), expected[static_cast<std::size_t>(x)]);
  }
}

// More tasks than 32 bits count.
TEST(WorkOrder, HugeCounts) {
  const Index batch = 100000, head_q = 96, head_k = 8, blocks = Index{1} << 34;
  for (const Heaviest heaviest : kAll) {
    const WorkOrder order{batch, head_q, head_k, blocks, heaviest};
    EXPECT_EQ(order.size(), batch * head_q * blocks);
    const WorkItem last = order.item(order.size() - 1);
    EXPECT_EQ(last.batch, batch - 1);
    EXPECT_EQ(last.head, head_q - 1);
    EXPECT_EQ(last.block, heaviest == Heaviest::Last ? 0 : blocks - 1);
  }
  const Index prefix[] = {0, Index{1} << 34, Index{1} << 40};
  const WorkOrder packed{2, head_q, head_k, 0, Heaviest::None, prefix};
  EXPECT_EQ(packed.item(packed.size() - 1).block, (Index{1} << 40) - (Index{1} << 34) - 1);
}

TEST(WorkOrder, CountsBlocks) {
  EXPECT_EQ(kernel::count_blocks(0, 16), 0);
  EXPECT_EQ(kernel::count_blocks(1, 16), 1);
  EXPECT_EQ(kernel::count_blocks(16, 16), 1);
  EXPECT_EQ(kernel::count_blocks(17, 16), 2);
  EXPECT_EQ(kernel::count_blocks((Index{1} << 62) + 1, 2), (Index{1} << 61) + 1);
}

}  // namespace
}  // namespace tessera::testing
