// <forward|backward|decode>/…/<preset>/b<batch>/k<key heads>/<bhsd|bshd>: shapes of models that
// exist. From a preset's own point, one axis at a time changes: batch, groups, layout.

#include <vector>

#include "bench/register.hpp"

namespace tessera::bench {
namespace {

// 32 query and 8 key heads: Llama 3 8B, and Mistral with its window.
constexpr Case kLlama{.dtype = DType::bf16,
                      .head_dim = 128,
                      .visible = Visible::Causal,
                      .seq = 2048,
                      .preset = "llama",
                      .heads = 32,
                      .key_heads = 8,
                      .layout = Layout::Bshd};
constexpr Case kMistral{.dtype = DType::bf16,
                        .head_dim = 128,
                        .visible = Visible::Window,
                        .seq = 8192,
                        .preset = "mistral",
                        .heads = 32,
                        .key_heads = 8,
                        .window = 4096,
                        .layout = Layout::Bshd};
// BERT base, 512 tokens; ViT base, 196 patches and a class token.
constexpr Case kBert{.dtype = DType::bf16,
                     .head_dim = 64,
                     .seq = 512,
                     .preset = "bert",
                     .batch = 8,
                     .heads = 12,
                     .layout = Layout::Bshd};
constexpr Case kVit{.dtype = DType::bf16,
                    .head_dim = 64,
                    .seq = 197,
                    .preset = "vit",
                    .batch = 32,
                    .heads = 12,
                    .layout = Layout::Bshd};
// DeepSeek's prefill: 128 + 64 dimensions for scores, 128 for values.
constexpr Case kMla{.dtype = DType::bf16,
                    .head_dim = 192,
                    .visible = Visible::Causal,
                    .seq = 2048,
                    .preset = "mla",
                    .heads = 16,
                    .head_dim_v = 128,
                    .layout = Layout::Bshd};
// 64 documents of all lengths in one packed sequence.
constexpr Case kDocuments{.dtype = DType::bf16,
                          .head_dim = 64,
                          .visible = Visible::Causal,
                          .seq = 16384,
                          .preset = "documents",
                          .heads = 12,
                          .documents = 64,
                          .layout = Layout::Bshd};

Case with_batch(Case c, std::int64_t batch) {
  c.batch = batch;
  return c;
}
Case with_key_heads(Case c, std::int64_t heads) {
  c.key_heads = heads;
  return c;
}
Case with_layout(Case c, Layout layout) {
  c.layout = layout;
  return c;
}
Case as(Operation operation, Case c) {
  c.operation = operation;
  return c;
}

Case decoding(std::int64_t batch, std::int64_t key_heads, Layout layout) {
  Case c = as(Operation::decode, kLlama);
  c.batch = batch;
  c.key_heads = key_heads;
  c.layout = layout;
  c.seq = 8192;
  return c;
}

}  // namespace

std::vector<Case> preset_cases() {
  return {
      kLlama,
      with_batch(kLlama, 4),
      with_key_heads(kLlama, 32),
      with_key_heads(kLlama, 1),
      with_layout(kLlama, Layout::Bhsd),
      kMistral,
      kBert,
      with_batch(kBert, 1),
      with_layout(kBert, Layout::Bhsd),
      kVit,
      with_batch(kVit, 1),
      with_layout(kVit, Layout::Bhsd),
      kMla,
      kDocuments,
      as(Operation::backward, kLlama),
      as(Operation::backward, with_layout(kLlama, Layout::Bhsd)),
      as(Operation::backward, kBert),
      as(Operation::backward, kVit),
      as(Operation::backward, kMla),
      as(Operation::backward, kDocuments),
      decoding(1, 8, Layout::Bhsd),
      decoding(1, 8, Layout::Bshd),
      decoding(8, 8, Layout::Bhsd),
      decoding(1, 32, Layout::Bhsd),
      decoding(1, 1, Layout::Bhsd),
  };
}

}  // namespace tessera::bench
