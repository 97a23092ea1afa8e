#include <algorithm>
#include <limits>

#include "core/src/check_spec.hpp"
#include "core/src/operands.hpp"
#include "core/src/text.hpp"
#include "core/src/validate.hpp"

namespace tessera::detail {
namespace {

void check_enumerators(const Problem& p) {
  const auto check = [](std::string_view name, auto value, auto last, std::string_view allowed) {
    if (value > last) refuse(name, concat(static_cast<std::int64_t>(value)), allowed);
  };
  check("operation", p.operation, Operation::decode, "must be an enumerator of Operation");
  check("options.accumulate", p.options.accumulate, Accumulate::fp16,
        "must be Accumulate::fp32 or Accumulate::fp16");
  if (p.options.mask.alignment()) {
    check("options.mask.alignment", *p.options.mask.alignment(), Alignment::BottomRight,
          "must be Alignment::TopLeft or Alignment::BottomRight");
  }
}

// What this version does not compute at all; the rules for its operands are not known yet.
void check_scope(const Problem& p) {
  if (p.paged) {
    decline(
        "this version reads no paged key and value: contiguous ones of any strides work, also "
        "packed by cu_seqlens_k");
  }
}

void check_heads(std::int64_t head_q, std::int64_t head_k) {
  if (head_k == 0 && head_q != 0) {
    refuse(
        "key.extent.head", "0",
        concat("must be at least 1 for query.extent.head (", head_q, ") to be a multiple of it"));
  }
  if (head_k != 0 && head_q % head_k != 0) {
    refuse("query.extent.head", concat(head_q),
           concat("must be a multiple of key.extent.head (", head_k, ")"));
  }
}

// One number a row: lse and its gradient.
void check_per_row(const char* name, const TensorSpec& spec, const Problem& p) {
  check_dtype(name, spec.dtype, DType::fp32);
  check_extents(name, spec);
  check_equal(name, spec, "query", p.query, kBatch);
  check_equal(name, spec, "query", p.query, kHead);
  check_equal(name, spec, "query", p.query, kSeq);
  if (spec.extent.dim != 1)
    refuse(concat(name, ".extent.dim"), concat(spec.extent.dim), "must be 1: one number a row");
}

// Out and its gradient.
void check_like_out(const char* name, const TensorSpec& spec, const Problem& p) {
  check_dtype_as_query(name, p, spec);
  check_extents(name, spec);
  check_agree(name, spec, "query", p.query, kBatch);
  check_agree(name, spec, "query", p.query, kHead);
  check_agree(name, spec, "query", p.query, kSeq);
  check_agree(name, spec, "value", p.value, kDim);
}

const TensorSpec& required(const char* name, const std::optional<TensorSpec>& spec) {
  if (!spec) refuse(name, "missing", "must be a tensor [batch, head, seq, dim]");
  return *spec;
}

void check_query_key_value_out(const Problem& p) {
  if (p.query.dtype != DType::fp32 && p.query.dtype != DType::fp16 &&
      p.query.dtype != DType::bf16) {
    refuse("query.dtype", to_string(p.query.dtype), "must be fp32, fp16 or bf16");
  }
  check_dtype_as_query("key", p, p.key);
  check_dtype_as_query("value", p, p.value);
  check_extents("query", p.query);
  check_extents("key", p.key);
  check_extents("value", p.value);

  check_agree("key", p.key, "query", p.query, kBatch);
  check_agree("key", p.key, "query", p.query, kDim);
  check_agree("value", p.value, "key", p.key, kBatch);
  check_agree("value", p.value, "key", p.key, kHead);
  check_agree("value", p.value, "key", p.key, kSeq);
  check_heads(p.query.extent.head, p.key.extent.head);

  const bool backward = p.operation == Operation::backward;
  const Access access = backward ? Access::Read : Access::Write;
  if (p.out || !backward) check_like_out("out", required("out", p.out), p);
  if (p.lse) check_per_row("lse", *p.lse, p);

  check_strides("query", p.query, Access::Read);
  check_strides("key", p.key, Access::Read);
  check_strides("value", p.value, Access::Read);
  if (p.out) check_strides("out", *p.out, access);
  if (p.lse) check_strides("lse", *p.lse, access);
  if (backward && p.out && !p.lse) {
    refuse("lse", "missing",
           "must be given together with out; without both, backward computes them again");
  }
}

void check_like(const char* name, const TensorSpec& spec, const char* other,
                const TensorSpec& model) {
  check_dtype(name, spec.dtype, model.dtype);
  check_extents(name, spec);
  for (const std::size_t axis : {kBatch, kHead, kSeq, kDim})
    check_equal(name, spec, other, model, axis);
  check_strides(name, spec, Access::Write);
}

void check_gradients(const Problem& p) {
  if (p.operation != Operation::backward) return;
  const TensorSpec& dout = required("dout", p.dout);
  check_like_out("dout", dout, p);
  check_strides("dout", dout, Access::Repeated);
  if (p.dlse) {
    check_per_row("dlse", *p.dlse, p);
    check_strides("dlse", *p.dlse, Access::Read);
  }
  check_like("dq", required("dq", p.dq), "query", p.query);
  check_like("dk", required("dk", p.dk), "key", p.key);
  check_like("dv", required("dv", p.dv), "value", p.value);
  const auto check_of = [](const char* name, const std::optional<TensorSpec>& gradient,
                           const char* of, const std::optional<TensorSpec>& input) {
    if (!gradient) return;
    if (!input) refuse(name, "given", concat("must be absent without ", of));
    check_like(name, *gradient, of, *input);
  };
  check_of("dbias", p.dbias, "bias", p.bias);
  check_of("dsink", p.dsink, "sinks", p.sinks);
}

void check_packed(const Problem& p) {
  const auto check_max = [&](std::string_view name, std::int64_t max, std::string_view total_name,
                             std::int64_t total) {
    if (max < 0) refuse(name, concat(max), "must be at least 0");
    if (!p.packed && max != 0)
      refuse(name, concat(max), "must be 0 unless the input is packed by cu_seqlens");
    if (max > total)
      refuse(name, concat(max), concat("must be at most ", total_name, " (", total, ")"));
  };
  check_max("options.max_seq_q", p.options.max_seq_q, "query.extent.seq", p.query.extent.seq);
  check_max("options.max_seq_k", p.options.max_seq_k, "key.extent.seq", p.key.extent.seq);
  if (!p.packed) return;
  const auto check_index = [](const char* name, DType dtype) {
    if (dtype != DType::int32 && dtype != DType::int64)
      refuse(name, to_string(dtype), "must be int32 or int64");
  };
  check_index("cu_seqlens_q.dtype", p.packed->dtype_q);
  check_index("cu_seqlens_k.dtype", p.packed->dtype_k);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 8 - 1;
  if (p.packed->segments < 0 || p.packed->segments > kMost) {
    refuse("packed.segments", concat(p.packed->segments),
           concat("must be from 0 to ", kMost, ": cu_seqlens_q holds segments + 1 numbers"));
  }
  if (p.query.extent.batch != 1) {
    refuse("query.extent.batch", concat(p.query.extent.batch),
           "must be 1 for packed input: segments follow one another along seq");
  }
}

// An extent of a score modifier: the problem's own, or 1, which broadcasts.
void check_broadcast(const char* name, const TensorSpec& spec, std::size_t axis,
                     std::string_view model, std::int64_t must) {
  const std::int64_t is = spec.extent.*kAxes[axis].extent;
  if (is != must && is != 1) {
    refuse(concat(name, ".extent.", kAxes[axis].name), concat(is),
           concat("must be ", model, " (", must, ") or 1"));
  }
}

void check_score_operand(const char* name, const TensorSpec& spec, const Problem& p) {
  const Sizes sizes = sizes_of(p);
  check_extents(name, spec);
  check_broadcast(name, spec, kBatch, p.packed ? "the number of segments" : "query.extent.batch",
                  sizes.batch);
  check_broadcast(name, spec, kHead, "query.extent.head", p.query.extent.head);
  check_broadcast(name, spec, kSeq,
                  p.packed ? "the longest query segment, options.max_seq_q" : "query.extent.seq",
                  sizes.seq_q);
  check_broadcast(name, spec, kDim,
                  p.packed ? "the longest key segment, options.max_seq_k" : "key.extent.seq",
                  sizes.seq_k);
  check_strides(name, spec, Access::Repeated);
}

void check_per_head(const char* name, const TensorSpec& spec, const Problem& p) {
  check_dtype(name, spec.dtype, DType::fp32);
  check_extents(name, spec);
  check_equal(name, spec, "query", p.query, kHead);
  for (const std::size_t axis : {kSeq, kDim}) {
    const std::int64_t is = spec.extent.*kAxes[axis].extent;
    if (is != 1)
      refuse(concat(name, ".extent.", kAxes[axis].name), concat(is),
             "must be 1: one number a head");
  }
}

void check_modifiers(const Problem& p) {
  if (p.alibi_slopes) {
    check_per_head("alibi_slopes", *p.alibi_slopes, p);
    check_broadcast("alibi_slopes", *p.alibi_slopes, kBatch,
                    p.packed ? "the number of segments" : "query.extent.batch", sizes_of(p).batch);
    check_strides("alibi_slopes", *p.alibi_slopes, Access::Read);
  }
  if (p.sinks) {
    check_per_head("sinks", *p.sinks, p);
    if (p.sinks->extent.batch != 1) {
      refuse("sinks.extent.batch", concat(p.sinks->extent.batch),
             "must be 1: the batch shares its sinks");
    }
    check_strides("sinks", *p.sinks, Access::Read);
  }
  if (p.bias) {
    if (p.bias->dtype != DType::fp32 && p.bias->dtype != p.query.dtype) {
      refuse("bias.dtype", to_string(p.bias->dtype),
             concat("must be fp32 or query.dtype (", p.query.dtype, ")"));
    }
    check_score_operand("bias", *p.bias, p);
  }
  if (p.boolean_mask) {
    check_dtype("boolean_mask", p.boolean_mask->dtype, DType::uint8);
    check_score_operand("boolean_mask", *p.boolean_mask, p);
  }
}

void check_options(const Problem& p) {
  const Options& o = p.options;
  if (o.mask.left() && *o.mask.left() < 0) {
    refuse("options.mask.left", concat(*o.mask.left()),
           "must be at least 0; std::nullopt is unbounded");
  }
  if (o.mask.right() && *o.mask.right() < 0) {
    refuse("options.mask.right", concat(*o.mask.right()),
           "must be at least 0; std::nullopt is unbounded");
  }
  if (!(o.dropout >= 0 && o.dropout <= 1)) {
    refuse("options.dropout", concat(o.dropout), "must be a probability in [0, 1]");
  }
  if (o.accumulate == Accumulate::fp16 && p.query.dtype != DType::fp16) {
    refuse("options.accumulate", "Accumulate::fp16",
           concat("must be Accumulate::fp32 unless query.dtype (", p.query.dtype, ") is fp16"));
  }
}

bool is_head_dimension(std::int64_t dim) {
  return dim > 0 && dim % 8 == 0 && (dim <= 256 || dim == 512);
}

// "query.extent.dim is 12; must be a multiple of 8 …: <how> 16<rest>"; the advice only where it
// can be followed.
void decline_head_dimension(std::string_view name, std::int64_t is, std::int64_t longest,
                            std::string_view also, std::string_view how, std::string_view rest) {
  const std::int64_t next = is <= longest ? (is + 7) / 8 * 8 : 512;
  const bool can_be_padded = is > 0 && is < 512;
  decline(concat(name, " is ", is, "; must be a multiple of 8 from 8 to ", longest, also,
                 can_be_padded ? concat(": ", how, " ", next, rest) : ""));
}

void check_head_dimensions(const Problem& p) {
  const std::int64_t dim = p.query.extent.dim, dim_v = p.value.extent.dim;
  const std::int64_t widest = std::max(dim, dim_v);
  const bool backward = p.operation == Operation::backward;
  if (backward && widest > 256) {
    decline(concat("gradients for head dimension ", widest,
                   ": backward works from 8 to 256, forward and decode for 512, too"));
  }
  const std::string_view also = backward ? "" : ", or 512";
  if (!is_head_dimension(dim)) {
    decline_head_dimension("query.extent.dim", dim, 256, also, "pad query and key with zeros to",
                           concat(", and set scale to 1/√", dim));
  }
  const bool beside_512 = dim == 512 && dim_v > 0 && dim_v <= 512 && dim_v % 8 == 0;
  if (!is_head_dimension(dim_v) && !beside_512) {
    decline_head_dimension("value.extent.dim", dim_v, dim == 512 ? 512 : 256,
                           dim == 512 ? "" : also, "pad value with zeros, and out, to", "");
  }
}

// Well-formed, but beyond this version.
void check_supported(const Problem& p) {
  check_head_dimensions(p);
  if (p.options.accumulate == Accumulate::fp16 && p.operation == Operation::backward) {
    decline(
        "options.accumulate is Accumulate::fp16: gradients are accumulated in fp32, by backward "
        "with Accumulate::fp32");
  }
  if (p.options.batch_invariant) {
    decline(
        "options.batch_invariant is not in this version: a batch of one gives bits that depend on "
        "no neighbour");
  }
  if (p.packed) {
    for (const RangeVector& range : kRangeVectors) {
      if (p.*range.given) {
        decline(concat(
            range.name,
            " together with cu_seqlens is not in this version: prefix sums alone work, and ranges "
            "work for input that is not packed"));
      }
    }
  }
  if (p.options.dropout > 0) {
    // The counter of the random numbers has 32 bits for each.
    constexpr Wide kCounts = Wide{1} << 32;
    const Sizes sizes = sizes_of(p);
    if (Wide{sizes.batch} * p.query.extent.head >= kCounts || sizes.seq_q >= kCounts ||
        sizes.seq_k / 8 >= kCounts) {
      decline(concat("dropout with ", sizes.batch, " × ", p.query.extent.head, " heads, ",
                     sizes.seq_q, " rows and ", sizes.seq_k,
                     " keys: works below 2^32 heads in all, 2^32 rows and 2^35 keys"));
    }
  }
}

}  // namespace

void validate(const Problem& problem) {
  check_enumerators(problem);
  check_scope(problem);
  check_query_key_value_out(problem);
  check_packed(problem);
  check_modifiers(problem);
  check_gradients(problem);
  check_options(problem);
  check_supported(problem);
}

}  // namespace tessera::detail
