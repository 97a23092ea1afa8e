#include "tests/conformance/operands.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <tessera/attention.hpp>
#include <tessera/stream.hpp>

#include "tests/conformance/layout.hpp"
#include "tests/conformance/random.hpp"

namespace tessera::testing {
namespace {

constexpr std::int64_t kMargin = 64;  // guard elements around outputs, padding behind inputs

std::shared_ptr<Block> block_of(std::int64_t elements, DType dtype) {
  return std::make_shared<Block>(static_cast<std::size_t>(elements * size_of(dtype)));
}

Slot input_slot(const Case& c, const Extents& extent, Role role, Layout layout) {
  const Placement at = place(extent, layout, role);
  const std::int64_t tail = c.exact_end ? 0 : kMargin;
  return {block_of(at.elements + tail, c.dtype), c.dtype, at.offset, extent, at.stride};
}

Slot output_slot(const Extents& extent, DType dtype, Layout layout, Role role) {
  const Placement at = place_written(extent, layout, role);
  return {block_of(at.elements + 2 * kMargin, dtype), dtype, at.offset + kMargin, extent,
          at.stride};
}

// Each number once, where strides of 0 repeat it.
template <class Change>
void change(const Slot& slot, Change to) {
  slot.each([&](auto b, auto h, auto s, auto d) {
    if (b > 0 && slot.stride.batch == 0) return;
    if (h > 0 && slot.stride.head == 0) return;
    if (s > 0 && slot.stride.seq == 0) return;
    if (d > 0 && slot.stride.dim == 0) return;
    slot.set(b, h, s, d, to(slot.get(b, h, s, d)));
  });
}

// Values and dout with a mean, where few roundings stand between an answer and its bound. The
// rule's floor counts a product of dO and V as one number: where its terms cancel each other, and
// the row's gradient is next to 0, the floor lies below the rounding of fp32 sums, and whether two
// right computations pass is luck.
void raise(const Slot& slot, double by) {
  change(slot, [by](double number) { return number + by; });
}

// Queries and keys whose products fp32 sums exactly, in whatever order, and fp16 does not hold. A
// sum that lies between two numbers of fp16 is rounded up by one right computation and down by
// another if their fp32 sums differ in the last bit; where the roundings of a row's other scores
// cancel each other in the plain computation, that one is above the bound of its lse.
void make_products_exact(const Slot& slot) {
  change(slot, [](double number) { return std::nearbyint(number * 32) / 32; });
}

double draw(Random& random, Distribution distribution, Role role) {
  const double normal = random.normal();
  switch (distribution) {
    case Distribution::gaussian:
      return normal;
    case Distribution::skewed:
      return role == Role::value ? 1.0 + normal * normal * normal
                                 : 0.2 + 0.3 * normal * normal * normal;
    case Distribution::large:
      return 3.0 * normal;
    case Distribution::integers:
      return std::clamp(std::nearbyint(3.0 * normal), -8.0, 8.0);
    case Distribution::alike:
    case Distribution::sink:
      return role == Role::query ? normal : 1.37 + 0.01 * normal;
  }
  return normal;
}

void fill(const Slot& slot, Random random, Distribution distribution, Role role) {
  slot.each([&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
    slot.set(b, h, s, d, draw(random, distribution, role));
  });
}

// NaN into rows [begin, end) of a batch.
void hide_rows(const Slot& slot, std::int64_t batch, std::int64_t begin, std::int64_t end) {
  for (std::int64_t h = 0; h < slot.extent.head; ++h) {
    for (std::int64_t s = std::max<std::int64_t>(begin, 0); s < std::min(end, slot.extent.seq);
         ++s) {
      for (std::int64_t d = 0; d < slot.extent.dim; ++d) slot.set(batch, h, s, d, std::nan(""));
    }
  }
}

bool repeats(Layout layout) {
  return layout == Layout::repeated_batch || layout == Layout::repeated_seq;
}

void hide_padding(const Case& c, const Operands& operands) {
  for (std::int64_t b = 0; b < c.batch && !c.packed; ++b) {
    const auto i = static_cast<std::size_t>(b);
    if (!c.query_end.empty()) hide_rows(operands.query, b, c.query_end[i], c.seq_q);
    for (const Slot* slot : {&operands.key, &operands.value}) {
      if (repeats(c.layout)) continue;  // what is padding here may be visible elsewhere
      if (!c.key_begin.empty()) hide_rows(*slot, b, 0, c.key_begin[i]);
      if (!c.key_end.empty()) hide_rows(*slot, b, c.key_end[i], c.seq_k);
    }
  }
  if (c.packed && c.slack_k > 0 && !repeats(c.layout)) {
    hide_rows(operands.key, 0, c.total_k() - c.slack_k, c.total_k());
    hide_rows(operands.value, 0, c.total_k() - c.slack_k, c.total_k());
  }
}

Numbers indices(const std::vector<std::int64_t>& numbers, DType dtype) {
  Numbers result{block_of(static_cast<std::int64_t>(numbers.size()), dtype), dtype,
                 static_cast<std::int64_t>(numbers.size())};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (dtype == DType::int64) {
      reinterpret_cast<std::int64_t*>(result.block->host())[i] = numbers[i];
    } else {
      reinterpret_cast<std::int32_t*>(result.block->host())[i] =
          static_cast<std::int32_t>(numbers[i]);
    }
  }
  return result;
}

Numbers range(const std::vector<std::int32_t>& numbers) {
  if (numbers.empty()) return {};
  return indices({numbers.begin(), numbers.end()}, DType::int32);
}

Numbers prefix_sums(const std::vector<std::int64_t>& lengths, DType dtype) {
  std::vector<std::int64_t> sums{0};
  for (const std::int64_t length : lengths) sums.push_back(sums.back() + length);
  return indices(sums, dtype);
}

// A score modifier [batch or segments, head_q, longest_q, longest_k], repeated along the axes of
// `broadcast`.
Slot score_slot(const Case& c, DType dtype, unsigned broadcast) {
  Extents extent{.batch = c.packed ? c.segments() : c.batch,
                 .head = c.head_q,
                 .seq = c.longest_q(),
                 .dim = c.longest_k()};
  Extents stored = extent;
  if ((broadcast & kOverBatch) != 0) stored.batch = 1;
  if ((broadcast & kOverHead) != 0) stored.head = 1;
  if ((broadcast & kOverRow) != 0) stored.seq = 1;
  if ((broadcast & kOverColumn) != 0) stored.dim = 1;
  Strides stride = bhsd_strides(stored);
  const std::int64_t elements = stored.batch * stored.head * stored.seq * stored.dim;
  if ((broadcast & kByStride) != 0) {
    if ((broadcast & kOverBatch) != 0) stride.batch = 0;
    if ((broadcast & kOverHead) != 0) stride.head = 0;
    if ((broadcast & kOverRow) != 0) stride.seq = 0;
    if ((broadcast & kOverColumn) != 0) stride.dim = 0;
  } else {
    extent = stored;
  }
  return {block_of(elements, dtype), dtype, 0, extent, stride};
}

void make_modifiers(const Case& c, Operands& operands) {
  const std::int64_t batches = c.packed ? c.segments() : c.batch;
  if (c.alibi != Alibi::none) {
    const Extents extent{.batch = c.alibi == Alibi::per_batch ? batches : 1, .head = c.head_q};
    operands.alibi_slopes = {block_of(extent.batch * extent.head, DType::fp32),
                             DType::fp32,
                             0,
                             extent,
                             {.batch = extent.head, .head = 1}};
    Random random(c.fill ^ 0xa11b1u);
    operands.alibi_slopes.each([&](auto b, auto h, auto s, auto d) {
      const double slope = std::ldexp(0.5 + 0.5 * random.uniform(), -6 - static_cast<int>(h % 7));
      operands.alibi_slopes.set(b, h, s, d, c.negative_slopes ? -slope : slope);
    });
  }
  if (c.bias != Bias::none) {
    operands.bias = score_slot(c, c.bias == Bias::fp32 ? DType::fp32 : c.dtype, c.bias_broadcast);
    fill(operands.bias, Random(c.fill ^ 0xb1a5u), Distribution::gaussian, Role::query);
  }
  if (c.boolean_mask) {
    operands.boolean_mask = score_slot(c, DType::uint8, c.boolean_broadcast);
    Random random(c.fill ^ 0xb001u);
    operands.boolean_mask.each([&](auto b, auto h, auto s, auto d) {
      const bool visible = random.chance(c.visible);
      operands.boolean_mask.set(b, h, s, d,
                                visible ? static_cast<double>(random.between(1, 255)) : 0.0);
    });
  }
  if (c.sinks) {
    operands.sinks = {
        block_of(c.head_q, DType::fp32), DType::fp32, 0, {.head = c.head_q}, {.head = 1}};
    fill(operands.sinks, Random(c.fill ^ 0x51cc5u), Distribution::gaussian, Role::query);
  }
}

void make_tensors(const Case& c, Operands& operands) {
  const std::int64_t batch = c.packed ? 1 : c.batch;
  const Extents q{.batch = batch, .head = c.head_q, .seq = c.total_q(), .dim = c.dim};
  const Extents k{.batch = batch, .head = c.head_k, .seq = c.total_k(), .dim = c.dim};
  const Extents v{.batch = batch, .head = c.head_k, .seq = c.total_k(), .dim = c.dim_v};
  const Extents o{.batch = batch, .head = c.head_q, .seq = c.total_q(), .dim = c.dim_v};
  if (c.layout == Layout::fused_qkv) {
    const Fused at = place_fused(q, k, v);
    const auto block = block_of(at.query.elements + (c.exact_end ? 0 : kMargin), c.dtype);
    operands.query = {block, c.dtype, at.query.offset, q, at.query.stride};
    operands.key = {block, c.dtype, at.key.offset, k, at.key.stride};
    operands.value = {block, c.dtype, at.value.offset, v, at.value.stride};
  } else {
    operands.query = input_slot(c, q, Role::query, c.layout);
    operands.key = input_slot(c, k, Role::key, c.layout);
    operands.value = input_slot(c, v, Role::value, c.layout);
  }
  operands.out = output_slot(o, c.dtype, c.layout, Role::out);
  if (c.lse || c.operation == Operation::backward) {
    const Extents rows{.batch = batch, .head = c.head_q, .seq = c.total_q()};
    operands.lse = output_slot(rows, DType::fp32, c.layout, Role::lse);
  }
  fill(operands.query, Random(c.fill * 3 + 1), c.distribution, Role::query);
  fill(operands.key, Random(c.fill * 3 + 2), c.distribution, Role::key);
  fill(operands.value, Random(c.fill * 3 + 3), c.distribution, Role::value);
  if (c.distribution == Distribution::sink) {
    std::int64_t i = 0;  // the first key of the first head
    change(operands.key, [&](double number) { return i++ < c.dim ? 3 * number : number; });
  }
  if (c.accumulate == Accumulate::fp16) {
    make_products_exact(operands.query);
    make_products_exact(operands.key);
  }
}

// Gradients of the three in one array, if the layout says so: then stores of one neighbour
// another's.
void make_written_gradients(const Case& c, Operands& operands) {
  const Layout layout = c.gradient_layout.value_or(c.layout);
  const Extents& q = operands.query.extent;
  const Extents& k = operands.key.extent;
  const Extents& v = operands.value.extent;
  if (layout == Layout::fused_qkv) {
    const Fused at = place_fused(q, k, v);
    const auto block = block_of(at.query.elements + 2 * kMargin, c.dtype);
    operands.dq = {block, c.dtype, at.query.offset + kMargin, q, at.query.stride};
    operands.dk = {block, c.dtype, at.key.offset + kMargin, k, at.key.stride};
    operands.dv = {block, c.dtype, at.value.offset + kMargin, v, at.value.stride};
  } else {
    operands.dq = output_slot(q, c.dtype, layout, Role::query);
    operands.dk = output_slot(k, c.dtype, layout, Role::key);
    operands.dv = output_slot(v, c.dtype, layout, Role::value);
  }
  if (c.dbias && operands.bias) {
    operands.dbias =
        output_slot(operands.bias.extent, operands.bias.dtype, Layout::padded, Role::query);
  }
  if (c.dsink && operands.sinks) {
    const Extents& heads = operands.sinks.extent;
    operands.dsink = {block_of(2 * heads.head + 2 * kMargin, DType::fp32),
                      DType::fp32,
                      kMargin,
                      heads,
                      {.head = 2}};
  }
}

void make_gradients(const Case& c, Operands& operands) {
  const Layout layout = c.dout_layout.value_or(c.layout);
  operands.dout = input_slot(c, operands.out.extent, Role::dout, layout);
  fill(operands.dout, Random(c.fill * 3 + 0xd0u), c.distribution, Role::value);
  if (c.dtype == DType::fp32 || c.dbias || c.dsink) {
    const double mean = c.distribution == Distribution::large ? 6 : 2;
    raise(operands.value, mean);
    raise(operands.dout, mean);
  }
  // dbias is the gradient of each score itself, in fp32: the rounding of lse, which grows with the
  // scores and which the floor does not count either, stands in it undivided.
  if (c.dbias) change(operands.query, [](double number) { return number / 2; });
  if (c.dlse) {
    operands.dlse = output_slot(operands.lse.extent, DType::fp32, layout, Role::lse);
    fill(operands.dlse, Random(c.fill * 3 + 0xd15eu), Distribution::gaussian, Role::query);
  }
  make_written_gradients(c, operands);
  for (std::int64_t b = 0; b < c.batch && !c.packed && !c.query_end.empty(); ++b) {
    const std::int64_t end = c.query_end[static_cast<std::size_t>(b)];
    if (!repeats(layout)) hide_rows(operands.dout, b, end, c.seq_q);
    if (operands.dlse) hide_rows(operands.dlse, b, end, c.seq_q);
  }
}

// Bytes of the slot's memory with every element of all slots that share it poisoned again: what is
// not poison then was written outside of the elements.
bool damaged(const Slot& slot, const std::vector<const Slot*>& all) {
  std::vector<std::byte> bytes(slot.block->host(), slot.block->host() + slot.block->size());
  const auto width = static_cast<std::size_t>(size_of(slot.dtype));
  for (const Slot* other : all) {
    if (other->block != slot.block) continue;
    other->each([&](auto b, auto h, auto s, auto d) {
      std::memset(bytes.data() + static_cast<std::size_t>(other->index(b, h, s, d)) * width,
                  kPoison, width);
    });
  }
  return std::any_of(bytes.begin(), bytes.end(),
                     [](std::byte byte) { return byte != std::byte{kPoison}; });
}

void append_bits(const Slot& slot, std::vector<std::uint8_t>& bits) {
  const auto width = static_cast<std::size_t>(size_of(slot.dtype));
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(slot.block->host());
  slot.each([&](auto b, auto h, auto s, auto d) {
    const auto* element = bytes + static_cast<std::size_t>(slot.index(b, h, s, d)) * width;
    bits.insert(bits.end(), element, element + width);
  });
}

}  // namespace

