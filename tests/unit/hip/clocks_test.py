#!/usr/bin/env python3
"""ci/hip_clocks.py on hand-written disassembly: what it counts, and what it refuses.

Numbers are worked out beside each text, from the rates of gfx942: a 32x32x8 multiplication takes 32
clocks and is 16384 FLOP, at 512 FLOP a clock and SIMD; a vector instruction takes 4, an exponential
16; LDS moves 128 bytes a clock for four SIMDs, so 64 lanes' 16 bytes are 8 clocks of it and 32 of a
round.
"""

import io
import json
import re
import sys
import tempfile
import unittest
from contextlib import redirect_stdout
from pathlib import Path
from unittest import mock

CI = Path(__file__).resolve().parents[3] / "ci"
sys.path.insert(0, str(CI))
sys.dont_write_bytecode = True

import hip_clocks  # noqa: E402
import hip_costs  # noqa: E402
from hip_loops import Loops, NotUnderstood, Unknown, blocks_of, natural_loops, parse  # noqa: E402

TABLE = json.loads((CI / "hip_rates.json").read_text())
RATES = hip_costs.load_rates(CI / "hip_rates.json")
MFMA = "v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15]"
WIDE = "v_mfma_f32_32x32x16_f16 v[0:15], v[16:19], v[20:23], v[0:15]"  # of gfx950


