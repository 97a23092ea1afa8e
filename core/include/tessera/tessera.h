#ifndef TESSERA_TESSERA_H
#define TESSERA_TESSERA_H
/**
 * Tessera in plain C99: exact attention for C, Fortran, Rust, Julia, Python's ctypes and whoever
 * else calls C. It has everything of the C++ interface but Kokkos views and the event hook.
 *
 *     int64_t shape[4] = {batch, heads, seq, dim};
 *     tessera_options options = {.size = sizeof options,
 *                                .mask = tessera_mask_causal,
 *                                .alignment = tessera_bottom_right};
 *     tessera_args args = {.size = sizeof args,
 *                          .query = tessera_bhsd(q, tessera_fp32, shape),
 *                          .key = tessera_bhsd(k, tessera_fp32, shape),
 *                          .value = tessera_bhsd(v, tessera_fp32, shape),
 *                          .out = tessera_bhsd(out, tessera_fp32, shape)};
 *     if (tessera_forward(&args, &options, NULL) != tessera_ok) puts(tessera_last_error());
 *
 * Structs. Zero is every field's default: clear a struct (`= {0}`, memset), set `size` to its
 * sizeof, and what else is needed. `size` lets library and caller be of different versions: what a
 * shorter struct lacks counts as zero; where a longer one holds anything but zero beyond what this
 * library knows, the call is tessera_unsupported. Fields called `reserved` must be 0. New fields
 * come at the end. There is no padding that the fields do not show on 64-bit machines.
 *
 * Errors. Functions that can fail return a tessera_status, and tessera_last_error() says more: the
 * argument, its value and what is allowed. Nothing throws through this interface, prints or exits.
 * What is wrong with the arguments is found before anything is written.
 *
 * Memory. `data` pointers are memory that the backend's device reads and writes; for a backend that
 * computes on the host that is any memory, else a tessera_buffer or the vendor's allocation.
 *
 * Threads. All functions may be called from several threads at once; one plan may be executed by
 * several. Last errors are a thread's own.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TESSERA_C_API __attribute__((visibility("default")))
#else
#define TESSERA_C_API
#endif

/* --- Numbers with names. They are int32_t everywhere, so that other languages know their size. --
 */

/** What a call came to. */
typedef int32_t tessera_status;
enum {
  tessera_ok = 0,
  tessera_invalid_argument = 1, /**< wrong on every backend: see tessera_last_error_argument */
  tessera_unsupported = 2,      /**< well-formed, but this build or device cannot do it */
  tessera_device_error = 3,     /**< the device or its runtime failed, maybe in an earlier call */
  tessera_out_of_memory = 4,    /**< the host has no memory left */
  tessera_internal_error = 5    /**< anything else; a fault of Tessera's */
};

/** Element type. Query, key, value and out: fp32, fp16 or bf16. */
typedef int32_t tessera_dtype;
enum {
  tessera_fp32 = 0,  /**< IEEE 754 binary32 */
  tessera_fp16 = 1,  /**< IEEE 754 binary16 */
  tessera_bf16 = 2,  /**< the upper half of a binary32 */
  tessera_int32 = 3, /**< indices: prefix sums, lengths */
  tessera_int64 = 4, /**< indices: prefix sums */
  tessera_uint8 = 5  /**< boolean masks: non-zero is visible */
};

/** Which function of attention a plan is for. */
typedef int32_t tessera_operation;
enum { tessera_op_forward = 0, tessera_op_backward = 1, tessera_op_decode = 2 };

/** Which keys a row sees: row i sees column j if i + diagonal - left <= j <= i + diagonal + right,
 * both edges inclusive. Lengths, ranges and boolean masks hide more. */
typedef int32_t tessera_mask;
enum {
  tessera_mask_none = 0,   /**< all */
  tessera_mask_causal = 1, /**< left unbounded, right 0 */
  tessera_mask_window = 2  /**< window_left and window_right */
};

/** Where the mask's diagonal leaves from: 0 for top_left, key_end - query_end for bottom_right
 * (packed: of the segment's lengths). There is no default: a mask but none needs one. */
typedef int32_t tessera_alignment;
enum { tessera_no_alignment = 0, tessera_top_left = 1, tessera_bottom_right = 2 };

/** Format in which products are accumulated. */
typedef int32_t tessera_accumulate;
enum { tessera_accumulate_fp32 = 0, tessera_accumulate_fp16 = 1 };

/** window_left or window_right without a bound. */
enum { tessera_unbounded = -1 };