Operands::Operands(const Case& c) : operation(c.operation), keep(c.keep), query_ends_(c.query_end) {
  options.mask = c.mask;
  options.dropout = c.dropout;
  options.accumulate = c.accumulate;
  make_tensors(c, *this);
  make_modifiers(c, *this);
  if (operation == Operation::backward) make_gradients(c, *this);
  hide_padding(c, *this);
  key_begin = range(c.key_begin);
  key_end = range(c.key_end);
  query_end = range(c.query_end);
  if (c.packed) {
    const DType dtype = c.wide_prefix_sums ? DType::int64 : DType::int32;
    cu_seqlens_q = prefix_sums(c.lengths_q, dtype);
    cu_seqlens_k = prefix_sums(c.lengths_k, dtype);
    if (c.states_maximum) {
      options.max_seq_q = c.longest_q();
      options.max_seq_k = c.longest_k();
    }
  }
  if (c.seed_on_device) {
    seed_and_offset = indices(
        {static_cast<std::int64_t>(c.seed), static_cast<std::int64_t>(c.offset)}, DType::int64);
  } else {
    scalars.seed = c.seed;
    scalars.offset = c.offset;
  }
  scalars.scale = c.scale;
  scalars.softcap = c.softcap;
}

Args Operands::args(Side side) const {
  Args args = forward_args(side);
  if (operation != Operation::backward) return args;
  if (keep != Keep::both) args.out = {};
  if (keep == Keep::nothing) args.lse = {};
  args.dout = dout.input(side);
  args.dlse = dlse.input(side);
  args.dq = dq.output(side);
  args.dk = dk.output(side);
  args.dv = dv.output(side);
  args.dbias = dbias.output(side);
  args.dsink = dsink.output(side);
  return args;
}

