"""The report's contents as Markdown and as HTML."""

from __future__ import annotations

import html

from compare.document import Block, Heading, Image, Items, Paragraph, Table, Warning
from compare.document import MARKS, Verdict

TITLE = "Tessera: benchmark comparison"

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #1a1a1a; background: #fff;
       margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.9rem; }
th, td { padding: 0.25rem 0.7rem; border-bottom: 1px solid #ddd; text-align: right;
         white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
th { border-bottom: 2px solid #888; }
.slower { color: #b00020; font-weight: 600; } .faster { color: #00692e; font-weight: 600; }
.warning { border-left: 4px solid #c77700; background: #fff6e5; padding: 0.5rem 0.8rem; }
img { max-width: 100%; }
"""


def markdown(blocks: list[Block]) -> str:
    return "\n\n".join([f"# {TITLE}", *(_markdown_block(block) for block in blocks)]) + "\n"


def _markdown_block(block: Block) -> str:
    match block:
        case Heading(text):
            return f"## {_escape_markdown(text)}"
        case Paragraph(text):
            return _escape_markdown(text)
        case Warning(text):
            return f"> **Warning:** {_escape_markdown(text)}"
        case Items(texts):
            return "\n".join(f"- {_escape_markdown(text)}" for text in texts)
        case Image(path, text):
            return f"![{_escape_markdown(text)}]({path})"
        case Table(head, rows):
            rule = ["---", *["---:"] * (len(head) - 1)]
            lines = [
                map(_escape_markdown, head),
                rule,
                *(map(_escape_markdown, row) for row in rows),
            ]
            return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _escape_markdown(text: str) -> str:
    """What comes from a file must neither end a table cell nor be taken for markup."""
    escaped = "".join("\\" + c if c in "\\`*_[]<>|#~" else c for c in text)
    return " ".join(escaped.split())


def page(blocks: list[Block]) -> str:
    body = "\n".join(_html_block(block) for block in blocks)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{TITLE}</title>\n"
        f"<style>{STYLE}</style>\n</head>\n<body>\n<h1>{TITLE}</h1>\n{body}\n</body>\n</html>\n"
    )


def _html_block(block: Block) -> str:
    match block:
        case Heading(text):
            return f"<h2>{html.escape(text)}</h2>"
        case Paragraph(text):
            return f"<p>{html.escape(text)}</p>"
        case Warning(text):
            return f'<p class="warning">Warning: {html.escape(text)}</p>'
        case Items(texts):
            return "<ul>" + "".join(f"<li>{html.escape(text)}</li>" for text in texts) + "</ul>"
        case Image(path, text):
            return f'<img src="{html.escape(path)}" alt="{html.escape(text)}">'
        case Table(head, rows):
            top = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
            lines = "\n".join("<tr>" + "".join(map(_html_cell, row)) + "</tr>" for row in rows)
            return f'<div class="scroll"><table>\n<tr>{top}</tr>\n{lines}\n</table></div>'


def _html_cell(text: str) -> str:
    for verdict in (Verdict.SLOWER, Verdict.FASTER):
        if text.endswith(MARKS[verdict]):
            return f'<td class="{verdict.value}">{html.escape(text)}</td>'
    return f"<td>{html.escape(text)}</td>"
