#include "tests/conformance/answer.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <vector>

#include "tests/conformance/digest.hpp"

// Fingerprint of the reference's sources, from the build: answers of another reference are not
// found.
#ifndef TESSERA_REFERENCE_DIGEST
#error "TESSERA_REFERENCE_DIGEST must be set by the build"
#endif

namespace tessera::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMagic = 0x33305f524552'4554;  // "TEREF_03" or so; changes with the format

struct Header {
  std::uint64_t magic = kMagic;
  std::uint64_t size = 0;  // of the payload
  std::uint64_t checksum = 0;
};

std::uint64_t checksum(const std::string& key, const std::string& payload) {
  Digest digest;
  digest.add(key.data(), key.size());
  digest.add(payload.data(), payload.size());
  return digest.low();
}

template <class T>
void put(std::string& payload, const std::vector<T>& numbers) {
  const std::uint64_t count = numbers.size();
  payload.append(reinterpret_cast<const char*>(&count), sizeof count);
  payload.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T));
}

class Reader {
 public:
  explicit Reader(const std::string& payload) : payload_(payload) {}

  template <class T>
  bool take(std::vector<T>& numbers) {
    std::uint64_t count = 0;
    if (!take(&count, sizeof count) || count > payload_.size() / sizeof(T)) return false;
    numbers.resize(count);
    return take(numbers.data(), count * sizeof(T));
  }
  bool at_end() const { return position_ == payload_.size(); }

 private:
  bool take(void* to, std::size_t size) {
    if (payload_.size() - position_ < size) return false;
    if (size > 0) std::memcpy(to, payload_.data() + position_, size);
    position_ += size;
    return true;
  }

  const std::string& payload_;
  std::size_t position_ = 0;
};

std::vector<std::int64_t> extents(const reference::Forward& f) {
  return {f.batch, f.head, f.seq, f.dim};
}

// low's out has been rounded to the output type: floats hold it.
std::vector<float> narrow(const std::vector<double>& numbers) {
  std::vector<float> floats(numbers.size());
  std::transform(numbers.begin(), numbers.end(), floats.begin(),
                 [](double number) { return static_cast<float>(number); });
  return floats;
}

// The vectors of gradients, in the order of the file.
template <class Gradients, class Visit>
void each_gradient(Gradients& gradients, Visit visit) {
  for (auto* numbers :
       {&gradients.dq, &gradients.dk, &gradients.dv, &gradients.dbias, &gradients.dsink}) {
    visit(*numbers);
  }
}
template <class Gradients, class Visit>
void each_magnitude(Gradients& gradients, Visit visit) {
  for (auto* numbers : {&gradients.dq_magnitude, &gradients.dk_magnitude, &gradients.dv_magnitude,
                        &gradients.dbias_magnitude, &gradients.dsink_magnitude}) {
    visit(*numbers);
  }
}

bool is_narrow(const std::vector<double>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double number) {
    return std::isnan(number) || static_cast<double>(static_cast<float>(number)) == number;
  });
}

bool is_narrow(const Answer& answer) {
  bool narrow = is_narrow(answer.low.out);
  each_gradient(answer.low_gradients,
                [&](const std::vector<double>& numbers) { narrow = narrow && is_narrow(numbers); });
  return narrow;
}

std::size_t numbers_in(const Answer& answer) {
  std::size_t count = answer.ref.out.size();
  each_gradient(answer.gradients,
                [&](const std::vector<double>& numbers) { count += numbers.size(); });
  return count;
}

std::string pack(const Answer& answer) {
  std::string payload;
  put(payload, std::vector<double>{answer.seconds});
  put(payload, extents(answer.ref));
  put(payload, answer.ref.out);
  put(payload, answer.ref.lse);
  put(payload, answer.ref.magnitude);
  put(payload, answer.ref.score_magnitude);
  put(payload, narrow(answer.low.out));
  put(payload, answer.low.lse);
  const auto put_wide = [&](const std::vector<double>& numbers) { put(payload, numbers); };
  each_gradient(answer.gradients, put_wide);
  each_magnitude(answer.gradients, put_wide);
  each_gradient(answer.low_gradients,
                [&](const std::vector<double>& numbers) { put(payload, narrow(numbers)); });
  return payload;
}

