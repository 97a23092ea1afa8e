#!/usr/bin/env python3
"""ci/hip_budgets.py --readelf LLVM_READELF LIST: what the HIP kernels of a build take; needs no GPU.

LIST is the build's code_objects.txt: lines of "instance target file". Prints a line a code object:
vector registers (on gfx9 with the accumulation registers, which are told beside it) and scalar ones,
registers spilled, bytes of scratch memory a lane and of LDS a work-group, as the compiler noted them
in it. Exit status 1: a kernel spills vector registers or uses scratch memory, beyond what EXCEPTIONS
allows, is not what the library looks for, or there is none. Scalar registers spill into lanes of
vector ones, which is told.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

FIELDS = {
    "vgpr": "vgpr_count",
    "agpr": "agpr_count",
    "sgpr": "sgpr_count",
    "spilled": "vgpr_spill_count",
    "s-spilled": "sgpr_spill_count",
    "scratch": "private_segment_fixed_size",
    "LDS": "group_segment_fixed_size",
}
MUST_BE_ZERO = ("spilled", "scratch")
# What is known and to be mended: (instances, targets, most registers spilled, most bytes of scratch).
EXCEPTIONS = (
    # RDNA: queries and sums of the wide head dimensions together have more than 256 registers.
    (r"forward_(fp16|bf16)_128_general", r"gfx1\d+", 120, 300),
    (r"forward_(fp16|bf16)_(192x128|192|256)(_general)?", r"gfx1\d+", 1100, 2500),
    (r"backward_(fp16|bf16)_128_dk(_general)?", r"gfx1\d+", 40, 128),
    # CDNA: no vector register is left for the lanes that scalar ones spill into.
    (r"backward_(fp16|bf16)_\w+", r"gfx9\w+", 0, 40),
    # To accumulation registers, not to memory: lanes of vector registers hold many scalars.
    (r"forward_(fp16|bf16)_(256|\w+_general)", r"gfx9\w+", 3, 0),
)


def kernels_in(notes):
    """The kernels in what readelf prints: {field: text} each. A kernel's fields are indented by four,
    the first of them behind a dash; deeper ones are its arguments'."""
    kernels = []
    for dash, field, value in re.findall(r"^  ([- ]) \.(\w+):[ ]*(.*)$", notes, re.M):
        if dash == "-":
            kernels.append({})
        kernels[-1][field] = value.strip()
    return kernels


def most(instance, target):
    """What each of MUST_BE_ZERO may be."""
    for instances, targets, *allowed in EXCEPTIONS:
        if re.fullmatch(instances, instance) and re.fullmatch(targets, target):
            return allowed
    return [0] * len(MUST_BE_ZERO)


def wrong_with(kernel, instance, target):
    """Sentences; none if all is well."""
    found = [
        f"{kernel[FIELDS[field]]} {field}"
        for field, allowed in zip(MUST_BE_ZERO, most(instance, target))
        if int(kernel[FIELDS[field]]) > allowed
    ]
    if kernel.get("uses_dynamic_stack") == "true":
        found.append("a stack of unknown size")
    if kernel["name"] != f"tessera_{instance}":
        found.append(f"its kernel is {kernel['name']}, not tessera_{instance}")
    return found


def look_at(readelf, instance, target, file):
    """Prints the code object's line; what is wrong with it."""
    notes = subprocess.run(
        [readelf, "--notes", file], check=True, capture_output=True, text=True
    ).stdout
    kernels = kernels_in(notes)
    if len(kernels) != 1:
        return [f"it has {len(kernels)} kernels, not one"]
    # RDNA has no accumulation registers, and says nothing of them.
    kernel = {"agpr_count": "0", **kernels[0]}
    missing = [field for field in (*FIELDS.values(), "name") if field not in kernel]
    if missing:
        return [f"readelf does not tell {', '.join(missing)}"]
    numbers = [f"{kernel[field]:>{max(len(head), 7)}}" for head, field in FIELDS.items()]
    print(f"{instance:32} {target:8}", *numbers)
    found = wrong_with(kernel, instance, target)
    made_for = re.search(r"^amdhsa\.target:\s+\S+--(\w+)", notes, re.M)
    if made_for is None or made_for.group(1) != target:
        found.append(f"it is compiled for {made_for.group(1) if made_for else 'no target'}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--readelf", required=True, help="llvm-readelf, of the compiler's version")
    parser.add_argument("list", type=Path, help="lines of: instance target file")
    arguments = parser.parse_args()
    objects = [line.split(" ", 2) for line in arguments.list.read_text().splitlines() if line]
    print(f"{'instance':32} {'target':8}", *(f"{head:>{max(len(head), 7)}}" for head in FIELDS))
    failures = [
        f"{instance} for {target}: {text}"
        for instance, target, file in objects
        for text in look_at(arguments.readelf, instance, target, file)
    ]
    print(f"{len(objects)} code objects, {sum(Path(o[2]).stat().st_size for o in objects)} bytes")
    if not objects:
        failures.append("the build has no HIP kernel")
    for failure in failures:
        print(f"error: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
