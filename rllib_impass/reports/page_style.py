"""How the page of a report looks."""

from rllib_impass.reports.style import INK, MUTED, PALE, PAPER, variable_of

_INK, _MUTED, _PALE, _PAPER = map(variable_of, (INK, MUTED, PALE, PAPER))

STYLE = f"""
* {{ box-sizing: border-box; }}
html {{ -webkit-text-size-adjust: 100%; }}
body {{
  margin: 0; background: {_PAPER}; color: {_INK};
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue",
    Arial, sans-serif;
}}
main {{ max-width: 66rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }}
h1 {{ font-size: 1.7rem; line-height: 1.25; margin: 0 0 .4rem; text-wrap: balance; }}
h2 {{ font-size: 1.25rem; line-height: 1.3; margin: 0 0 .5rem; }}
h3 {{ font-size: 1rem; margin: 0 0 .5rem; }}
p, ul {{ margin: 0 0 1rem; max-width: 44rem; }}
ul {{ padding-left: 1.2rem; }}
li {{ margin: .2rem 0; }}
header {{ margin-bottom: 1rem; }}
section {{ border-top: 1px solid {_PALE}; padding-top: 1.5rem; margin-top: 2rem; }}
.facts, figcaption {{ color: {_MUTED}; font-size: .9rem; }}
.notes, .recommendation {{
  border-left: 3px solid {_PALE}; padding: .1rem 0 .1rem 1rem; margin: 1.25rem 0;
  max-width: 44rem;
}}
.recommendation {{
  border-color: {variable_of("#00875f")}; padding: .5rem 0 .5rem 1rem;
}}
.notes p {{ margin: 0; }}
.notes ul {{ margin: .2rem 0 0; }}
figure {{ margin: 1rem 0; min-width: 0; }}
figcaption {{ max-width: 44rem; margin-top: .3rem; }}
.plots, .panels {{
  display: grid; gap: 1.25rem 2rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr));
}}
.plots > .wide {{ grid-column: 1 / -1; }}
.panel {{ min-width: 0; max-width: 34rem; }}
.panel svg {{ display: block; width: 100%; height: auto; }}
.panel text {{ font-family: inherit !important; }}
.tables {{ display: flex; flex-wrap: wrap; gap: 0 3rem; margin-top: 1.5rem; }}
.table {{ overflow-x: auto; max-width: 100%; margin: 0 0 1.5rem; }}
table {{
  border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums;
}}
caption {{ text-align: left; font-weight: 600; padding: .3rem 0; }}
th, td {{
  text-align: left; padding: .35rem 1.1rem .35rem 0; white-space: nowrap;
  border-bottom: 1px solid {_PALE}; font-weight: 400;
}}
thead th {{ color: {_MUTED}; }}
tbody th {{ font-weight: 600; }}
.number {{ text-align: right; }}
code {{ font-size: .9em; }}
summary {{ cursor: pointer; }}
summary h2 {{ display: inline; }}
details > :nth-child(2) {{ margin-top: .75rem; }}
:focus-visible {{ outline: 2px solid {variable_of("#0072b2")}; outline-offset: 2px; }}
@media (max-width: 30rem) {{
  main {{ padding: 1.5rem 1rem 3rem; }}
  h1 {{ font-size: 1.35rem; }}
  table {{ font-size: .85rem; }}
  th, td {{ padding-right: .8rem; }}
  th, td:not(.number) {{ white-space: normal; }}
  td:not(.number) {{ min-width: 5.6rem; }}
}}
@media print {{ section {{ break-inside: avoid; }} }}
"""
