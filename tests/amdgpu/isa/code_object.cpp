#include "tests/amdgpu/isa/code_object.hpp"

#include <elf.h>
#include <fmt/core.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace tessera::amdgpu {
namespace {

constexpr u32 kMachineAmdGpu = 224, kNoteMetadata = 32, kRelative64 = 13;
constexpr u64 kPage = 4096;

u32 number(const nlohmann::json& from, const char* key) {
  return from.contains(key) ? from.at(key).get<u32>() : 0;
}

}  // namespace

template <class T>
T CodeObject::at(u64 offset) const {
  if (offset > file_.size() || file_.size() - offset < sizeof(T))
    throw BadCodeObject(
        fmt::format("code object: {} bytes, but something is at {}", file_.size(), offset));
  T value;
  std::memcpy(&value, file_.data() + offset, sizeof(T));
  return value;
}

CodeObject::CodeObject(std::span<const u8> file) : file_(file.begin(), file.end()) {
  const auto header = at<Elf64_Ehdr>(0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_machine != kMachineAmdGpu)
    throw BadCodeObject("code object: not an ELF file for AMD GPUs");
  machine_ = header.e_flags & 0xff;
  target_ = find_machine(machine_);
  if (!target_) return;
  load_segments();
  read_metadata();
  read_symbols();
  relocate();
}

void CodeObject::load_segments() {
  const auto header = at<Elf64_Ehdr>(0);
  std::vector<Elf64_Phdr> segments;
  for (int i = 0; i < header.e_phnum; ++i) {
    segments.push_back(at<Elf64_Phdr>(header.e_phoff + static_cast<u64>(i) * header.e_phentsize));
    const Elf64_Phdr& segment = segments.back();
    if (segment.p_type != PT_LOAD) continue;
    image_bytes_ = std::max<u64>(image_bytes_, segment.p_vaddr + segment.p_memsz);
  }
  image_bytes_ = (image_bytes_ + kPage - 1) / kPage * kPage;
  image_.reset(static_cast<u8*>(std::aligned_alloc(kPage, image_bytes_)));
  if (!image_) throw std::bad_alloc();
  std::memset(image_.get(), 0, image_bytes_);
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD || segment.p_filesz == 0) continue;
    at<u8>(segment.p_offset + segment.p_filesz - 1);
    std::memcpy(image_.get() + segment.p_vaddr, file_.data() + segment.p_offset, segment.p_filesz);
  }
}

void CodeObject::read_symbols() {
  const auto header = at<Elf64_Ehdr>(0);
  for (int i = 0; i < header.e_shnum; ++i) {
    const auto section = at<Elf64_Shdr>(header.e_shoff + static_cast<u64>(i) * sizeof(Elf64_Shdr));
    if (section.sh_type != SHT_DYNSYM) continue;
    const auto names = at<Elf64_Shdr>(header.e_shoff + section.sh_link * sizeof(Elf64_Shdr));
    for (u64 offset = 0; offset < section.sh_size; offset += sizeof(Elf64_Sym)) {
      const auto symbol = at<Elf64_Sym>(section.sh_offset + offset);
      const u64 name_at = names.sh_offset + symbol.st_name;
      at<u8>(name_at);
      const std::string name(reinterpret_cast<const char*>(file_.data() + name_at));
      if (name.size() > 3 && name.ends_with(".kd"))
        read_descriptor(name.substr(0, name.size() - 3), symbol.st_value);
    }
  }
}

void CodeObject::read_descriptor(const std::string& name, u64 address) {
  if (address + 64 > image_bytes_)
    throw BadCodeObject("code object: a kernel descriptor lies outside");
  const u8* from = image_.get() + address;
  const auto word = [&](int offset) {
    u32 value = 0;
    std::memcpy(&value, from + offset, 4);
    return value;
  };
  i64 entry = 0;
  std::memcpy(&entry, from + 16, 8);
  Kernel& kernel = kernels_[name];  // metadata may have made it
  kernel.name = name;
  kernel.lds_bytes = word(0);
  kernel.private_bytes = word(4);
  kernel.kernarg_bytes = word(8);
  kernel.entry = address + static_cast<u64>(entry);
  kernel.resources3 = word(44);
  kernel.resources1 = word(48);
  kernel.resources2 = word(52);
  kernel.properties = word(56) & 0xffff;
  kernel.preload = word(56) >> 16;
}

void CodeObject::relocate() {
  const auto header = at<Elf64_Ehdr>(0);
  for (int i = 0; i < header.e_shnum; ++i) {
    const auto section = at<Elf64_Shdr>(header.e_shoff + static_cast<u64>(i) * sizeof(Elf64_Shdr));
    if (section.sh_type != SHT_RELA) continue;
    for (u64 offset = 0; offset < section.sh_size; offset += sizeof(Elf64_Rela)) {
      const auto entry = at<Elf64_Rela>(section.sh_offset + offset);
      if (ELF64_R_TYPE(entry.r_info) != kRelative64)
        throw BadCodeObject(fmt::format("code object: relocation of type {}; only {} is known",
                                        ELF64_R_TYPE(entry.r_info), kRelative64));
      const u64 value = reinterpret_cast<u64>(image_.get()) + static_cast<u64>(entry.r_addend);
      if (entry.r_offset + 8 > image_bytes_)
        throw BadCodeObject("code object: a relocation lies outside");
      std::memcpy(image_.get() + entry.r_offset, &value, 8);
    }
  }
}

void CodeObject::read_metadata() {
  const auto header = at<Elf64_Ehdr>(0);
  for (int i = 0; i < header.e_phnum; ++i) {
    const auto segment = at<Elf64_Phdr>(header.e_phoff + static_cast<u64>(i) * header.e_phentsize);
    if (segment.p_type != PT_NOTE) continue;
    const auto note = at<Elf64_Nhdr>(segment.p_offset);
    if (note.n_type != kNoteMetadata) continue;
    const u64 begin = segment.p_offset + sizeof note + (note.n_namesz + 3) / 4 * 4;
    at<u8>(begin + note.n_descsz - 1);
    const auto from = file_.begin() + static_cast<i64>(begin);
    const auto json = nlohmann::json::from_msgpack(from, from + note.n_descsz);
    for (const auto& each : json.at("amdhsa.kernels")) {
      Kernel& kernel = kernels_[each.at(".name").get<std::string>()];
      kernel.max_threads = number(each, ".max_flat_workgroup_size");
      kernel.vector_registers = number(each, ".vgpr_count");
      kernel.accumulators = number(each, ".agpr_count");
      kernel.scalar_registers = number(each, ".sgpr_count");
      if (!each.contains(".args")) continue;
      for (const auto& argument : each.at(".args"))
        kernel.arguments.push_back({number(argument, ".offset"), number(argument, ".size"),
                                    argument.at(".value_kind").get<std::string>()});
    }
  }
}

}  // namespace tessera::amdgpu