/* --- Structs
 * --------------------------------------------------------------------------------------*/

/** A view of an operand; all zero: absent. Axes are batch, head, seq, dim, in this order. Of inputs
 * only reads are made. Outputs' elements must not overlap one another, nor an input's. */
typedef struct tessera_tensor {
  void* data; /**< first element; null only where there are no elements */
  tessera_dtype dtype;
  int32_t reserved;
  int64_t extent[4]; /**< elements along each axis, at least 0 */
  int64_t stride[4]; /**< distance of neighbours in elements, at least 0; dim's is 1 (or 0 in bias,
                          boolean_mask and dout). 0 repeats one slice (inputs only). Of an axis
                          with one element it means nothing */
} tessera_tensor;

/** A dense vector of indices, read only; all zero: absent. */
typedef struct tessera_vector {
  const void* data;
  tessera_dtype dtype; /**< must be set: tessera_int32, or for cu_seqlens_q and cu_seqlens_k
                            tessera_int64 */
  int32_t reserved;
  int64_t count; /**< number of elements */
} tessera_vector;

/** An ordered queue of work. A null pointer to it is the default stream of device 0. */
typedef struct tessera_stream {
  size_t size;  /**< sizeof(tessera_stream) */
  void* native; /**< cudaStream_t, hipStream_t (null: the legacy default stream), for Kokkos a
                     pointer to an execution space instance; not owned */
  int32_t device;
  int32_t reserved;
} tessera_stream;

/** The choices that do not change from call to call. A null pointer to it: all defaults. */
typedef struct tessera_options {
  size_t size; /**< sizeof(tessera_options) */
  tessera_mask mask;
  tessera_alignment alignment; /**< must be 0 for tessera_mask_none */
  int64_t window_left;         /**< keys before the diagonal, or tessera_unbounded; must be 0 */
  int64_t window_right;        /**< and after it            unless mask is tessera_mask_window */
  double dropout; /**< probability in [0, 1] that a weight is dropped, in steps of 2^-16 */
  tessera_accumulate accumulate;
  int32_t deterministic;   /**< 1: backward gives the same bits every time. Forward always does */
  int32_t batch_invariant; /**< 1: a row's bits do not depend on its neighbours in the batch */
  int32_t reserved;
  int64_t max_seq_q; /**< packed input: the longest segment, 0: as long as the whole tensor. */
  int64_t max_seq_k; /**< Must be 0 for input that is not packed */
} tessera_options;

/** The arguments of one call. What is absent is off.
 *
 * A score goes through scale, softcap, + bias and ALiBi, mask, softmax (with sinks), dropout. Query
 * head h reads key head h / (head_q / head_k). A row that sees no key gives 0 and lse -infinity.
 * For packed input a segment counts as a batch entry, and bias and boolean_mask are [segments,
 * head_q, longest query segment, longest key segment].
 *
 * Values in device memory are not validated but clamped to the extents; where the host can read
 * them, or with TESSERA_CHECK_VALUES=1 in the environment, they are looked at. */
