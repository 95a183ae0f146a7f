"""Colours and layout (pure). Every pair of colours keeps WCAG 2.1 AA contrast: 4.5 for text, 3 for marks."""

from collections.abc import Mapping

# Series differ by marker or dash as well, never by colour alone. The hues follow Okabe & Ito, made
# darker on light and lighter on dark ground.
LIGHT: Mapping[str, str] = {
    "ground": "#ffffff", "panel": "#f4f6f8", "text": "#1b1f24", "soft": "#545d68", "line": "#7d8794",
    "grid": "#d9dee4", "good": "#1a6b3a", "bad": "#b3261e", "doubt": "#805600", "link": "#0059b3",
    "s0": "#0067a5", "s1": "#b34700", "s2": "#00755a", "s3": "#8c3f75", "s4": "#6b5b00", "s5": "#4a4f57",
    "zone": "#fbe9c0",
}  # fmt: skip
DARK: Mapping[str, str] = {
    "ground": "#14181c", "panel": "#1d2329", "text": "#e8ecf0", "soft": "#aab4bf", "line": "#7d8894",
    "grid": "#333b44", "good": "#5fd38d", "bad": "#ff8a80", "doubt": "#f0c14b", "link": "#7ab8ff",
    "s0": "#5ab4ee", "s1": "#ff9457", "s2": "#3ccfa2", "s3": "#e59cc9", "s4": "#e3d24a", "s5": "#b9c2cc",
    "zone": "#4a3d12",
}  # fmt: skip
SERIES = 6

_LAYOUT = """
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--text);font:15px/1.45 system-ui,-apple-system,"Segoe UI",
"DejaVu Sans",sans-serif}
main{max-width:1080px;margin:0 auto;padding:24px 20px 60px}
h1{font-size:22px;margin:0 0 4px}h2{font-size:18px;margin:34px 0 8px;border-bottom:1px solid var(--grid);
padding-bottom:4px}h3{font-size:15px;margin:18px 0 4px}
p{margin:6px 0}code{font:13px/1.4 ui-monospace,"DejaVu Sans Mono",monospace;
overflow-wrap:anywhere}
.soft{color:var(--soft)}
.verdict{display:inline-block;font-weight:700;border:2px solid currentColor;border-radius:4px;padding:1px 8px}
.PASS{color:var(--good)}.FAIL,.ERROR{color:var(--bad)}.INCONCLUSIVE{color:var(--doubt)}
.SKIPPED{color:var(--soft)}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(215px,1fr));gap:4px 18px;
background:var(--panel);padding:10px 14px;border-radius:6px;margin:12px 0}
.facts dt{color:var(--soft);font-size:13px}.facts dd{margin:0 0 4px;overflow-wrap:anywhere}
.facts div{break-inside:avoid}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:13.5px}
th,td{text-align:left;vertical-align:top;padding:5px 8px;border-bottom:1px solid var(--grid)}
td p:first-child{margin-top:0}td code{overflow-wrap:normal}
th{color:var(--soft);font-weight:600}caption{text-align:left;color:var(--soft);padding:2px 0 6px}
figure{margin:14px 0 22px;break-inside:avoid}figcaption{font-size:14px;margin-bottom:4px}
figure .why{background:var(--panel);border-left:4px solid var(--line);padding:8px 12px;margin:6px 0}
details{margin:6px 0}summary{cursor:pointer;color:var(--link)}
ul{margin:4px 0;padding-left:20px}
svg{width:100%;height:auto;display:block;font:12px system-ui,-apple-system,"Segoe UI","DejaVu Sans",
sans-serif}
svg polyline{fill:none}svg text{fill:var(--text)}svg .soft{fill:var(--soft)}
svg .grid{stroke:var(--grid);stroke-width:1}svg .axis{stroke:var(--line);stroke-width:1}
svg .zone{fill:var(--zone)}svg .limit{stroke:var(--bad);stroke-width:1.5;fill:none}
svg .bound{stroke:var(--text);stroke-width:1.5;fill:none}
svg .bad{fill:var(--bad);stroke:var(--bad)}svg .empty{fill:var(--panel)}
svg rect:not(.limit){stroke:none}
"""
_PRINT = """
@page{size:A4;margin:14mm}
@media print{body{font-size:10.5pt}main{max-width:none;padding:0}h2{break-after:avoid}tr{break-inside:avoid}
.scroll{overflow:visible}table{font-size:8.5pt}details>summary{display:none}
thead{display:table-header-group}}
"""


def sheet() -> str:
    """Return the style sheet: light by default, dark where the reader prefers it, always light on paper."""
    series = "".join(
        f"svg .s{i}{{fill:var(--s{i});stroke:var(--s{i})}}"
        f"svg .l{i}{{fill:none;stroke:var(--s{i});stroke-width:2}}"
        for i in range(SERIES)
    )
    return (
        f":root{{color-scheme:light dark;{_variables(LIGHT)}}}"
        f"@media (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}"
        f"@media print{{:root{{color-scheme:light;{_variables(LIGHT)}}}}}"
        f"{_LAYOUT}{series}{_PRINT}"
    )


def _variables(colours: Mapping[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in colours.items())
