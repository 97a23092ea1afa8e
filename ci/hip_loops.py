"""What a kernel's steady loop executes, read from llvm-objdump's text.

Basic blocks come from branch targets, loops from back edges. Steady is the loop, and of the ways
from its head back to it the one, that multiplies most; of several the one that brings most of the
bytes that a step needs to LDS, and of those the cheapest for the vector pipe. So it takes no branch
that only masks, rescales, or finds that no block is left to load. What only some lanes or waves do
counts as if every wave did it. A loop within it counts as often as it runs, where that is constant.
"""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field


class NotUnderstood(Exception):
    """The text says something that counting it would get wrong."""


class Unknown(NotUnderstood):
    """An instruction that the tables lack."""


@dataclass(frozen=True)
class Instruction:
    address: int
    name: str  # without the encoding's suffix
    operands: str
    target: int | None = None  # of a branch


@dataclass
class Block:
    instructions: list
    successors: list = field(default_factory=list)  # addresses of blocks


# --- The text -------------------------------------------------------------------------------------

SYMBOL = re.compile(r"^([0-9a-fA-F]+) <(.+)>:$")
LINE = re.compile(
    r"^\s+(\S+)\s*(.*?)\s*//\s*([0-9a-fA-F]+):([^<]*)(?:<(.+?)(?:\+0x([0-9a-fA-F]+))?>)?"
)
SUFFIX = re.compile(r"(_e32|_e64|_e64_dpp|_e32_dpp|_dpp|_sdwa)$")
LEAVES = {"s_endpgm", "s_endpgm_saved"}
INDIRECT = (
    "s_setpc",
    "s_swappc",
    "s_call",
    "s_cbranch_g_fork",
    "s_cbranch_i_fork",
    "s_cbranch_join",
)


def is_branch(name):
    return name == "s_branch" or name.startswith("s_cbranch")


def parse(text):
    """{symbol: its instructions, without what pads it}."""
    kernels, starts, lines = {}, {}, None
    for line in text.splitlines():
        if symbol := SYMBOL.match(line):
            starts[symbol.group(2)] = int(symbol.group(1), 16)
            lines = kernels.setdefault(symbol.group(2), [])
        elif (found := LINE.match(line)) and lines is not None:
            name, operands, address, _, label, offset = found.groups()
            if name == "s_code_end":
                continue
            target = None
            if is_branch(name):
                if label not in starts:
                    raise NotUnderstood(f"{name} at {address} goes to {label}")
                target = starts[label] + int(offset or "0", 16)
            lines.append(Instruction(int(address, 16), SUFFIX.sub("", name), operands, target))
        elif lines is not None and re.match(r"^\s+[a-z.]", line):
            raise NotUnderstood(f"the line {line.strip()!r}")
    return kernels


def blocks_of(instructions):
    """{address: block} of a kernel, its first block first."""
    for each in instructions:
        if each.name.startswith(INDIRECT):
            raise NotUnderstood(f"{each.name}: calls and jumps to registers")
    leaders = {instructions[0].address}
    for each, after in zip(instructions, instructions[1:] + [None]):
        if each.target is not None:
            leaders.add(each.target)
        if after and (each.target is not None or each.name in LEAVES):
            leaders.add(after.address)
    blocks, block = {}, None
    for each in instructions:
        if each.address in leaders:
            block = blocks[each.address] = Block([])
        block.instructions.append(each)
    addresses = list(blocks)
    for address, after in zip(addresses, addresses[1:] + [None]):
        last = blocks[address].instructions[-1]
        reached = [] if last.target is None else [last.target]
        if last.name != "s_branch" and last.name not in LEAVES and after is not None:
            reached.append(after)
        if missing := [each for each in reached if each not in blocks]:
            raise NotUnderstood(f"a branch to {missing[0]:x}, which is no instruction")
        blocks[address].successors = list(dict.fromkeys(reached))
    return blocks


