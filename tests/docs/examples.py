"""Compiles the examples of Markdown pages (```cpp blocks: whole sources) and of headers (calls in
comments: statements whose operands are declared below). Fails if one does not compile, or if there
is none."""

import argparse
import pathlib
import re
import subprocess
import sys

PRELUDE = """#include <tessera/tessera.hpp>
using namespace tessera;
[[maybe_unused]] static void example(ConstTensor q, ConstTensor k, ConstTensor v, Tensor out,
                                     Tensor lse, ConstTensor cache_k, ConstTensor cache_v,
                                     ConstVector lengths, ConstTensor dout, Tensor dq, Tensor dk,
                                     Tensor dv) {
"""


def of_page(text):
    return re.findall(r"^```cpp\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def of_header(text):
    """Statements that begin with a call of the library, indented in a documentation comment."""
    lines = [m.group(1) for m in re.finditer(r"^/// {5}(.*)$", text, re.MULTILINE)]
    found, statement = [], None
    for line in lines:
        if statement is None and re.match(r"(forward|backward|decode|execute|plan)\(", line):
            statement = ""
        if statement is not None:
            statement += line + "\n"
            if line.endswith(";"):
                found.append(PRELUDE + statement + "}\n")
                statement = None
    if statement is not None:
        found.append(PRELUDE + statement)  # unfinished: the compiler will say so
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    count = failed = 0
    for path in args.files:
        text = path.read_text(encoding="utf-8")
        for source in of_page(text) if path.suffix == ".md" else of_header(text):
            count += 1
            command = [
                args.compiler,
                "-std=c++20",
                "-fsyntax-only",
                "-Wall",
                "-Wextra",
                "-Wno-unused-parameter",
                "-x",
                "c++",
            ]
            command += [flag for folder in args.include for flag in ("-I", folder)] + ["-"]
            result = subprocess.run(command, input=source, text=True, capture_output=True)
            if result.returncode or result.stderr:
                failed += 1
                print(f"{path}: an example does not compile:\n{source}\n{result.stderr}")
    print(f"{count} examples, {failed} of them wrong")
    sys.exit(1 if failed or count < 4 else 0)


main()
