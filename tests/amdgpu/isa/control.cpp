// Branches, barriers, waits and what only tunes the hardware.

#include "tests/amdgpu/isa/disassembly.hpp"
#include "tests/amdgpu/isa/lanes.hpp"

namespace tessera::amdgpu {
namespace {

void nothing(Wave&, const Instruction&) {}

template <class F>
struct Branch {
  static void execute(Wave& w, const Instruction& in) {
    if (kLaneFunction<F>(w)) w.pc = in.target;
  }
};
template <class F>
void add_branch(Opcodes& t, const char* name, F) {
  t.add(name, &Branch<F>::execute);
}

void jump(Wave& w, const Instruction& in, u64 address) {
  const Program& program = *w.group->program;
  const auto at = program.index_at.find(address - program.base);
  if (at == program.index_at.end())
    throw Finding(
        fmt::format("{} jumps to {:#x}, where there is no instruction", in.text, address));
  w.pc = at->second;
}

u64 next_address(const Wave& w) {
  const Program& program = *w.group->program;
  return program.base + program.instructions.at(w.pc).pc;  // pc is already the next
}

void wait(Wave& w, const Instruction& in) {
  LdsChecker& lds = w.group->lds_checker;
  w.pending.wait(Counter::VectorLoads, in.wait.vector_loads, lds);
  w.pending.wait(Counter::VectorStores, in.wait.vector_stores, lds);
  w.pending.wait(Counter::Lds, in.wait.lds, lds);
  w.pending.wait(Counter::Scalar, in.wait.scalar, lds);
}

void wait_idle(Wave& w, const Instruction&) {
  for (int i = 0; i < kCounters; ++i)
    w.pending.wait(static_cast<Counter>(i), 0, w.group->lds_checker);
}

void barrier_signal(Wave& w, const Instruction& in) {
  if (in[0].text != "-1") refuse(in, "a barrier other than the workgroup's");
  if (w.signalled) throw Finding("a second s_barrier_signal before the s_barrier_wait");
  w.signalled = true;
}
void barrier_wait(Wave& w, const Instruction& in) {
  if (in[0].value != 0xffff && in[0].value != ~0u)
    refuse(in, "a barrier other than the workgroup's");
  if (!w.signalled) throw Finding("s_barrier_wait without an s_barrier_signal");
  w.signalled = false;
  w.waiting = true;
}

// "hwreg(HW_REG_MODE, 0, 4)": name, first bit, number of bits.
struct HardwareRegister {
  std::string name;
  u32 offset = 0, bits = 32;
};
HardwareRegister parse_register(const Instruction& in, int at) {
  const std::string& text = in[at].text;
  const auto open = text.find('('), close = text.rfind(')');
  if (!text.starts_with("hwreg(") || close == text.npos)
    refuse(in, "this form of a hardware register");
  HardwareRegister found;
  const std::string inner = text.substr(open + 1, close - open - 1);
  const auto comma = inner.find(',');
  found.name = inner.substr(0, comma);
  if (comma == inner.npos) return found;
  const auto second = inner.find(',', comma + 1);
  found.offset = static_cast<u32>(std::stoul(inner.substr(comma + 1)));
  found.bits = static_cast<u32>(std::stoul(inner.substr(second + 1)));
  return found;
}

u32 register_value(const Wave& w, const Instruction& in, const std::string& name) {
  if (name == "HW_REG_MODE") return w.mode.bits;
  if (name == "HW_REG_XCC_ID") return 0;
  if (name == "HW_REG_HW_ID" || name == "HW_REG_HW_ID1" || name == "HW_REG_HW_ID2") return w.id;
  if (name == "HW_REG_SHADER_CYCLES" || name == "HW_REG_SHADER_CYCLES_LO")
    return static_cast<u32>(w.executed);
  refuse(in, "this hardware register");
}

u32 field_mask(u32 bits) { return bits >= 32 ? ~0u : (1u << bits) - 1; }

void get_register(Wave& w, const Instruction& in) {
  const auto which = parse_register(in, 1);
  set_scalar(w, in, 0, register_value(w, in, which.name) >> which.offset & field_mask(which.bits));
}

void set_register(Wave& w, const Instruction& in) {
  const auto which = parse_register(in, 0);
  if (which.name != "HW_REG_MODE") {
    if (which.name == "HW_REG_SCHED_MODE" || which.name == "HW_REG_WAVE_SCHED_MODE") return;
    refuse(in, "writing this hardware register");
  }
  const u32 mask = field_mask(which.bits) << which.offset;
  w.mode.bits = (w.mode.bits & ~mask) | (scalar_value(w, in[1]) << which.offset & mask);
}

void set_rounding(Wave& w, const Instruction& in) {
  w.mode.bits = (w.mode.bits & ~15u) | (in[0].value & 15);
}
void set_denormals(Wave& w, const Instruction& in) {
  w.mode.bits = (w.mode.bits & ~0xf0u) | (in[0].value & 15) << 4;
}

void read_time(Wave& w, const Instruction& in) { set_scalar64(w, in, 0, w.executed); }

void register_jumps(Opcodes& t) {
  add_branch(t, "s_branch", [](const Wave&) { return true; });
  add_branch(t, "s_cbranch_scc0", [](const Wave& w) { return w.scc == 0; });
  add_branch(t, "s_cbranch_scc1", [](const Wave& w) { return w.scc != 0; });
  add_branch(t, "s_cbranch_vccz", [](const Wave& w) { return (w.mask(kVcc) & w.lanes) == 0; });
  add_branch(t, "s_cbranch_vccnz", [](const Wave& w) { return (w.mask(kVcc) & w.lanes) != 0; });
  add_branch(t, "s_cbranch_execz", [](const Wave& w) { return w.exec() == 0; });
  add_branch(t, "s_cbranch_execnz", [](const Wave& w) { return w.exec() != 0; });
  t.add("s_getpc_b64",
        [](Wave& w, const Instruction& in) { set_scalar64(w, in, 0, next_address(w)); });
  t.add("s_setpc_b64",
        [](Wave& w, const Instruction& in) { jump(w, in, scalar_value64(w, in[0])); });
  t.add("s_swappc_b64", [](Wave& w, const Instruction& in) {
    const u64 to = scalar_value64(w, in[1]);
    set_scalar64(w, in, 0, next_address(w));
    jump(w, in, to);
  });
  t.add("s_endpgm", [](Wave& w, const Instruction&) { w.done = true; });
  t.add("s_trap",
        [](Wave&, const Instruction& in) { throw Finding("the kernel trapped: " + in.text); });
}

}  // namespace

void register_control(Opcodes& t) {
  register_jumps(t);
  for (const char* name : {"s_nop",
                           "s_setprio",
                           "s_sched_barrier",
                           "s_delay_alu",
                           "s_clause",
                           "s_sendmsg",
                           "s_inst_prefetch",
                           "s_set_inst_prefetch_distance",
                           "s_wait_alu",
                           "s_waitcnt_depctr",
                           "s_code_end",
                           "s_icache_inv",
                           "s_dcache_wb",
                           "s_dcache_inv",
                           "s_incperflevel",
                           "s_decperflevel",
                           "s_ttracedata",
                           "s_version",
                           "s_wait_event",
                           "buffer_wbl2",
                           "buffer_inv",
                           "buffer_gl0_inv",
                           "buffer_gl1_inv",
                           "buffer_wbinvl1_vol",
                           "buffer_wbinvl1",
                           "buffer_invl2",
                           "global_inv",
                           "global_wb",
                           "global_wbinv",
                           "s_prefetch_inst",
                           "s_prefetch_data",
                           "s_prefetch_inst_pc_rel",
                           "s_singleuse_vdst",
                           "v_nop",
                           "s_sethalt",
                           "s_setkill",
                           "s_barrier_leave"})
    t.add(name, nothing);
  t.add("s_sleep", [](Wave& w, const Instruction&) { w.yielded = true; });
  for (const char* name : {"s_waitcnt", "s_waitcnt_vscnt", "s_waitcnt_vmcnt", "s_waitcnt_lgkmcnt",
                           "s_wait_loadcnt", "s_wait_storecnt", "s_wait_dscnt", "s_wait_kmcnt",
                           "s_wait_loadcnt_dscnt", "s_wait_storecnt_dscnt", "s_wait_expcnt",
                           "s_waitcnt_expcnt", "s_wait_samplecnt", "s_wait_bvhcnt"})
    t.add(name, wait);
  t.add("s_wait_idle", wait_idle);
  t.add("s_barrier", [](Wave& w, const Instruction&) { w.waiting = true; });
  t.add("s_barrier_signal", barrier_signal);
  t.add("s_barrier_wait", barrier_wait);
  t.add("s_getreg_b32", get_register);
  t.add("s_setreg_b32", set_register);
  t.add("s_setreg_imm32_b32", set_register);
  t.add("s_round_mode", set_rounding);
  t.add("s_denorm_mode", set_denormals);
  for (const char* name : {"s_memtime", "s_memrealtime", "s_get_shader_cycles_u64"})
    t.add(name, read_time);
  t.add("s_sendmsg_rtn_b64", read_time);
}

}  // namespace tessera::amdgpu