# --- Loops ----------------------------------------------------------------------------------------


def ordered(start, successors):
    """Nodes reached from start, each before those that follow it, as far as loops allow."""
    order, seen, stack = [], {start}, [(start, iter(successors(start)))]
    while stack:
        node, rest = stack[-1]
        following = next((each for each in rest if each not in seen), None)
        if following is None:
            order.append(node)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(successors(following))))
    return order[::-1]


def dominators(blocks):
    """{address: addresses of the blocks that every way to it goes through}."""
    first = next(iter(blocks))
    order = ordered(first, lambda a: blocks[a].successors)
    before = defaultdict(list)
    for address in order:
        for after in blocks[address].successors:
            before[after].append(address)
    found = {address: set(order) for address in order}
    found[first] = {first}
    changed = True
    while changed:
        changed = False
        for address in order[1:]:
            common = set.intersection(*(found[each] for each in before[address])) | {address}
            if common != found[address]:
                found[address], changed = common, True
    return found


def natural_loops(blocks):
    """{head: addresses of its loop's blocks}, inner loops before those around them."""
    above = dominators(blocks)
    before = defaultdict(list)
    for address in above:
        for after in blocks[address].successors:
            before[after].append(address)
    loops = {}
    for address in above:
        for head in blocks[address].successors:
            if head in above[address]:
                body, open_ = loops.setdefault(head, {head}), [address]
                while open_:
                    each = open_.pop()
                    if each not in body:
                        body.add(each)
                        open_ += before[each]
    return dict(sorted(loops.items(), key=lambda item: len(item[1])))