typedef struct tessera_args {
  size_t size;          /**< sizeof(tessera_args) */
  tessera_tensor query; /**< [batch, head_q, seq_q, dim] fp32, fp16 or bf16 */
  tessera_tensor key;   /**< [batch, head_k, seq_k, dim], of query's dtype, as all but lse here */
  tessera_tensor value; /**< [batch, head_k, seq_k, dim_v] */
  tessera_tensor out;   /**< [batch, head_q, seq_q, dim_v]; backward only reads it, or computes it
                             again if it is absent */
  tessera_tensor lse;   /**< optional: [batch, head_q, seq_q, 1] fp32, natural log of the sum of
                             exp(score), sinks included; backward reads it, with out or alone, or
                             computes it again */

  /* Backward alone. */
  tessera_tensor dout;  /**< gradient of a loss with respect to out, like out; any strides, the
                             last 1 or 0 */
  tessera_tensor dlse;  /**< optional: with respect to lse, like lse; any strides */
  tessera_tensor dq;    /**< written, like query */
  tessera_tensor dk;    /**< written, like key; the query heads of a group are summed in fp32 */
  tessera_tensor dv;    /**< written, like value */
  tessera_tensor dbias; /**< optional, written, like bias; what an extent of 1 repeats is summed */
  tessera_tensor dsink; /**< optional, written, like sinks; summed over the batch */

  int32_t has_scale; /**< 1: the scores' factor is `scale`. 0: it is 1/sqrt(dim) */
  float scale;       /**< 1.1754944e-38 to 2.358e38 in size, or 0; must be 0 if has_scale is */
  float softcap;     /**< 0 to 2.358e38; cap * tanh(score / cap) if positive; 0 is off */
  int32_t reserved;

  tessera_tensor alibi_slopes; /**< [1 or batch, head_q, 1, 1] fp32: score - slope * |row + diagonal
                                    - column| */
  tessera_tensor bias; /**< [batch, head_q, seq_q, seq_k] fp32 or query's dtype; stride 0 or extent
                          1 broadcasts */
  tessera_tensor boolean_mask; /**< the same in uint8: non-zero is visible */
  tessera_tensor sinks; /**< [1, head_q, 1, 1] fp32: a natural-log logit that enlarges the sum */

  tessera_vector key_begin; /**< int32 [batch]: keys before it are padding. Absent: 0 */
  tessera_vector key_end;   /**< int32 [batch]: keys from it on are padding. Absent: seq_k */
  tessera_vector query_end; /**< int32 [batch]: rows from it on give out 0, lse -infinity */

  tessera_vector cu_seqlens_q; /**< packed: int32 or int64 [segments + 1], 0 = first <= ... <= last
                                    <= seq_q */
  tessera_vector cu_seqlens_k; /**< packed: the same for the keys */

  uint64_t seed;                 /**< dropout: Philox4x32-7 key */
  uint64_t offset;               /**< dropout: Philox4x32-7 counter */
  const uint64_t* seed_device;   /**< on the device; if not null, replaces seed */
  const uint64_t* offset_device; /**< on the device; if not null, replaces offset */

  void* workspace; /**< scratch memory on the device, 64-byte aligned; null: the backend's own */
  size_t workspace_size; /**< bytes, at least tessera_plan_workspace_size */
} tessera_args;

/** Constants of the build. The texts live for ever. */
typedef struct tessera_build {
  size_t size;            /**< in: sizeof(tessera_build) */
  const char* version;    /**< "0.1.0" */
  const char* backend;    /**< "kokkos", "cuda" or "hip" */
  const char* toolkit;    /**< the backend's library and its version */
  const char* compiler;   /**< "GNU 12.2.0" */
  const char* build_type; /**< "Release" */
  const char* head_dims;  /**< head dimension buckets that were built: "64;128;192;256;512" */
  const char* commit;     /**< abbreviated; "unknown" outside a checkout */
} tessera_build;

/** One device as the backend sees it. */
typedef struct tessera_device {
  size_t size;     /**< in: sizeof(tessera_device) */
  char name[128];  /**< the processor's or card's own name, cut if it is longer */
  char isa[32];    /**< instruction set in use: "avx512", "sm_90a" */
  char space[32];  /**< where kernels run: "OpenMP", "CUDA" */
  int32_t threads; /**< host threads that kernels use; 1 on a GPU */
  int32_t reserved;
  uint64_t memory; /**< bytes */
} tessera_device;

typedef struct tessera_plan tessera_plan;     /**< see tessera_plan_create */
typedef struct tessera_buffer tessera_buffer; /**< see tessera_buffer_create */

/* --- Errors
 * -----------------------------------------------------------------------------------------*/

/** Text of the calling thread's last call that failed; "" before any. Calls that succeed leave it.
 * Valid until this thread's next call that fails. */
TESSERA_C_API const char* tessera_last_error(void);
/** The argument that it was about, "key.stride.seq"; "" unless it was tessera_invalid_argument. */
TESSERA_C_API const char* tessera_last_error_argument(void);
/** "ok", "invalid argument"; never null. */
TESSERA_C_API const char* tessera_status_text(tessera_status status);

/* --- Tensors
 * ----------------------------------------------------------------------------------------*/

/** A dense [batch][head][seq][dim] array; extent[4] is batch, head, seq, dim, and not null. */
TESSERA_C_API tessera_tensor tessera_bhsd(void* data, tessera_dtype dtype, const int64_t* extent);
/** A dense [batch][seq][head][dim] array; extent[4] is batch, head, seq, dim all the same. Packed
 * operands, [total tokens][head][dim], are this with batch 1. */
TESSERA_C_API tessera_tensor tessera_bshd(void* data, tessera_dtype dtype, const int64_t* extent);
/** Bytes an element takes; 0 for a number that is no dtype. */
TESSERA_C_API size_t tessera_size_of(tessera_dtype dtype);

/* --- Attention in one call: plans and executes
 * -------------------------------------------------------*/

