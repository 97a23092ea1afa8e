"""Compares result files in Google Benchmark's JSON format in a Markdown and an HTML report.

load      reads a file strictly: what is malformed is refused with one line
judge     ratios to the first file, the noise rule, geometric means
document  the report's contents, free of any markup
render    the contents as Markdown and as HTML
chart     the chart, as SVG
"""