std::optional<Answer> unpack(const std::string& payload) {
  Reader reader(payload);
  Answer answer{.cached = true};
  std::vector<double> seconds;
  std::vector<std::int64_t> extent;
  std::vector<float> low;
  bool whole = reader.take(seconds) && reader.take(extent) && reader.take(answer.ref.out) &&
               reader.take(answer.ref.lse) && reader.take(answer.ref.magnitude) &&
               reader.take(answer.ref.score_magnitude) && reader.take(low) &&
               reader.take(answer.low.lse);
  const auto take_wide = [&](std::vector<double>& numbers) {
    whole = whole && reader.take(numbers);
  };
  each_gradient(answer.gradients, take_wide);
  each_magnitude(answer.gradients, take_wide);
  each_gradient(answer.low_gradients, [&](std::vector<double>& numbers) {
    std::vector<float> floats;
    whole = whole && reader.take(floats);
    numbers.assign(floats.begin(), floats.end());
  });
  whole = whole && reader.at_end();
  if (!whole || seconds.size() != 1 || extent.size() != 4) return std::nullopt;
  answer.seconds = seconds[0];
  for (reference::Forward* forward : {&answer.ref, &answer.low}) {
    forward->batch = extent[0];
    forward->head = extent[1];
    forward->seq = extent[2];
    forward->dim = extent[3];
  }
  answer.low.out.assign(low.begin(), low.end());
  return answer;
}

// Reading and checking a byte back takes about this long; an answer that is computed faster is not
// worth keeping.
constexpr double kSecondsPerByte = 5e-9;
constexpr double kSecondsPerFile = 1e-3;

void add(Digest& digest, const Slot& slot) {
  digest.add(static_cast<bool>(slot));
  if (!slot) return;
  digest.add(slot.dtype);
  digest.add(slot.offset);
  for (const std::int64_t extent :
       {slot.extent.batch, slot.extent.head, slot.extent.seq, slot.extent.dim}) {
    digest.add(extent);
  }
  for (const std::int64_t stride :
       {slot.stride.batch, slot.stride.head, slot.stride.seq, slot.stride.dim}) {
    digest.add(stride);
  }
}

void add_content(Digest& digest, const std::shared_ptr<Block>& block) {
  digest.add(block != nullptr);
  if (block != nullptr) digest.add(block->host(), block->size());
}

std::string key_of(const Operands& operands) {
  Digest digest;
  digest.add(TESSERA_REFERENCE_DIGEST, sizeof TESSERA_REFERENCE_DIGEST);
  digest.add(operands.operation == Operation::backward);
  const Options& options = operands.options;
  digest.add(options.mask.left().value_or(-1));
  digest.add(options.mask.right().value_or(-1));
  digest.add(options.mask.alignment() ? static_cast<int>(*options.mask.alignment()) : -1);
  digest.add(options.dropout);
  digest.add(options.accumulate);
  digest.add(options.max_seq_q);
  digest.add(options.max_seq_k);
  const Args& scalars = operands.scalars;
  digest.add(scalars.scale.has_value());
  digest.add(scalars.scale.value_or(0));
  digest.add(scalars.softcap);
  digest.add(scalars.seed);
  digest.add(scalars.offset);
  for (const Slot* slot :
       {&operands.query, &operands.key, &operands.value, &operands.alibi_slopes, &operands.bias,
        &operands.boolean_mask, &operands.sinks, &operands.dout, &operands.dlse}) {
    add(digest, *slot);
    add_content(digest, slot->block);
  }
  for (const Numbers* numbers :
       {&operands.key_begin, &operands.key_end, &operands.query_end, &operands.cu_seqlens_q,
        &operands.cu_seqlens_k, &operands.seed_and_offset}) {
    digest.add(numbers->dtype);
    add_content(digest, numbers->block);
  }
  return digest.text();
}

}  // namespace

fs::path answer_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
    return fs::path(cache) / "tessera" / "reference";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    return fs::path(home) / ".cache" / "tessera" / "reference";
  }
  return {};
}

AnswerCache::AnswerCache(fs::path folder, std::uint64_t limit_bytes)
    : folder_(std::move(folder)), limit_(limit_bytes) {}

fs::path AnswerCache::path_of(const std::string& key) const { return folder_ / (key + ".answer"); }

std::optional<Answer> AnswerCache::find(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  std::ifstream file(path_of(key), std::ios::binary | std::ios::ate);
  if (!file) return std::nullopt;
  const auto size = static_cast<std::uint64_t>(file.tellg());
  Header header;
  if (size < sizeof header) return std::nullopt;
  file.seekg(0);
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  if (header.magic != kMagic || header.size != size - sizeof header) return std::nullopt;
  std::string payload(header.size, '\0');
  file.read(payload.data(), static_cast<std::streamsize>(payload.size()));
  if (!file || header.checksum != checksum(key, payload)) return std::nullopt;
  return unpack(payload);
}

