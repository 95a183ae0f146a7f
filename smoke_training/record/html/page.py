"""The page of a run: verdict, culprits, plots, then every check, references, circumstances (pure).

It is rendered in the judging pod, whose image may lack a plotting library: hence the plots' own SVG.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from smoke_training.evidence import Evidence
from smoke_training.record import formatting
from smoke_training.record.formatting import escaped, interval, number, with_unit
from smoke_training.record.html import machines, ranks, style, wires
from smoke_training.record.html.plot import Draw, Plot, Result, made

MOST_ROWS = 400  # of a table under a plot; the samples have all of them
_SEVERITY = ("FAIL", "ERROR", "INCONCLUSIVE", "PASS", "SKIPPED")

# Name, title, drawing function, and the prefix of the ids of its checks. The data are in the
# result or the samples; nothing is judged again.
PLOTS: tuple[tuple[str, str, Draw, str], ...] = (
    ("straggler", "Compute time of every rank against its peers", ranks.stragglers, "training.straggler"),
    ("decomposition", "Parts of a training step's time", ranks.decomposition, "training."),
    ("busbw", "Bus bandwidth over message size", wires.bandwidth, "collective."),
    ("links", "Rate between nodes", wires.links, "fabric."),
    ("parity", "Loss on many ranks and on one", ranks.losses, "training.loss_parity"),
    ("storage", "Storage: durable writes, cold reads", machines.storage, "storage."),
    ("nodes", "Utilization of the nodes", machines.nodes, "host."),
)


def render(result: Result, found: Evidence) -> str:
    """The whole document; the same result and evidence give the same text."""
    stack = escaped(result["plan"]["stack"])
    body = [
        _head(result),
        _culprits(result),
        _section("Plots", "".join(_figure(plot) for plot in plots(result, found))),
        _section("Checks", _checks(result)),
        _section("References of the figures", _references(result)),
        _section("Circumstances", _circumstances(result)),
    ]
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width,initial-scale=1"><title>{escaped(result["verdict"])} {stack}</title>'
        f"<style>{style.sheet()}</style></head><body><main>{''.join(body)}</main></body></html>\n"
    )


def plots(result: Result, found: Evidence) -> list[Plot]:
    """Every plot: those of checks that failed first, those that cannot be drawn, with the reason, last."""

    def worst(prefix: str) -> int:
        shown = (check for check in result["checks"] if check["id"].startswith(prefix))
        return min(map(_severity, shown), default=len(PLOTS))

    ordered = sorted(PLOTS, key=lambda row: worst(row[3]))
    drawn = [made(name, title, draw, result, found) for name, title, draw, _ in ordered]
    return sorted(drawn, key=lambda plot: plot.drawn is None)


def _severity(check: Mapping[str, Any]) -> int:
    """Return the position of a check on the page: failures first, of those the required ones."""
    return 2 * _SEVERITY.index(check["status"]) + (not check["required"])


def _head(result: Result) -> str:
    plan, cluster = result["plan"], result["cluster"]
    ranks_, cost = cluster["ranks"], result["cost"]
    price = cost["estimated_usd"]
    depth = f", {plan['depth']}" if plan.get("depth") else ""
    facts = {
        "Machines": f"{cluster['nodes']} of type {plan['instance_type']}, {plan['gpus_per_node']} GPUs each",
        "Ranks": f"{len(ranks_)} on {cluster['device']}" if ranks_ else f"unknown: {cluster['reason']}",
        "Fabric": plan["fabric"],
        "Where": f"{plan['cloud']} {plan['region']}, profile {plan['profile']}",
        "Started": result["started"],
        "Took": f"{number(float(result['duration_s']), 4)} s{depth}",
        "Cost": f"unknown: {cost['reason']}" if price is None else with_unit(price, "USD"),
        "Run": result["run_id"],
    }
    answer, css = {
        True: ("Regression against this stack's accepted runs", "FAIL"),
        False: ("No regression against this stack's accepted runs", "PASS"),
        None: ("Regression not judged", "SKIPPED"),
    }[result["regression"]]
    partial = "<p><strong>A partial run: no validation of a stack.</strong></p>" if result["partial"] else ""
    return (
        f'<h1><span class="verdict {escaped(result["verdict"])}">{escaped(result["verdict"])}</span> '
        f"{escaped(plan['stack'])}: does training work on this stack?</h1>"
        f'<p>{escaped(result["headline"])}</p>{partial}<p><strong class="{css}">{answer}</strong>: '
        f"{escaped(result['regression_reason'])}</p>{_facts(facts)}"
    )


def _culprits(result: Result) -> str:
    accused = [c for c in _ordered(result) if c["status"] == "FAIL" and (c["culprits"] or c["next_action"])]
    described = "".join(
        f"<h3>{escaped(check['id'])}{'' if check['required'] else ', not gating'}</h3>{_text(check)}"
        for check in accused
    )
    return _section("Culprits", described) if described else ""


def _ordered(result: Result) -> list[Mapping[str, Any]]:
    return sorted(result["checks"], key=_severity)


def _checks(result: Result) -> str:
    rows = [
        [
            f'<strong class="{escaped(check["status"])}">{escaped(check["status"])}</strong>',
            f"<code>{escaped(check['id'])}</code>{'' if check['required'] else '<br>not gating'}",
            _measured(check),
            _sourced(formatting.expected(check)),
            _text(check),
        ]
        for check in _ordered(result)
    ]
    return _table(
        "Every check of this run, failures first. Intervals are two-sided 95 %; a FAIL needs far more: "
        "all checks of a run share a risk of 1e-4.",
        ("verdict", "check", "measured", "expected, in the same unit", "message"),
        rows,
    )


def _measured(check: Mapping[str, Any]) -> str:
    value, *more = formatting.measured(check) or ["—"]
    more += [f"{key.replace('_', ' ')} {number(v, 3)}" for key, v in check["noise"].items() if v is not None]
    return "<br>".join([f"<strong>{escaped(value)}</strong>", *map(escaped, more)])


def _sourced(parts: Sequence[str]) -> str:
    """Stack the parts of a figure, its source last."""
    *first, last = map(escaped, parts or ["—"])
    return "<br>".join([*first, f'<span class="soft">{last}</span>'])


def _text(check: Mapping[str, Any]) -> str:
    text = f"<p>{escaped(check['message'])}</p>"
    text += "".join(_culprit(culprit) for culprit in check["culprits"])
    if check["next_action"]:
        text += f"<p>Next: {escaped(check['next_action'])}</p>"
    return text


def _culprit(culprit: Mapping[str, Any]) -> str:
    where = f" on node {culprit['node']}" if culprit["node"] else ""
    score = "" if culprit["score"] is None else f", score {number(culprit['score'])}"
    score += f" ({interval(culprit['ci'])})" if culprit["ci"] else ""
    items = "".join(f"<li>{escaped(item)}</li>" for item in culprit["evidence"])
    return (
        f"<p>Culprit: <strong>{escaped(culprit['kind'])} {escaped(culprit['id'])}</strong>"
        f"{escaped(where)}, cause {escaped(culprit['cause'])}{escaped(score)}</p><ul>{items}</ul>"
    )


def _references(result: Result) -> str:
    kinds = ("bound", "declared", "published", "baseline")
    rows = []
    for check in _ordered(result):
        found = {item["kind"]: _sourced(formatting.reference(item)) for item in check["references"]}
        if found and check["measured"] is not None:
            shown = escaped(with_unit(check["measured"]["value"], check["measured"]["unit"]))
            rows.append([f"<code>{escaped(check['id'])}</code>", shown, *(found[kind] for kind in kinds)])
    if not rows:
        return "<p>No figure of this run has a reference.</p>"
    return _table(
        "Four references per figure: the theoretical bound, the declared and the published value, and "
        "this stack's previous one.",
        ("check", "measured", "theoretical bound", "declared", "published", "own accepted run"),
        rows,
    )


def _figure(plot: Plot) -> str:
    head, drawn = f'<figure id="{plot.name}"><figcaption><h3>{escaped(plot.title)}</h3>', plot.drawn
    if drawn is None:
        return f'{head}</figcaption><p class="why">Not drawn. {escaped(plot.reason)}</p></figure>'
    rows = [[escaped(cell) for cell in row] for row in drawn.rows[:MOST_ROWS]]
    cut = f" (first {MOST_ROWS} of {len(drawn.rows)})" if len(drawn.rows) > MOST_ROWS else ""
    table = _table(f"Figures of the plot{cut}", drawn.columns, rows)
    return (
        f'{head}<span class="soft">{escaped(drawn.caption)}</span></figcaption>'
        f"{drawn.drawing.render(plot.name, plot.title)}"
        f"<details><summary>Figures as a table</summary>{table}</details></figure>"
    )


def _circumstances(result: Result) -> str:
    used, accepted = result["resources"], result["baseline"]
    facts = {key.replace("_", " "): v for key, v in result["fingerprint"].items() if key != "kill_schedule"}
    facts["cpu seconds"] = number(used["cpu_seconds"])
    for name, key in (("largest rank", "max_rss_bytes"), ("GPU memory", "gpu_memory_bytes")):
        facts[name] = with_unit(None if used[key] is None else used[key] / 1e6, "MB")
    becomes = "this stack's baseline" if accepted["accepted"] else f"no baseline: {accepted['reason']}"
    notes = "".join(f"<li>{escaped(note)}</li>" for note in result["notes"])
    return (
        _facts({key: "unknown" if value is None else value for key, value in facts.items()})
        + f"<p>{escaped(f'It becomes {becomes}.')}</p>"
        + (f"<ul>{notes}</ul>" if notes else "")
    )


def _facts(facts: Mapping[str, object]) -> str:
    items = "".join(f"<div><dt>{escaped(k)}</dt><dd>{escaped(v)}</dd></div>" for k, v in facts.items())
    return f'<dl class="facts">{items}</dl>'


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escaped(title)}</h2>{content}</section>"


def _table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escaped(column)}</th>' for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="scroll"><table><caption>{escaped(caption)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