def disassembly(body, symbol="tessera_forward_fp16_64", start=0x1600):
    """As llvm-objdump prints it: every line is an instruction of four bytes or a `label:`."""
    lines = [line.strip() for line in body.strip().splitlines()]
    labels, at = {}, start
    for line in lines:
        if line.endswith(":"):
            labels[line[:-1]] = at
        else:
            at += 4
    text, at = f"\nDisassembly of section .text:\n\n{start:016x} <{symbol}>:\n", start
    for line in lines:
        if line.endswith(":"):
            continue
        name, _, operands = line.partition(" ")
        goes = ""
        if operands in labels:
            offset = labels[operands] - start
            goes = f" <{symbol}+{offset:#x}>" if offset else f" <{symbol}>"
            operands = str((labels[operands] - at - 4) // 4 & 0xFFFF)
        text += f"\t{name} {operands:50} // {at:012X}: BF800000{goes}\n"
        at += 4
    return text


def loops_of(body, target="gfx942"):
    (instructions,) = parse(disassembly(body)).values()
    return Loops(instructions, lambda each: hip_costs.count(each, RATES[target]))


def steady(body, target="gfx942"):
    _, way, dearest = loops_of(body, target).steady()
    return way, dearest


def repeat(line, times):
    return "\n".join([line] * times)


# Sixteen scores a lane of head_dim 64 (16 · 64 · 2 · 128 FLOP are sixteen multiplications), sixteen
# exponentials, 40 vector instructions, 16 KB read from LDS, 1 KB brought there from memory.
STEP = f"""
v_mov_b32_e32 v1, 0
loop:
buffer_load_dwordx4 v[40:43], v4, s[72:75], 0 offen
{repeat("ds_read_b128 v[20:23], v1", 16)}
{repeat(MFMA, 16)}
{repeat("v_exp_f32_e32 v2, v3", 16)}
{repeat("v_pk_mul_f32 v[2:3], v[2:3], v[4:5]", 40)}
ds_write_b128 v9, v[40:43]
s_cmp_lg_u32 s4, s5
s_cbranch_scc1 loop
s_endpgm
"""


class Text(unittest.TestCase):
    def test_reads_what_objdump_prints(self):
        text = """
/a/file.hsaco:	file format elf64-amdgpu

Disassembly of section .text:

0000000000001600 <tessera_a>:
	s_load_dwordx2 s[44:45], s[0:1], 0x228                     // 000000001600: C0060B00 00000228
	v_mfma_f32_32x32x8_bf16 v[66:81], v[4:5], v[88:89], v[66:81]// 000000001608: D3E00042 050AB104
	v_exp_f32_e32 v8, v5                                       // 000000001610: 7E104105
	s_cbranch_vccnz 65532                                 // 000000001614: BF87FFFC <tessera_a+0x8>
	s_branch 65529                                             // 000000001618: BF82FFF9 <tessera_a>
	s_code_end                                                 // 00000000161C: BF9F0000
"""
        instructions = parse(text)["tessera_a"]
        self.assertEqual(
            [(each.name, each.target) for each in instructions],
            [
                ("s_load_dwordx2", None),
                ("v_mfma_f32_32x32x8_bf16", None),
                ("v_exp_f32", None),
                ("s_cbranch_vccnz", 0x1608),
                ("s_branch", 0x1600),
            ],
        )
        self.assertEqual(instructions[1].operands, "v[66:81], v[4:5], v[88:89], v[66:81]")

    def test_refuses_what_it_cannot_read(self):
        with self.assertRaisesRegex(NotUnderstood, "an odd line"):
            parse("0000000000001600 <a>:\n\tan odd line\n")
        with self.assertRaisesRegex(NotUnderstood, "s_swappc_b64"):
            loops_of("s_swappc_b64 s[30:31], s[4:5]\ns_endpgm")

    def test_blocks_and_loops(self):
        (instructions,) = parse(
            disassembly(
                """
            v_mov_b32_e32 v1, 0
            outer:
            v_mov_b32_e32 v1, 1
            inner:
            v_mov_b32_e32 v1, 2
            s_cbranch_scc1 inner
            s_cbranch_scc0 outer
            s_endpgm
            """
            )
        ).values()
        blocks = blocks_of(instructions)
        self.assertEqual(list(blocks), [0x1600, 0x1604, 0x1608, 0x1610, 0x1614])
        self.assertEqual(
            natural_loops(blocks), {0x1608: {0x1608}, 0x1604: {0x1604, 0x1608, 0x1610}}
        )


class Steps(unittest.TestCase):
    def test_counts_a_loop(self):
        way, dearest = steady(STEP)
        self.assertEqual(way.counts, dearest.counts)
        expected = {
            **{"matrix": 16, "flop": 16 * 16384, "matrix_clocks": 512, "ideal_clocks": 512},
            **{"trans": 16, "exp": 16, "vector": 40, "vector_clocks": 16 * 16 + 40 * 4},
            **{"lds": 17, "lds_read": 16384, "lds_write": 1024, "filled": 1024},
            **{"memory": 1, "loaded": 1024, "scalar": 1, "branch": 1, "instructions": 92},
        }
        self.assertEqual({key: value for key, value in way.counts.items() if value}, expected)
        self.assertEqual(way.names["v_pk_mul_f32"], 40)

    def test_clocks_of_a_round(self):
        counts = steady(STEP)[0].counts
        clocks = hip_costs.clocks(counts, 2, RATES["gfx942"])
        # 17408 bytes of each of four waves at 128 a clock; vector, exp and matrix issue 72 times,
        # and one of two waves 46 times in the turns of both: the kind decides.
        self.assertEqual(clocks, {"matrix": 512, "vector": 416, "LDS": 544, "issue": 4 * 72})
        # Alone, a wave issues its 92 instructions itself.
        self.assertEqual(hip_costs.clocks(counts, 1, RATES["gfx942"])["issue"], 4 * 92)
        twice = hip_costs.clocks(counts, 2, RATES["gfx942"], trans="trans_double")
        self.assertEqual(twice["vector"], 416 - 16 * 8)
        shared = hip_costs.clocks(counts, 2, RATES["gfx942"], first_pass=True)
        self.assertEqual(shared["vector"], 416 + 16 * 4)

    def test_idle_turns_and_slow_multiplications(self):
        body = f"loop:\n{MFMA}\ns_nop 7\nv_mul_lo_u32 v1, v2, v3\ns_cbranch_scc1 loop\ns_endpgm"
        counts = steady(body)[0].counts
        clocks = hip_costs.clocks(counts, 1, RATES["gfx942"])
        self.assertEqual((clocks["vector"], clocks["issue"]), (16, 4 * (4 + 7)))

    def test_reads_from_lds_twice_as_fast_on_gfx950(self):
        body = f"""
            loop:
            {WIDE}
            ds_read_b128 v[0:3], v1
            ds_write_b64 v1, v[2:3]
            s_cbranch_scc1 loop
            s_endpgm
            """
        counts = steady(body, "gfx950")[0].counts
        clocks = hip_costs.clocks(counts, 1, RATES["gfx950"])
        self.assertEqual(clocks["LDS"], 4 * (1024 / 256 + 512 / 128))
        self.assertEqual((counts["flop"], counts["ideal_clocks"]), (32768, 32))

    def test_matrix_instructions_of_rdna_take_its_vector_pipe(self):
        body = """
            loop:
            v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]
            v_exp_f32_e32 v1, v1
            v_dual_mul_f32 v1, v2, v3 :: v_dual_mov_b32 v4, v5
            s_cbranch_scc1 loop
            s_endpgm
            """
        counts = steady(body, "gfx1100")[0].counts
        clocks = hip_costs.clocks(counts, 4, RATES["gfx1100"])
        self.assertEqual(
            clocks, {"matrix": 32, "vector": 32 + 1 + 1, "trans": 4, "LDS": 0, "issue": 3}
        )
        self.assertEqual(counts["ideal_clocks"], 32)

    def test_leaves_out_what_a_branch_skips(self):
        body = f"""
            loop:
            {MFMA}
            s_cbranch_vccz calm
            {repeat("v_mul_f32_e32 v1, v2, v1", 50)}
            calm:
            v_add_f32_e32 v1, v2, v1
            s_cbranch_scc1 loop
            s_endpgm
            """
        way, dearest = steady(body)
        self.assertEqual((way.counts["vector"], dearest.counts["vector"]), (1, 51))

    def test_leaves_out_a_block_behind_the_loop(self):
        body = f"""
            s_branch loop
            rises:
            {repeat("v_mul_f32_e32 v1, v2, v1", 50)}
            s_branch calm
            loop:
            {MFMA}
            s_cbranch_vccnz rises
            calm:
            v_add_f32_e32 v1, v2, v1
            s_cbranch_scc1 loop
            s_endpgm
            """
        way, dearest = steady(body)
        self.assertEqual((way.counts["vector"], dearest.counts["vector"]), (1, 51))

    def test_what_only_some_lanes_do_is_counted(self):
        body = f"""
            loop:
            {MFMA}
            s_and_saveexec_b64 s[0:1], vcc
            s_cbranch_execz none
            v_mul_f32_e32 v1, v2, v1
            none:
            s_cbranch_scc1 loop
            s_endpgm
            """
        self.assertEqual(steady(body)[0].counts["vector"], 1)

    def test_takes_the_way_that_loads_the_next_block(self):
        body = f"""
            loop:
            s_cbranch_scc0 last
            global_load_dwordx4 v[4:7], v[2:3], off
            v_mov_b32_e32 v9, v8
            last:
            {MFMA}
            ds_write_b128 v1, v[4:7]
            s_cbranch_scc1 loop
            s_endpgm
            """
        way, _ = steady(body)
        self.assertEqual((way.counts["loaded"], way.counts["vector"]), (1024, 1))

    def test_takes_the_loop_without_masks(self):
        hides = repeat("v_cndmask_b32_e32 v1, v2, v3, vcc", 9)
        masked = f"masked:\n{MFMA}\n{hides}\ns_cbranch_scc1 masked"
        plain = f"plain:\n{MFMA}\nv_mov_b32_e32 v1, v2\ns_cbranch_scc1 plain"
        for body in (f"{masked}\n{plain}", f"{plain}\n{masked}"):
            self.assertEqual(steady(f"{body}\ns_endpgm")[0].counts["vector"], 1)

    def test_the_walk_over_keys_not_that_over_tasks(self):
        body = f"""
            task:
            {MFMA}
            keys:
            {MFMA}
            {MFMA}
            s_cbranch_vccnz keys
            s_cbranch_scc1 task
            s_endpgm
            """
        self.assertEqual([way.counts["matrix"] for way in steady(body)], [2, 2])

    def test_loads_straight_to_lds(self):
        for name, operands, lds in (
            ("buffer_load_dwordx4", "v4, s[8:11], 0 offen lds", 1024),
            ("global_load_lds_dwordx4", "v[2:3], off", 1024),
            ("buffer_load_dword", "v4, s[8:11], 0 offen lds", 256),
            ("buffer_load_dwordx4", "v[4:7], v4, s[8:11], 0 offen", 0),
        ):
            body = f"loop:\n{WIDE}\n{name} {operands}\ns_cbranch_scc1 loop\ns_endpgm"
            counts = steady(body, "gfx950")[0].counts
            self.assertEqual((counts["filled"], counts["lds_write"]), (lds, lds), name)

    def test_bytes_of_lds_instructions(self):
        for name, read, written in (
            ("ds_read_b64", 512, 0),
            ("ds_read2_b64", 1024, 0),
            ("ds_read2st64_b32", 512, 0),
            ("ds_load_2addr_b64", 1024, 0),
            ("ds_read_u16_d16_hi", 128, 0),
            ("ds_read_b64_tr_b16", 512, 0),
            ("ds_write_b16", 0, 128),
            ("ds_write2_b64", 0, 1024),
            ("ds_bpermute_b32", 256, 0),
            ("ds_add_f32", 256, 256),
        ):
            counts = hip_costs.count_lds(name, RATES["gfx950"])
            self.assertEqual(
                (counts.get("lds_read", 0), counts.get("lds_write", 0)), (read, written), name
            )


class InnerLoops(unittest.TestCase):
    BODY = f"""
        outer:
        s_mov_b32 s4, 0
        inner:
        {MFMA}
        v_mov_b32_e32 v1, v2
        s_add_i32 s4, s4, 2
        s_cmp_lg_u32 s4, LIMIT
        s_cbranch_scc1 inner
        v_mov_b32_e32 v1, v2
        s_cbranch_vccnz outer
        s_endpgm
        """

    def test_counts_them_as_often_as_they_run(self):
        way, _ = steady(self.BODY.replace("LIMIT", "8"))
        self.assertEqual((way.counts["matrix"], way.counts["vector"]), (4, 5))

    def test_of_unknown_length_they_are_walks_of_their_own(self):
        way, _ = steady(self.BODY.replace("LIMIT", "s9"))
        self.assertEqual((way.counts["matrix"], way.counts["vector"]), (1, 1))

    def test_of_a_counter_that_something_else_writes_the_length_is_unknown(self):
        for line in (
            "s_mov_b64 s[4:5], 0",
            "s_load_dwordx4 s[4:7], s[0:1], 0x0",
            "s_mov_b32 s4, s9",
        ):
            body = self.BODY.replace("LIMIT", "8").replace("inner:", f"inner:\n{line}")
            self.assertEqual(steady(body)[0].counts["matrix"], 1, line)

    def test_refuses_one_of_unknown_length_on_the_way(self):
        body = f"""
            outer:
            {MFMA}
            inner:
            v_mov_b32_e32 v1, v2
            s_cbranch_scc1 inner
            s_cbranch_vccnz outer
            s_endpgm
            """
        with self.assertRaisesRegex(NotUnderstood, "nobody knows how often"):
            steady(body)

    def test_refuses_a_small_part_of_what_a_loop_around_it_multiplies(self):
        body = f"""
            outer:
            {repeat(MFMA, 8)}
            inner:
            {MFMA}
            s_cbranch_scc1 inner
            s_cbranch_vccnz outer
            s_endpgm
            """
        with self.assertRaisesRegex(NotUnderstood, "nobody knows how often"):
            steady(body)

    def test_refuses_a_loop_with_two_heads(self):
        body = f"""
            outer:
            {MFMA}
            s_cbranch_vccz second
            first:
            v_mov_b32_e32 v1, v2
            second:
            v_mov_b32_e32 v1, v3
            s_cbranch_scc1 first
            s_cbranch_vccnz outer
            s_endpgm
            """
        with self.assertRaisesRegex(NotUnderstood, "two heads"):
            steady(body)


class Unknowns(unittest.TestCase):
    def test_instructions(self):
        for line in (
            "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[0:7], v[8:15], v[0:15]",
            "v_smfmac_f32_32x32x16_f16 v[0:15], v[0:3], v[4:11], v1",
            "exp mrt0, v0, v1, v2, v3",
            "ds_read_addtid_q v1",
        ):
            with self.assertRaises(Unknown, msg=line):
                loops_of(f"loop:\n{line}\ns_cbranch_scc1 loop\ns_endpgm")

    def test_a_target(self):
        with self.assertRaises(Unknown):
            hip_costs.Rates("gfx1250", TABLE)


class Table(unittest.TestCase):
    def test_every_number_has_a_source(self):
        names = {
            frozenset(entries) - {"flop_fp32"}  # RDNA multiplies no matrices of fp32
            for target, entries in TABLE.items()
            if target != "what"
        }
        self.assertEqual(len(names), 1, "targets have different entries")
        for target, entries in TABLE.items():
            for name, entry in entries.items() if target != "what" else ():
                self.assertIn(entry["status"], ("documented", "inferred"), f"{target} {name}")
                self.assertGreater(len(entry["source"]), 8, f"{target} {name}")

    def test_the_best_matrix_instruction_has_the_target_s_rate(self):
        for target, rates in RATES.items():
            best = {"f16": 0, "bf16": 0}
            for name in rates["matrix"]:
                counts = hip_costs.count_matrix(name, rates)
                element = re.search(r"(bf16|f16|f32)(_1k)?$", name).group(1)
                if element in best:
                    rate = counts["flop"] / counts["matrix_clocks"] * rates["simds"]
                    best[element] = max(best[element], rate)
            self.assertEqual(set(best.values()), {rates["flop"]}, target)

    def test_resident_waves(self):
        def waves(target="gfx942", **kernel):
            return hip_costs.resident_waves(
                {"vgpr": 64, "LDS": 0, "threads": 256, **kernel}, RATES[target]
            )

        self.assertEqual(waves(), 8)
        self.assertEqual(waves(vgpr=128), 4)
        self.assertEqual(waves(vgpr=129), 3)
        self.assertEqual(waves(vgpr=256), 2)
        self.assertEqual(waves(vgpr=256, threads=512), 2)
        self.assertEqual(waves(vgpr=257), 1)
        self.assertEqual(waves(LDS=30000), 2)
        self.assertEqual(waves(LDS=40000, vgpr=128), 1)
        self.assertEqual(waves("gfx950", LDS=40000, vgpr=128), 4)
        self.assertEqual(
            waves("gfx1100", vgpr=256), 4
        )  # 1536 // 264 is 5; groups of 8 waves on 4 SIMDs
        with self.assertRaisesRegex(NotUnderstood, "fits"):
            waves(LDS=70000)


NOTES = """
amdhsa.kernels:
  - .agpr_count:     0
    .group_segment_fixed_size: 32768
    .max_flat_workgroup_size: 256
    .name:           tessera_forward_fp16_64
    .private_segment_fixed_size: 0
    .sgpr_count:     90
    .sgpr_spill_count: 0
    .vgpr_count:     200
    .vgpr_spill_count: 0
amdhsa.target:   amdgcn-amd-amdhsa--gfx942
"""


def figures(body=STEP, notes=NOTES, instance="forward_fp16_64", target="gfx942"):
    text = disassembly(body, f"tessera_{instance}")
    return hip_clocks.look_at(text, notes, instance, RATES[target])


class Gates(unittest.TestCase):
    def misses(self, body=STEP, exception=None, notes=NOTES, least=0.85):
        return hip_clocks.misses(figures(body, notes), least, exception)

    def test_figures(self):
        found = figures()
        self.assertEqual(found["ideal_clocks"], 512)
        self.assertAlmostEqual(found["cap"], 512 / 544)
        self.assertEqual(
            (found["busiest"], found["waves_a_simd"], found["scores_a_lane"]), ("LDS", 2, 16)
        )
        self.assertEqual(found["a_pair"], 5)
        self.assertEqual(found["tile"], "M·N 4096, d 64")

    def test_refuses_notes_that_lack_something(self):
        with self.assertRaisesRegex(NotUnderstood, "does not tell vgpr_count"):
            figures(notes=NOTES.replace("vgpr_count", "vgprs"))
        with self.assertRaisesRegex(NotUnderstood, "no tessera_forward_bf16_64"):
            text = disassembly(STEP)
            hip_clocks.look_at(text, NOTES, "forward_bf16_64", RATES["gfx942"])

    def test_passes(self):
        self.assertEqual(self.misses(), [])

    def test_a_low_cap(self):
        self.assertRegex(
            self.misses(least=0.95)[0],
            r"cap is 94\.1%, not 95\.0%: LDS takes 544 clocks, ideal are 512",
        )

    def test_too_many_vector_instructions(self):
        body = STEP.replace("ds_write", repeat("v_mov_b32_e32 v1, v2", 17) + "\nds_write")
        self.assertEqual(self.misses(body), ["7.12 vector instructions a pair of scores, not 7"])

    def test_an_exponential_too_many_is_a_vector_instruction(self):
        self.assertEqual(
            figures(STEP.replace("ds_write", "v_exp_f32_e32 v1, v2\nds_write"))["a_pair"], 5.125
        )

    def test_waits_for_all_loads(self):
        for wait, found in (
            ("s_waitcnt vmcnt(0)", 1),
            ("s_waitcnt vmcnt(0) lgkmcnt(0)", 1),
            ("s_waitcnt vmcnt(4)", 0),
            ("s_waitcnt lgkmcnt(0)", 0),
            ("s_wait_loadcnt 0x0", 1),
            ("s_wait_loadcnt 0x2", 0),
        ):
            wrong = self.misses(STEP.replace("ds_write", f"{wait}\nds_write"))
            self.assertEqual(len(wrong), found, wait)
        self.assertRegex(
            self.misses(STEP.replace("ds_write", "s_waitcnt vmcnt(0)\nds_write"))[0], r"vmcnt\(0\)"
        )

    def test_spills(self):
        self.assertEqual(
            self.misses(STEP.replace("ds_write", "scratch_load_dword v1, off, s32\nds_write")),
            ["it spills"],
        )
        self.assertEqual(
            self.misses(notes=NOTES.replace("vgpr_spill_count: 0", "vgpr_spill_count: 3")),
            ["it spills"],
        )
        scratch = NOTES.replace("private_segment_fixed_size: 0", "private_segment_fixed_size: 8")
        self.assertEqual(self.misses(notes=scratch), ["it spills"])

    def test_registers_by_index(self):
        for line in ("s_set_gpr_idx_on s2, gpr_idx(SRC0)", "v_movrels_b32_e32 v1, v2"):
            wrong = self.misses(STEP.replace("ds_write", f"{line}\nds_write"))
            self.assertEqual(wrong, ["1 instructions that index registers in its loop"], line)

    def test_an_exception_allows_what_it_says_and_no_more(self):
        body = STEP.replace("ds_write", "s_waitcnt vmcnt(0)\nds_write")
        self.assertEqual(self.misses(body, (0.94, 5, 1), least=0.95), [])
        self.assertEqual(len(self.misses(body, (0.942, 4.9, 0), least=0.95)), 3)

    def test_refuses_a_step_whose_exponentials_are_not_its_scores(self):
        with self.assertRaisesRegex(NotUnderstood, "32 exponentials for 16 scores"):
            figures(STEP.replace("ds_write", repeat("v_exp_f32_e32 v1, v2", 16) + "\nds_write"))
        with self.assertRaisesRegex(NotUnderstood, "possible"):
            figures(STEP.replace(MFMA, f"{MFMA}\n{MFMA}"))

    def test_ways_that_nobody_takes(self):
        # Of two ways to multiply, each of which stands behind a branch, one is taken.
        products = repeat(MFMA, 8)
        body = STEP.replace(
            repeat(MFMA, 16),
            f"{products}\ns_cbranch_vccz a\n{products}\n"
            f"s_nop 0\na:\ns_cbranch_vccnz b\n{products}\nb:",
        )
        self.assertEqual(figures(body)["counts"]["matrix"], 16)

    def test_a_dearer_way_that_brings_more_than_a_step_needs(self):
        # 16 multiplications and 32 rows of each of four waves need 2 KB of each; STEP brings one.
        enough = "ds_write_b128 v9, v[40:43]\nbuffer_load_dwordx4 v[40:43], v4, s[72:75], 0 offen\n"
        more = f"s_cbranch_vccz a\nv_mov_b32_e32 v1, v2\n{enough}a:"
        for times, found in ((0, 2048), (1, 2048)):
            counts = figures(STEP.replace("s_cmp", f"{enough * times}{more}\ns_cmp"))["counts"]
            self.assertEqual((counts["filled"], counts["vector"]), (found, 41 - times))

    def test_gates(self):
        gate = hip_clocks.gate_of
        self.assertEqual(gate("forward_fp16_128", "gfx942", RATES["gfx942"]), 0.95)
        self.assertEqual(gate("forward_bf16_64", "gfx942", RATES["gfx942"]), 0.85)
        self.assertEqual(gate("forward_bf16_128", "gfx950", RATES["gfx950"]), 0.90)
        self.assertEqual(gate("forward_bf16_128", "gfx950", {"lds_read": 128}), 0.85)
        self.assertEqual(gate("forward_fp16_64", "gfx950", RATES["gfx950"]), 0.50)
        for instance, target in (
            ("forward_fp16_128_general", "gfx942"),
            ("forward_fp16_192", "gfx942"),
            ("decode_fp16_128", "gfx942"),
            ("forward_fp16_128", "gfx90a"),
            ("forward_fp16_128", "gfx1201"),
        ):
            self.assertIsNone(gate(instance, target, RATES[target]))

    def test_a_gated_kernel_that_is_not_there(self):
        with redirect_stdout(io.StringIO()):
            failures = hip_clocks.judge({("forward_fp16_64", "gfx942"): figures()}, RATES, [64])
        self.assertEqual(failures, ["forward_bf16_64 for gfx942 is gated and not there"])


class Program(unittest.TestCase):
    def run_on(self, lines, *options, text=disassembly(STEP)):
        def output_of(program, *arguments):
            return {"-d": text, "--notes": NOTES}.get(
                arguments[0], "  [ 0]  Debian clang version 22.1.8 (1)\n"
            )

        with tempfile.TemporaryDirectory() as folder:
            list_, out = Path(folder, "list.txt"), Path(folder, "out.json")
            list_.write_text("\n".join(lines))
            options = [str(out) if each == "OUT" else each for each in options]
            arguments = ["hip_clocks.py", "--objdump", "d", "--readelf", "r", *options, str(list_)]
            with mock.patch.object(sys, "argv", arguments), redirect_stdout(
                io.StringIO()
            ) as printed:
                with mock.patch.object(hip_clocks, "output_of", output_of):
                    with mock.patch.object(hip_clocks, "EXCEPTIONS", {}):
                        status = hip_clocks.main()
            written = json.loads(out.read_text()) if out.exists() else None
        return status, printed.getvalue(), written

    def test_an_empty_build_fails(self):
        for options in ((), ("--gate", "64,128")):
            status, printed, _ = self.run_on([], *options)
            self.assertEqual(status, 1)
            self.assertIn("error: the build has no HIP kernel that multiplies matrices", printed)

    def test_a_build_whose_kernels_multiply_nothing_fails(self):
        text = disassembly("v_mov_b32_e32 v1, v2\ns_endpgm")
        status, printed, _ = self.run_on(["forward_fp16_64 gfx942 a"], text=text)
        self.assertEqual(status, 1)
        self.assertIn("1 more multiply no matrices in a loop", printed)

    def test_prints_and_writes(self):
        status, printed, written = self.run_on(["forward_fp16_64 gfx942 a"], "--json", "OUT")
        self.assertEqual(status, 0, printed)
        self.assertRegex(
            printed, r"forward_fp16_64 +gfx942 +200 +0 +0 +0 +32768 +2 +512 +416 +544 +288 +94.1%"
        )
        (kernel,) = written["kernels"]
        self.assertEqual(
            (kernel["instance"], kernel["cap"], kernel["mix"]["v_exp_f32"]),
            ("forward_fp16_64", 0.9412, 16),
        )
        self.assertEqual(written["compiler"], ["Debian clang version 22.1.8 (1)"])
        self.assertRegex(written["date"], r"\d{4}-\d\d-\d\d")

    def test_prints_rows_for_the_documentation(self):
        status, printed, _ = self.run_on(["forward_fp16_64 gfx942 a"], "--markdown")
        cells = (
            "fp16, 64 | gfx942 | 200 | 32768 | 2 | 512 | 416 | 544 | 288 | 94 % | 94 % | 5.00 | 0"
        )
        self.assertEqual((status, printed), (0, f"| {cells} |\n"))

    def test_gated(self):
        status, printed, _ = self.run_on(["forward_fp16_64 gfx942 a"], "--gate", "64")
        self.assertEqual(status, 1)
        self.assertIn("error: forward_bf16_64 for gfx942 is gated and not there", printed)

    def test_an_unknown_instruction_fails_whatever_is_gated(self):
        text = disassembly(STEP.replace("v_pk_mul_f32", "v_mfma_f32_99x99x8_f16"))
        status, printed, _ = self.run_on(["forward_fp16_64 gfx942 a"], text=text)
        self.assertEqual(status, 1)
        self.assertIn("no clocks of v_mfma_f32_99x99x8_f16", printed)

    def test_an_unknown_target_fails(self):
        status, printed, _ = self.run_on(["forward_fp16_64 gfx1250 a"])
        self.assertEqual(status, 1)
        self.assertIn(
            "error: forward_fp16_64 for gfx1250: the table of rates has no gfx1250", printed
        )


if __name__ == "__main__":
    unittest.main()