Args Operands::forward_args(Side side) const {
  Args args = scalars;
  args.query = query.input(side);
  args.key = key.input(side);
  args.value = value.input(side);
  args.out = out.output(side);
  args.lse = lse.output(side);
  args.alibi_slopes = alibi_slopes.input(side);
  args.bias = bias.input(side);
  args.boolean_mask = boolean_mask.input(side);
  args.sinks = sinks.input(side);
  args.key_begin = key_begin.input(side);
  args.key_end = key_end.input(side);
  args.query_end = query_end.input(side);
  args.cu_seqlens_q = cu_seqlens_q.input(side);
  args.cu_seqlens_k = cu_seqlens_k.input(side);
  if (seed_and_offset.block != nullptr) {
    const auto* numbers = static_cast<const std::uint64_t*>(seed_and_offset.block->data(side));
    args.seed_device = numbers;
    args.offset_device = numbers + 1;
  }
  return args;
}

std::vector<Block*> Operands::inputs() const {
  std::vector<Block*> blocks;
  const auto add = [&](const std::shared_ptr<Block>& block) {
    if (block != nullptr && std::find(blocks.begin(), blocks.end(), block.get()) == blocks.end()) {
      blocks.push_back(block.get());
    }
  };
  for (const Slot* slot :
       {&query, &key, &value, &alibi_slopes, &bias, &boolean_mask, &sinks, &dout, &dlse}) {
    add(slot->block);
  }
  if (operation == Operation::backward) {
    add(out.block);
    add(lse.block);
  }
  for (const Numbers* numbers :
       {&key_begin, &key_end, &query_end, &cu_seqlens_q, &cu_seqlens_k, &seed_and_offset}) {
    add(numbers->block);
  }
  return blocks;
}