/** out = softmax(scale * Q K^T + bias) V, and lse if it is there. */
TESSERA_C_API tessera_status tessera_forward(const tessera_args* args,
                                             const tessera_options* options,
                                             const tessera_stream* stream);
/** dq, dk, dv (dbias, dsink) from dout (and dlse), with the options and values of forward. Keep of
 * forward's results what you like: out and lse, lse alone, or neither. */
TESSERA_C_API tessera_status tessera_backward(const tessera_args* args,
                                              const tessera_options* options,
                                              const tessera_stream* stream);
/** What forward computes, scheduled for one to a few query rows against many keys. */
TESSERA_C_API tessera_status tessera_decode(const tessera_args* args,
                                            const tessera_options* options,
                                            const tessera_stream* stream);
/** Would a plan be made? tessera_ok, or why not, with the last error's text. Looks at shapes, which
 * operands are there and how their addresses are aligned; reads no data. */
TESSERA_C_API tessera_status tessera_supports(tessera_operation operation, const tessera_args* args,
                                              const tessera_options* options);

/* --- Plan once, execute often
 * ------------------------------------------------------------------------*/

/** Validates, picks kernel and schedule, launches nothing. The plan serves all arguments of the
 * same shapes, with addresses at least as aligned; no data is read, so that any address of the
 * alignment to come will do. On failure *plan becomes null. */
TESSERA_C_API tessera_status tessera_plan_create(tessera_plan** plan, tessera_operation operation,
                                                 const tessera_args* args,
                                                 const tessera_options* options);
/** Null is allowed. Work that was queued goes on. */
TESSERA_C_API void tessera_plan_destroy(tessera_plan* plan);
/** Computes on `stream`: asynchronous on devices with streams; on the host it returns when done. */
TESSERA_C_API tessera_status tessera_plan_execute(const tessera_plan* plan,
                                                  const tessera_args* args,
                                                  const tessera_stream* stream);
/* What a plan says of itself; 0 or "" for null. Texts live as long as the plan. */
TESSERA_C_API size_t tessera_plan_workspace_size(const tessera_plan* plan); /**< bytes */
TESSERA_C_API int64_t
tessera_plan_splits(const tessera_plan* plan); /**< of a row's keys; 1: none */
/** The probability with which weights are dropped in fact. */
TESSERA_C_API double tessera_plan_realised_dropout(const tessera_plan* plan);
TESSERA_C_API const char* tessera_plan_kernel(const tessera_plan* plan); /**< its dotted name */
/** For people: kernel, tile, splits, workspace and why, a line each. */
TESSERA_C_API const char* tessera_plan_describe(const tessera_plan* plan);

/* --- Device memory and streams
 * -----------------------------------------------------------------------*/

/** Device memory, aligned to at least 128 bytes, its contents uninitialised. On failure *buffer
 * becomes null: tessera_invalid_argument if there is no such device, tessera_device_error if it has
 * not that much. */
TESSERA_C_API tessera_status tessera_buffer_create(tessera_buffer** buffer, size_t bytes,
                                                   int32_t device);
TESSERA_C_API void tessera_buffer_destroy(tessera_buffer* buffer);      /**< null is allowed */
TESSERA_C_API void* tessera_buffer_data(tessera_buffer* buffer);        /**< null for null */
TESSERA_C_API size_t tessera_buffer_size(const tessera_buffer* buffer); /**< bytes; 0 for null */
/** Copies between host and device memory in any direction, after what the stream holds already.
 * Host memory may be reused when the stream has been synchronised. */
TESSERA_C_API tessera_status tessera_copy(void* destination, const void* source, size_t bytes,
                                          const tessera_stream* stream);
/** Waits until everything queued so far is done; tessera_device_error if any of it failed. */
TESSERA_C_API tessera_status tessera_synchronize(const tessera_stream* stream);

/* --- What was built, and what it runs on
 * -------------------------------------------------------------*/

/** Version of the library, "0.1.0". Before 1.0 a new minor version is a new interface. */
TESSERA_C_API const char* tessera_version(void);
/** Fills what `build->size` has room for and clears the rest. */
TESSERA_C_API tessera_status tessera_build_info(tessera_build* build);
/** Devices of the backend that this build has: 1 on host spaces. */
TESSERA_C_API tessera_status tessera_device_count(int32_t* count);
/** `device` must be in [0, count). Fills what `info->size` has room for and clears the rest. */
TESSERA_C_API tessera_status tessera_device_info(int32_t device, tessera_device* info);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TESSERA_TESSERA_H */
