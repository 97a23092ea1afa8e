"""Tests of the comparison: `python3 -m unittest discover -s bench/compare -t bench`."""