void Operands::upload() {
  for (Block* block : inputs()) block->upload();
}

std::vector<const Slot*> Operands::outputs() const {
  std::vector<const Slot*> slots;
  const auto add = [&](const Slot& slot) {
    if (slot) slots.push_back(&slot);
  };
  if (operation == Operation::backward) {
    for (const Slot* slot : {&dq, &dk, &dv, &dbias, &dsink}) add(*slot);
  } else {
    add(out);
    add(lse);
  }
  return slots;
}

void Operands::poison_outputs() {
  for (const Slot* slot : outputs()) {
    slot->block->poison();
    slot->block->upload();
  }
}

void Operands::download_outputs() {
  for (const Slot* slot : outputs()) slot->block->download();
}

std::string Operands::damage() const {
  const std::vector<const Slot*> all = outputs();
  const std::array kNames = operation == Operation::backward
                                ? std::array{"dq", "dk", "dv", "dbias or dsink", "dsink"}
                                : std::array{"out", "lse", "", "", ""};
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (damaged(*all[i], all)) return std::string("memory around ") + kNames[i] + " was written";
  }
  return {};
}

std::vector<std::uint8_t> Operands::result_bits() const {
  std::vector<std::uint8_t> bits;
  for (const Slot* slot : outputs()) append_bits(*slot, bits);
  return bits;
}

