#!/usr/bin/env python3
"""Compiles a CUDA source and keeps what ptxas says of its kernels.

ptxas_gate.py COMMAND...

What it says goes to OBJECT.ptxas, OBJECT being the command's -o. Fails, after a good compilation,
if ptxas serialised matrix instructions (its notes C7510 to C7518).
"""

import re
import subprocess
import sys


def main() -> int:
    command = sys.argv[1:]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0 or "-o" not in command:
        sys.stdout.write(done.stdout)
        return done.returncode
    said = [line for line in done.stdout.splitlines() if re.search(r"ptxas|bytes stack", line)]
    with open(command[command.index("-o") + 1] + ".ptxas", "w") as file:
        file.write("\n".join(said) + "\n")
    rest = [line for line in done.stdout.splitlines() if line and line not in said]
    if rest:
        print("\n".join(rest))
    wrong = [line for line in said if re.search(r"C751[0-8]\b", line)]
    for line in wrong:
        print(f"error: {line.strip()}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
