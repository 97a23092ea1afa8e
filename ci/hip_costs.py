"""What an instruction of AMD's adds to a step's counts, and the clocks that a step takes of a pipe.

Rates are hip_rates.json's. Counts are a wave's; clocks are those of a round, one step of one wave
on each SIMD of the unit that shares an LDS. All waves of a round share the LDS; of the other pipes
each SIMD has its own.
"""

import json
import re

from hip_loops import NotUnderstood, Unknown

TRANS = re.compile(r"v_(s_)?(exp|log|rcp|rcp_iflag|rsq|sqrt|sin|cos)_(f16|bf16|f32|f64)")
SLOW = re.compile(r"v_(mul_lo|mul_hi|mad)_[iu](32|64)(_[iu]32)?|v_mad_co_[iu]64_[iu]32")
SHAPE = re.compile(r"v_(?:mfma|wmma)_\w+?_(\d+)x(\d+)x(\d+)_?(\w+)")
WIDTH = {
    **dict.fromkeys(("b8", "u8", "i8"), 1),
    **dict.fromkeys(("b16", "u16", "i16"), 2),
    **dict.fromkeys(("b32", "u32", "i32", "f32"), 4),
    **dict.fromkeys(("b64", "u64", "i64", "f64"), 8),
    "b96": 12,
    "b128": 16,
}
MEMORY = {
    **WIDTH,
    **dict.fromkeys(("ubyte", "sbyte", "byte"), 1),
    **dict.fromkeys(("ushort", "sshort", "short", "d16"), 2),
    "dword": 4,
    "dwordx2": 8,
    "dwordx3": 12,
    "dwordx4": 16,
}
CROSSBAR = ("ds_bpermute", "ds_permute", "ds_swizzle")
# Of no kind that competes for a turn; but of a wave.
INTERNAL = (
    *("s_nop", "s_wait", "s_barrier", "s_sleep", "s_setprio", "s_delay_alu", "s_clause"),
    *("s_sethalt", "s_set_inst_prefetch", "s_inst_prefetch", "s_icache_inv", "s_sendmsg"),
    *("s_endpgm", "s_trap"),
)


class Rates(dict):
    """A target's numbers by name."""

    def __init__(self, target, table):
        if target not in table:
            raise Unknown(f"the table of rates has no {target}")
        super().__init__({name: entry["value"] for name, entry in table[target].items()})


def load_rates(file):
    table = json.loads(file.read_text())
    return {target: Rates(target, table) for target in table if target != "what"}


def width(name, widths):
    """Bytes a lane that a memory instruction names first; after that are formats (tr_b16, d16)."""
    for word in name.split("_"):
        if word in widths:
            return widths[word]
    raise Unknown(f"how wide {name} is")


def columns(instruction):
    """Of a matrix instruction's result; of others 0."""
    shape = SHAPE.match(instruction.name)
    return int(shape.group(2)) if shape else 0


def count_matrix(name, rates):
    shape = SHAPE.match(name)
    if not shape or name not in rates["matrix"]:
        raise Unknown(f"the table of rates has no clocks of {name}")
    flop = 2 * int(shape.group(1)) * int(shape.group(2)) * int(shape.group(3))
    rate = rates["flop_fp32" if shape.group(4) == "f32" else "flop"] / rates["simds"]
    return {
        "matrix": 1,
        "flop": flop,
        "ideal_clocks": flop / rate,
        "matrix_clocks": rates["matrix"][name],
    }


def count_vector(name, rates):
    if TRANS.fullmatch(name):
        clocks = 0 if rates["trans_own_pipe"] else rates["trans"]
        return {"trans": 1, "exp": int("exp" in name), "vector_clocks": clocks}
    slow = SLOW.fullmatch(name) is not None
    counted = {"vector": 1, "vector_clocks": rates["slow_vector" if slow else "vector"]}
    if name.startswith("v_movrel"):
        counted["indexed"] = 1
    return counted


def count_lds(name, rates):
    if name == "ds_nop":
        return {"lds": 1}
    lanes = rates["lanes"]
    if name.startswith(CROSSBAR):
        return {"lds": 1, "lds_read": 4 * lanes}
    pieces = 2 if re.match(r"ds_(read2|write2|load_2addr|store_2addr)", name) else 1
    size = pieces * width(name, WIDTH) * lanes
    if name.startswith(("ds_read", "ds_load")):
        return {"lds": 1, "lds_read": size}
    if name.startswith(("ds_write", "ds_store")):
        return {"lds": 1, "lds_write": size, "filled": size}
    return {"lds": 1, "lds_read": size, "lds_write": size}  # atomics