COMPARE = {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def constant(text):
    try:
        value = int(text, 0)
    except ValueError:
        return None
    return value - (1 << 32) if value >= 1 << 31 else value


def writes(instruction, register):
    """Its first operand is the register, or a range that has it."""
    first = instruction.operands.split(",")[0].strip()
    if instruction.name.startswith("s_cmp"):
        return False
    range_ = re.fullmatch(r"s\[(\d+):(\d+)\]", first)
    if range_ and re.fullmatch(r"s\d+", register):
        return int(range_.group(1)) <= int(register[1:]) <= int(range_.group(2))
    return first == register


def trip_count(blocks, head, body):
    """How often a loop's body runs if a scalar register counts it between constants; else None."""
    latches = [each for each in body if head in blocks[each].successors]
    if len(latches) != 1:
        return None
    latch = blocks[latches[0]].instructions
    if latch[-1].name not in ("s_cbranch_scc1", "s_cbranch_scc0"):
        return None
    if any(each not in body for other in body - set(latches) for each in blocks[other].successors):
        return None  # it may end elsewhere
    compares = [at for at, each in enumerate(latch) if each.name.startswith("s_cmp")]
    if not compares:
        return None
    compare = re.fullmatch(r"s_cmpk?_(\w\w)_[iu](?:32|64)", latch[compares[-1]].name)
    register, limit = (each.strip() for each in latch[compares[-1]].operands.split(",")[:2])
    limit = constant(limit)
    inside = [
        each for block in body for each in blocks[block].instructions if writes(each, register)
    ]
    if not compare or limit is None or len(inside) != 1 or inside[0] not in latch[: compares[-1]]:
        return None
    step = [each.strip() for each in inside[0].operands.split(",")]
    add = {"s_add_i32": 1, "s_add_u32": 1, "s_addk_i32": 1, "s_sub_i32": -1, "s_sub_u32": -1}
    sign = add.get(inside[0].name)
    if sign is None or (len(step) == 3 and step[1] != register) or constant(step[-1]) is None:
        return None
    if any(
        each.name.startswith("s_") and not each.name.startswith(("s_mov", "s_waitcnt", "s_nop"))
        for each in latch[compares[-1] + 1 : -1]
    ):
        return None  # scc may be another's by then
    value = start_of(blocks, head, body, register)
    if value is None:
        return None
    goes_on = latch[-1].name == "s_cbranch_scc1"
    if blocks[latches[0]].instructions[-1].target != head:
        goes_on = not goes_on
    for count in range(1, 100001):
        value += sign * constant(step[-1])
        if COMPARE[compare.group(1)](value, limit) != goes_on:
            return count
    return None


def start_of(blocks, head, body, register):
    """The constant that a register has where a loop is entered; else None."""
    at, seen = head, set(body)
    while True:
        before = [each for each in blocks if at in blocks[each].successors and each not in body]
        if len(before) != 1 or before[0] in seen:
            return None
        at = before[0]
        seen.add(at)
        for each in reversed(blocks[at].instructions):
            if writes(each, register):
                moves = each.name in ("s_mov_b32", "s_movk_i32")
                return constant(each.operands.split(",")[1].strip()) if moves else None


# --- Ways through a loop --------------------------------------------------------------------------


@dataclass
class Way:
    """Counts of what is executed along blocks, and how often which instruction is."""

    counts: Counter = field(default_factory=Counter)
    names: Counter = field(default_factory=Counter)
    unknown: bool = False  # holds a loop that runs nobody knows how often

    def add(self, other, times=1):
        for mine, theirs in ((self.counts, other.counts), (self.names, other.names)):
            for key, value in theirs.items():
                mine[key] += times * value
        self.unknown = self.unknown or other.unknown


# What ways are compared by: they must be alike in the first two.
STEP = ("flop", "exp", "filled", "loaded", "vector_clocks")


def merit(sums, needs=lambda flop: float("inf")):
    """More is better: multiplications, bytes read and put into LDS, up to what a step with these
    multiplications needs, and then the fewest clocks."""
    flop, _, filled, loaded, vector_clocks = sums
    return flop, min(filled, loaded, needs(flop)), -vector_clocks


@dataclass(frozen=True)
class Label:
    """A way as far as a node: its sums of STEP, its last part, and the label of what is before."""

    sums: tuple = (0,) * len(STEP)
    last: object = None
    before: object = None

    def then(self, way):
        sums = tuple(sum_ + way.counts[key] for sum_, key in zip(self.sums, STEP))
        return Label(sums, way, self)

    def way(self):
        found, label = Way(), self
        while label.before is not None:
            found.add(label.last)
            label = label.before
        return found


def keep_best(labels):
    """Without those that cost as much or more than one that does as much or more."""
    kept = defaultdict(list)
    for label in sorted(labels, key=lambda each: merit(each.sums), reverse=True):
        flop, exp, filled, loaded, clocks = label.sums
        alike = kept[flop, exp]
        if not any(a >= filled and b >= loaded and c <= clocks for a, b, c, _ in alike):
            alike.append((filled, loaded, clocks, label))
    found = [label for alike in kept.values() for *_, label in alike]
    if len(found) > 4000:
        raise NotUnderstood("too many ways through its loop")
    return found


def keep_dearest(labels):
    """The dearest of those that multiply as much."""
    kept = {}
    for label in labels:
        other = kept.setdefault(label.sums[:2], label)
        if label.sums[-1] > other.sums[-1]:
            kept[label.sums[:2]] = label
    return list(kept.values())


def way_of(block, count):
    way = Way()
    for each in block.instructions:
        way.counts.update(count(each))
        way.names[each.name] += 1
    return way


class Loops:
    """A kernel's loops; `count` says what an instruction adds to a way's counts."""

    def __init__(self, instructions, count):
        self.blocks = blocks_of(instructions)
        self.loops = natural_loops(self.blocks)
        self.ways = {address: way_of(block, count) for address, block in self.blocks.items()}
        self.trips = {
            head: trip_count(self.blocks, head, body) for head, body in self.loops.items()
        }
        self.whole = {}

    def multiplies(self, head):
        return any(self.ways[each].counts["flop"] for each in self.loops[head])

    def inner(self, head):
        """Heads of the loops directly within one."""
        body = self.loops[head]
        within = [each for each in self.loops if each != head and self.loops[each] < body]
        return [
            each
            for each in within
            if not any(self.loops[each] < self.loops[other] for other in within)
        ]

    def candidates(self):
        """Heads of loops that multiply, and not by a loop within them of unknown length."""
        multiply = [head for head in self.loops if self.multiplies(head)]
        walks = [
            head
            for head in multiply
            if not any(
                self.multiplies(each) and self.trips[each] is None for each in self.inner(head)
            )
        ]
        return [
            head
            for head in walks
            if not any(head in self.inner(each) and self.trips[head] is not None for each in walks)
        ]

    def taken(self, address, body):
        """Where a block leads. No wave comes without lanes to a branch that asks if it has any."""
        block = self.blocks[address]
        last = block.instructions[-1]
        if last.name in ("s_cbranch_execz", "s_cbranch_execnz") and len(block.successors) == 2:
            jumps = last.name.endswith("nz")
            likely = next(each for each in block.successors if (each == last.target) == jumps)
            if likely in body:
                return [likely]
        return block.successors

    def through(self, head, keep):
        """Labels of the ways from a loop's head back to it that `keep` keeps."""
        body = self.loops[head]
        inside = {block: each for each in self.inner(head) for block in self.loops[each]}

        def leads(node):
            if inside.get(node) != node:
                return self.taken(node, body)
            own = self.loops[node]
            return [to for each in own for to in self.blocks[each].successors if to not in own]

        def successors(node):
            within = [inside.get(to, to) for to in leads(node) if to in body and to != head]
            return list(dict.fromkeys(within))

        order = ordered(head, successors)
        place = {node: at for at, node in enumerate(order)}
        arriving, closing = defaultdict(list), []
        arriving[head] = [Label()]
        for node in order:
            own = self.once(node) if inside.get(node) == node else self.ways[node]
            here = [label.then(own) for label in keep(arriving.pop(node))]
            if head in leads(node):
                closing += here
            for after in successors(node):
                if place[after] <= place[node]:
                    raise NotUnderstood("a loop with two heads")
                arriving[after] += here
        return keep(closing)

    def once(self, head):
        """The way of a whole inner loop."""
        if head not in self.whole:
            labels = self.through(head, keep_best)
            best = max(labels, key=lambda each: merit(each.sums)).way() if labels else Way()
            trips = self.trips[head]
            self.whole[head] = Way(unknown=trips is None or not labels)
            self.whole[head].add(best, trips or 1)
        return self.whole[head]

    def most(self, head):
        """FLOP of the way through a loop that multiplies most, if loops within it run once."""
        return max((each.sums[0] for each in self.through(head, keep_dearest)), default=0)

    def steady(self, possible=lambda counts: True, needs=lambda flop: float("inf")):
        """(the steady loop's head, its way, its dearest way); None if no loop multiplies. Branches
        that depend on one another make ways that nobody takes: not `possible` ones. A step brings
        no more bytes to LDS than it `needs`."""
        found = []
        for head in self.candidates():
            labels = self.through(head, keep_best)
            found += [(label, head) for label in labels if possible(dict(zip(STEP, label.sums)))]
        if not found:
            if self.candidates():
                raise NotUnderstood("no way through a loop of it is possible")
            return None
        label, head = max(found, key=lambda each: merit(each[0].sums, needs))
        way = label.way()
        around = [each for each in self.loops if self.loops[head] < self.loops[each]]
        if way.unknown or any(self.most(each) > 4 * label.sums[0] for each in around):
            raise NotUnderstood("a loop within the steady one, which runs nobody knows how often")
        same = [each for each in self.through(head, keep_dearest) if each.sums[0] == label.sums[0]]
        return head, way, max(same, key=lambda each: each.sums[-1]).way()