void Operands::fill_results() {
  fill_results([&](const Args& args) { forward(args, options); });
}

void Operands::fill_results(const std::function<void(const Args&)>& forward) {
  upload();
  forward(forward_args(Side::device));
  Stream().synchronize();
  out.block->download();
  lse.block->download();
  hide_results();
  out.block->upload();
  lse.block->upload();
}

void Operands::set_results(const reference::Forward& ref) const {
  const auto set = [](const Slot& slot, const std::vector<double>& numbers) {
    std::size_t i = 0;
    slot.each([&](auto b, auto h, auto s, auto d) { slot.set(b, h, s, d, numbers[i++]); });
  };
  set(out, ref.out);
  set(lse, ref.lse);
  hide_results();
}

void Operands::hide_results() const {
  for (std::size_t b = 0; b < query_ends_.size(); ++b) {
    for (const Slot* slot : {&out, &lse})
      hide_rows(*slot, static_cast<std::int64_t>(b), query_ends_[b], slot->extent.seq);
  }
}

std::string Operands::changed_input() {
  for (Block* block : inputs()) {
    const std::vector<std::byte> before(block->host(), block->host() + block->size());
    block->download();
    if (!std::equal(before.begin(), before.end(), block->host())) return "an input was written";
  }
  return {};
}

}  // namespace tessera::testing