void AnswerCache::keep(const std::string& key, const Answer& answer) const {
  const double bytes = 12.0 * static_cast<double>(numbers_in(answer));
  if (folder_.empty() || answer.seconds < kSecondsPerFile + kSecondsPerByte * bytes) return;
  if (!is_narrow(answer)) return;
  const std::string payload = pack(answer);
  const Header header{.size = payload.size(), .checksum = checksum(key, payload)};
  std::error_code error;
  fs::create_directories(folder_, error);
  const fs::path aside = folder_ / (key + "." + std::to_string(::getpid()) + ".tmp");
  {
    std::ofstream file(aside, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(&header), sizeof header);
    file.write(payload.data(), static_cast<std::streamsize>(payload.size()));
    file.close();
    if (!file) {
      fs::remove(aside, error);
      return;
    }
  }
  fs::rename(aside, path_of(key), error);
  if (error) fs::remove(aside, error);
}

void AnswerCache::prune() const {
  struct File {
    fs::file_time_type time;
    std::uint64_t size;
    fs::path path;
  };
  std::vector<File> files;
  std::uint64_t total = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    const std::uint64_t size = entry.file_size(error);
    if (error) continue;  // another process removed it
    const fs::file_time_type time = entry.last_write_time(error);
    if (error) continue;
    files.push_back({time, size, entry.path()});
    total += size;
  }
  if (total <= limit_) return;
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.time < b.time; });
  for (const File& file : files) {
    if (total <= limit_ / 4 * 3) return;
    if (fs::remove(file.path, error)) total -= file.size;
  }
}

Answer compute_answer(const Operands& operands) {
  const Args args = operands.args(Side::host);
  const Options& options = operands.options;
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t busy_start = std::clock();  // of all threads
  Answer answer;
  answer.ref = reference::forward(args, options);
  if (operands.operation == Operation::backward) {
    operands.set_results(answer.ref);
    answer = answer_to_out(operands, std::move(answer));
  } else {
    answer.low = reference::forward_low(args, options);
  }
  const auto passed = std::chrono::steady_clock::now() - start;
  const double busy = static_cast<double>(std::clock() - busy_start) / CLOCKS_PER_SEC;
  // Beside other work a case takes longer, but computes no longer.
  answer.seconds = std::min(std::chrono::duration<double>(passed).count(), busy);
  return answer;
}

namespace {

Answer answer_to(const Operands& operands, const ConstTensor& lse, Answer known) {
  const Args args = operands.args(Side::host);
  const Options& options = operands.options;
  const ConstTensor out = operands.out.input(Side::host);
  known.gradients = reference::backward(args, options, args.dout, args.dlse, out, lse);
  known.low_gradients = reference::backward_low(args, options, args.dout, args.dlse, out, lse);
  return known;
}

}  // namespace

Answer answer_to_out(const Operands& operands, Answer known) {
  return answer_to(operands, {}, std::move(known));
}

Answer answer_to_results(const Operands& operands, Answer known) {
  return answer_to(operands, operands.lse.input(Side::host), std::move(known));
}

reference::Verdict judge(const Operands& operands, const Answer& answer) {
  const Args args = operands.args(Side::host);
  if (operands.operation != Operation::backward)
    return reference::judge(args, operands.options, answer.ref, answer.low);
  const reference::Gradients ours{
      .dq = args.dq, .dk = args.dk, .dv = args.dv, .dbias = args.dbias, .dsink = args.dsink};
  return reference::judge_backward(args, operands.options, ours, answer.gradients,
                                   answer.low_gradients);
}

Answer answer(const Operands& operands) {
  static const AnswerCache cache(answer_folder());
  static const struct Pruner {
    ~Pruner() { cache.prune(); }
  } pruner;
  const std::string key = key_of(operands);
  if (std::optional<Answer> found = cache.find(key)) {
    if (operands.operation == Operation::backward) operands.set_results(found->ref);
    return *std::move(found);
  }
  Answer answer = compute_answer(operands);
  if (!kEmulatedProcessor) cache.keep(key, answer);  // its time is not that of other builds
  return answer;
}

}  // namespace tessera::testing