def count_memory(name, operands, rates):
    counted = {"memory": 1}
    if name.startswith("scratch_"):
        counted["scratch"] = 1
    if "_load" in name:
        size = width(name, MEMORY) * rates["lanes"]
        counted["loaded"] = size
        if "_lds_" in name or re.search(r"\blds\b", operands):
            counted |= {"lds_write": size, "filled": size}
    return counted


def waits_for_all(instruction):
    """It waits until no load is under way."""
    if instruction.name == "s_waitcnt":
        return re.search(r"vmcnt\(0\)", instruction.operands) is not None
    if instruction.name in ("s_wait_loadcnt", "s_wait_loadcnt_dscnt"):
        value = int(instruction.operands.strip(), 0)
        return (value >> 8 if instruction.name.endswith("dscnt") else value) == 0
    return False


def count(instruction, rates):
    """What it adds to a way's counts."""
    name, operands = instruction.name, instruction.operands
    one = {"instructions": 1}
    if name.startswith(("v_mfma", "v_smfmac", "v_wmma", "v_swmmac")):
        return one | count_matrix(name, rates)
    if name.startswith("v_"):
        return one | count_vector(name, rates)
    if name.startswith("ds_"):
        return one | count_lds(name, rates)
    if name.startswith(("buffer_", "global_", "flat_", "scratch_")):
        return one | count_memory(name, operands, rates)
    if name.startswith(INTERNAL):
        idle = int(operands.split()[0], 0) if name == "s_nop" else 0
        return one | {"idle": idle, "waits_for_all": int(waits_for_all(instruction))}
    if name.startswith("s_set_gpr_idx"):
        return one | {"scalar": 1, "indexed": 1}
    if name == "s_branch" or name.startswith("s_cbranch"):
        return one | {"branch": 1}
    if name.startswith("s_"):
        return one | {"scalar": 1}
    raise Unknown(f"{name} is of no kind that is counted")


# --- Clocks ---------------------------------------------------------------------------------------


def resident_waves(kernel, rates):
    """Waves of a kernel that a SIMD holds, by registers, LDS and slots; of whole work-groups."""

    def up(value, granule):
        return -(-value // granule) * granule

    waves = -(-kernel["threads"] // rates["lanes"])
    by_registers = rates["registers"] // up(max(kernel["vgpr"], 1), rates["register_granule"])
    slots = min(by_registers, rates["waves"]) * rates["simds"]
    groups = slots // waves
    if kernel["LDS"]:
        groups = min(groups, rates["lds_bytes"] // up(kernel["LDS"], rates["lds_granule"]))
    if groups == 0:
        raise NotUnderstood("not one work-group fits")
    return groups * waves / rates["simds"]


def clocks(counts, resident, rates, trans="trans", first_pass=False):
    """{pipe: clocks of a round}. `resident` waves a SIMD share turns, in which none issues twice.
    With first_pass, a matrix instruction takes the vector pipe for as long as another one does."""
    vector = rates["vector"]  # its clocks were counted with the gated rate
    other = counts["vector_clocks"] - (
        0 if rates["trans_own_pipe"] else counts["trans"] * rates["trans"]
    )
    exps = counts["trans"] * rates[trans]
    found = {"matrix": counts["matrix_clocks"]}
    if rates["trans_own_pipe"]:
        found |= {"vector": other + counts["trans"] * vector, "trans": exps}
    else:
        found |= {"vector": other + exps}
    if rates["matrix_shares_vector"]:
        found["vector"] += counts["matrix_clocks"]
    elif first_pass:
        found["vector"] += counts["matrix"] * vector
    lds = counts["lds_read"] / rates["lds_read"] + counts["lds_write"] / rates["lds_write"]
    found["LDS"] = lds * rates["simds"]
    kinds = [counts["vector"] + counts["trans"] + counts["matrix"]]
    kinds += [counts[kind] for kind in ("lds", "memory", "scalar", "branch")]
    alone = (counts["instructions"] + counts["idle"]) / resident
    found["issue"] = rates["turn"] * max(*kinds, alone)
    return found
