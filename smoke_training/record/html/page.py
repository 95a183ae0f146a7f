"""The page of a run: verdict, culprits, plots, then every check, references, circumstances (pure).

It is made inside the pod that judges, whose image need not have a plotting library: hence the plots' own SVG.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from smoke_training.evidence import Evidence
from smoke_training.record.html import plots, style
from smoke_training.record.html.plot import Plot, severity
from smoke_training.record.html.words import escaped, interval, number, with_unit

Result = Mapping[str, Any]
MOST_ROWS = 400  # of a table under a plot; the samples have all of them


def render(result: Result, found: Evidence) -> str:
    """The whole document; the same result and evidence give the same text."""
    stack = escaped(result["plan"]["stack"])
    body = [
        _head(result),
        _culprits(result),
        _section("Plots", "".join(_figure(plot) for plot in plots.all_of(result, found))),
        _section("Checks", _checks(result)),
        _section("What the figures are held against", _references(result)),
        _section("Circumstances", _circumstances(result)),
    ]
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width,initial-scale=1"><title>{escaped(result["verdict"])} {stack}</title>'
        f"<style>{style.sheet()}</style></head><body><main>{''.join(body)}</main></body></html>\n"
    )


def _head(result: Result) -> str:
    plan, cluster = result["plan"], result["cluster"]
    facts = {
        "Machines": f"{cluster['nodes']} of type {plan['instance_type']}, {plan['gpus_per_node']} GPUs each",
        "Ranks": f"{len(cluster['ranks'])} on {cluster['device']}"
        if cluster["ranks"]
        else f"unknown: {cluster['reason']}",
        "Fabric": plan["fabric"],
        "Where": f"{plan['cloud']} {plan['region']}, profile {plan['profile']}",
        "Started": result["started"],
        "Took": f"{number(float(result['duration_s']), 4)} s"
        + (", quick" if plan.get("depth") == "quick" else ", full" if plan.get("depth") else ""),
        "Cost": with_unit(result["cost"]["estimated_usd"], "USD")
        if result["cost"]["estimated_usd"] is not None
        else f"unknown: {result['cost']['reason']}",
        "Run": result["run_id"],
    }
    partial = "<p><strong>A partial run: it validates no stack.</strong></p>" if result["partial"] else ""
    return (
        f'<h1><span class="verdict {escaped(result["verdict"])}">{escaped(result["verdict"])}</span> '
        f"{escaped(plan['stack'])}: does training work on this stack?</h1>"
        f"<p>{escaped(result['headline'])}</p>{partial}{_regression(result)}{_facts(facts)}"
    )


def _regression(result: Result) -> str:
    """Apart from the verdict, in words as well as in colour."""
    answer, css = {
        True: ("Regression against this stack's accepted runs", "FAIL"),
        False: ("No regression against this stack's accepted runs", "PASS"),
        None: ("Regression not judged", "SKIPPED"),
    }[result["regression"]]
    return f'<p><strong class="{css}">{answer}</strong>: {escaped(result["regression_reason"])}</p>'


def _culprits(result: Result) -> str:
    """Who is accused of what, and what to do, check by check; nothing after a clean run."""
    accused = [c for c in _ordered(result) if c["status"] == "FAIL" and (c["culprits"] or c["next_action"])]
    described = "".join(
        f"<h3>{escaped(check['id'])}{'' if check['required'] else ', not gating'}</h3>{_words(check)}"
        for check in accused
    )
    return _section("Culprits", described) if described else ""


def _ordered(result: Result) -> list[Mapping[str, Any]]:
    """The checks, failures first."""
    return sorted(result["checks"], key=severity)


def _checks(result: Result) -> str:
    rows = [
        [
            f'<strong class="{escaped(check["status"])}">{escaped(check["status"])}</strong>',
            f"<code>{escaped(check['id'])}</code>{'' if check['required'] else '<br>not gating'}",
            _measured(check),
            _expected(check),
            _words(check),
        ]
        for check in _ordered(result)
    ]
    return _table(
        "Every check of this run, failures first. Intervals are two-sided 95 %; a FAIL needs far more: "
        "all checks of a run share a risk of 1e-4.",
        ("verdict", "check", "measured", "expected, in the same unit", "what it says"),
        rows,
    )


def _measured(check: Mapping[str, Any]) -> str:
    found = check["measured"]
    if found is None:
        return "—"
    if found["value"] is None:
        return f"unknown: {escaped(found['reason'])}"
    lines = [f"<strong>{escaped(with_unit(found['value'], found['unit']))}</strong>"]
    lines += [f"interval {escaped(interval(found['ci']))}"] if found["ci"] else []
    lines += [f"{escaped(found['estimator'])}, n = {number(found['n'])}"]
    lines += [
        f"{escaped(key.replace('_', ' '))} {number(value, 3)}"
        for key, value in check["noise"].items()
        if value is not None
    ]
    return "<br>".join(lines)


def _expected(check: Mapping[str, Any]) -> str:
    found = check["expected"]
    if found is None:
        return "—"
    if found["value"] is None:
        return f"unknown: {escaped(found['reason'])}"
    lines = [number(found["value"])]
    lines += [f"limit {number(found['floor'])}"] if found["floor"] is not None else []
    lines += [f"indifferent {escaped(interval(check['zone']))}"] if check["zone"] else []
    return "<br>".join(
        [*lines, f'<span class="soft">{escaped(found["kind"])}: {escaped(found["source"])}</span>']
    )


def _words(check: Mapping[str, Any]) -> str:
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
    rows = []
    for check in _ordered(result):
        references = {item["kind"]: item for item in check.get("references", ())}
        if references and check["measured"] is not None:
            unit = check["measured"]["unit"]
            rows.append(
                [
                    f"<code>{escaped(check['id'])}</code>",
                    escaped(with_unit(check["measured"]["value"], unit)),
                    *(
                        _reference(references[kind])
                        for kind in ("bound", "declared", "published", "baseline")
                    ),
                ]
            )
    if not rows:
        return "<p>No figure of this run has a reference.</p>"
    return _table(
        "Four references per figure: what is possible, what was promised, what others measured, what this "
        "stack had before.",
        ("check", "measured", "theoretical bound", "declared", "published", "own accepted run"),
        rows,
    )


def _reference(item: Mapping[str, Any]) -> str:
    if item["value"] is None:
        return f'<span class="soft">unknown: {escaped(item["reason"])}</span>'
    text = escaped(with_unit(item["value"], item["unit"]))
    text += f"<br>interval {escaped(interval(item['ci']))}" if item["ci"] else ""
    return f'{text}<br><span class="soft">{escaped(item["source"])}</span>'


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
    fingerprint = {
        key.replace("_", " "): value for key, value in result["fingerprint"].items() if key != "kill_schedule"
    }
    resources = result["resources"]
    used = {
        "cpu seconds": number(resources["cpu_seconds"]),
        "largest rank": with_unit(_mega(resources["max_rss_bytes"]), "MB"),
        "GPU memory": with_unit(_mega(resources["gpu_memory_bytes"]), "MB"),
    }
    notes = "".join(f"<li>{escaped(note)}</li>" for note in result["notes"])
    accepted = result["baseline"]
    becomes = (
        "It becomes this stack's baseline."
        if accepted["accepted"]
        else f"It becomes no baseline: {accepted['reason']}."
    )
    return (
        _facts({k: "unknown" if v is None else v for k, v in {**fingerprint, **used}.items()})
        + f"<p>{escaped(becomes)}</p>"
        + (f"<ul>{notes}</ul>" if notes else "")
    )


def _mega(count: float | None) -> float | None:
    return None if count is None else count / 1e6


def _facts(facts: Mapping[str, object]) -> str:
    items = "".join(f"<div><dt>{escaped(k)}</dt><dd>{escaped(v)}</dd></div>" for k, v in facts.items())
    return f'<dl class="facts">{items}</dl>'


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escaped(title)}</h2>{content}</section>"


def _table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are HTML already."""
    head = "".join(f'<th scope="col">{escaped(column)}</th>' for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="scroll"><table><caption>{escaped(caption)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
