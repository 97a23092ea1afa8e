"""load.py LIBRARY MAJOR.MINOR.PATCH: loads libtessera into python3 and asks its version."""

import ctypes
import sys


class Version(ctypes.Structure):
    _fields_ = [("major", ctypes.c_int), ("minor", ctypes.c_int), ("patch", ctypes.c_int)]


library = ctypes.CDLL(sys.argv[1])
library_version = library._ZN7tessera15library_versionEv  # tessera::library_version()
library_version.restype = Version
version = library_version()
found = f"{version.major}.{version.minor}.{version.patch}"
if found != sys.argv[2]:
    sys.exit(f"library_version() is {found}, not {sys.argv[2]}")

device_count = library._ZN7tessera12device_countEv  # starts the backend
device_count.restype = ctypes.c_int
if device_count() < 1:
    sys.exit("no device")
print(f"python3 loaded Tessera {found}")
