//! The report as a page: both hosts as stacks of layers, the verdict on top. One file, without scripts.

use std::fmt::Write;

use super::{Host, Report};
use crate::account::{Account, Hop, Layer, LayerAccount, Sap, Second, bounds, title};
use crate::clock::Alignment;
use crate::event::{Point, Protocol};
use crate::matching::Points;
use crate::verdict::place;

/// Most points in time of a chart; longer recordings are shown in longer steps.
const STEPS: usize = 120;
/// Most pauses of a host that are listed.
const PAUSES: usize = 20;
/// Size of a chart.
const WIDTH: f64 = 210.0;
const HEIGHT: f64 = 56.0;

/// The whole page.
pub fn html(report: &Report) -> String {
    let mut out = String::new();
    let names: Vec<&str> = report.hosts.iter().map(|host| host.name.as_str()).collect();
    let heading = format!("Layers of {}", names.join(" and "));
    put(&mut out, "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n");
    put(&mut out, "<meta name=\"viewport\" content=\"width=device-width\">\n");
    put(&mut out, &format!("<title>{0}</title>\n<style>{STYLE}</style>\n", text(&heading)));
    put(&mut out, &format!("<h1>{}</h1>\n", text(&heading)));
    verdict(&mut out, report);
    for account in &report.accounts {
        flow(&mut out, account, &report.hosts);
    }
    put(&mut out, "<h2>How it was recorded</h2>\n<ul class=\"hosts\">\n");
    report.hosts.iter().for_each(|host| of_host(&mut out, host));
    put(&mut out, &format!("<li>{}</li>\n</ul>\n</html>\n", text(&of_clock(&report.clock))));
    out
}

fn put(out: &mut String, piece: &str) {
    out.push_str(piece);
}

/// Text of a page. Names come from other hosts.
fn text(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for c in suiro_outside::printable(raw).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}

fn verdict(out: &mut String, report: &Report) {
    put(out, "<section class=\"verdict\">\n");
    if report.accounts.is_empty() {
        put(out, "<p>No flow was recorded.</p>\n");
    } else if report.verdicts.is_empty() {
        put(
            out,
            "<p>No problem found: less than 0.1 % lost, and no part of the path is slow.</p>\n",
        );
    }
    for verdict in &report.verdicts {
        let account = report.accounts.iter().find(|account| account.flow == verdict.flow);
        let way = account.map_or(String::new(), direction);
        put(out, &format!("<p><b>{}</b> {}</p>\n", text(&way), text(&verdict.sentence)));
    }
    put(out, "</section>\n");
}

fn direction(account: &Account) -> String {
    let host = |host: &Option<String>| host.clone().unwrap_or_else(|| "not recorded".into());
    format!("{} → {}", host(&account.sender), host(&account.receiver))
}

fn flow(out: &mut String, account: &Account, hosts: &[Host]) {
    let unit = if account.protocol == Protocol::Udp { "packets" } else { "bytes" };
    put(out, &format!("<section>\n<h2>{}</h2>\n<p>", text(&direction(account))));
    put(out, &text(&account.flow));
    if let Some(reported) = &account.reported {
        put(out, &format!(" ({})", text(reported)));
    }
    put(out, &format!(": {} {unit} sent, {} delivered", account.sent, account.delivered));
    for (count, what) in [
        (account.retried, "calls made again"),
        (account.unsettled, "in transit at the end, the beginning or a pause"),
        (account.hops.iter().map(|hop| hop.unplaced).sum(), "lost or missed by the recorder"),
    ] {
        if count > 0 {
            put(out, &format!(", {count} {what}"));
        }
    }
    put(out, "</p>\n");
    for unseen in &account.unseen {
        put(out, &format!("<p>Not seen at {}: {}</p>\n", place(unseen.point), text(unseen.why)));
    }
    if account.saps.iter().any(|sap| sap.passed > 0) {
        stack(out, account, hosts);
        path(out, account);
    }
    put(out, "</section>\n");
}

/// Both hosts side by side: each layer's service access points, and between them what the layer did.
fn stack(out: &mut String, account: &Account, hosts: &[Host]) {
    let points: Points = account.saps.iter().map(|sap| sap.point).collect();
    let paused = paused(account, hosts);
    let host = |host: &Option<String>| text(host.as_deref().unwrap_or("not recorded"));
    put(out, "<table class=\"stack\">\n<tr><th>");
    put(out, &format!("{} sends</th><th>layer</th>", host(&account.sender)));
    put(out, "<th>loss</th><th>delay</th><th>jitter</th><th>throughput</th>");
    put(out, &format!("<th>{} receives</th></tr>\n", host(&account.receiver)));
    for layer in &account.layers {
        let (send, receive) = bounds(layer.layer, points);
        put(out, &format!("<tr class=\"l{}\">", layer.layer as usize));
        put(out, &of_sap(account, send));
        put(out, &of_layer(layer));
        charts(out, account, layer.layer, (send, receive), &paused);
        put(out, &of_sap(account, receive));
        put(out, "</tr>\n");
    }
    put(out, "</table>\n");
}

fn of_sap(account: &Account, point: Point) -> String {
    let Some(sap) = account.saps.iter().find(|sap| sap.point == point) else {
        return format!("<td class=\"sap\"><b>{}</b>not watched</td>", place(point));
    };
    let Sap { passed, unseen, recorder_lost, throughput_bps, .. } = sap;
    let rate = throughput_bps.map_or(String::new(), |bps| format!("<br>{:.1} kbit/s", bps / 1e3));
    let mut cell = format!("<td class=\"sap\"><b>{}</b>{passed} passed{rate}", place(point));
    for (count, what) in [(unseen, "unseen"), (recorder_lost, "lost by the recorder")] {
        if *count > 0 {
            cell.push_str(&format!("<br>{count} {what}"));
        }
    }
    cell + "</td>"
}

fn of_layer(layer: &LayerAccount) -> String {
    let loss = layer.own_loss.map_or("not watched".into(), |share| percent(share) + " lost");
    let mut cell = format!("<td class=\"layer\"><b>{}</b>{loss}", title(layer.layer));
    if let Some(delay) = layer.own_delay {
        let [mean, p95, max, jitter] =
            [delay.mean_ns, delay.p95_ns as f64, delay.max_ns as f64, delay.jitter_ns].map(ms);
        cell.push_str(&format!("<br>{mean} delay<br>{p95} 95th percentile<br>{max} at most"));
        cell.push_str(&format!("<br>{jitter} jitter"));
    }
    cell + "</td>"
}

/// For each second of a flow, whether one of its hosts was not recorded for part of it.
fn paused(account: &Account, hosts: &[Host]) -> Vec<bool> {
    let mut paused = vec![false; account.seconds.len()];
    let ends = [account.sender.as_ref(), account.receiver.as_ref()];
    for host in hosts.iter().filter(|host| ends.contains(&Some(&host.name))) {
        for (from, to) in &host.pauses_s {
            // A time before 0 becomes 0.
            let (from, to) = (from.floor() as usize, to.ceil() as usize);
            paused.iter_mut().take(to).skip(from).for_each(|second| *second = true);
        }
    }
    paused
}

fn charts(
    out: &mut String,
    account: &Account,
    layer: Layer,
    (send, receive): (Point, Point),
    paused: &[bool],
) {
    let at = layer as usize;
    let below = crate::account::below(layer).map(|below| below as usize);
    let share = |second: &Second| {
        let lower = below.map_or(0, |below| second.lost_between[below]) as f64;
        let own = second.lost_between[at] as f64 - lower;
        (second.sent > 0).then(|| own * 100.0 / second.sent as f64)
    };
    let in_ms = |ns: Option<f64>| Some(ns? / 1e6);
    let line = |of: &dyn Fn(&Second) -> Option<f64>| {
        series(&account.seconds.iter().map(of).collect::<Vec<_>>())
    };
    // How much passed in a second with a pause is unknown.
    let kbit = |point: Point| {
        let whole = |(second, paused): (&Second, &bool)| {
            (!paused).then(|| second.bytes[point as usize] as f64 * 8.0 / 1e3)
        };
        series(&account.seconds.iter().zip(paused).map(whole).collect::<Vec<_>>())
    };
    for (unit, lines) in [
        ("%", vec![line(&share)]),
        ("ms", vec![line(&|second| in_ms(second.own_delay_ns[at]))]),
        ("ms", vec![line(&|second| in_ms(second.own_jitter_ns[at]))]),
        ("kbit/s", vec![kbit(send), kbit(receive)]),
    ] {
        put(out, &format!("<td>{}</td>", chart(unit, &lines, paused)));
    }
}

/// So many seconds are a step of a chart.
fn step(seconds: usize) -> usize {
    seconds.div_ceil(STEPS).max(1)
}

/// The means over equal steps of time, from one value for each second.
fn series(seconds: &[Option<f64>]) -> Vec<Option<f64>> {
    let mean = |chunk: &[Option<f64>]| {
        let known: Vec<f64> = chunk.iter().copied().flatten().collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    seconds.chunks(step(seconds.len())).map(mean).collect()
}

/// The steps with a pause, as areas.
fn areas(paused: &[bool]) -> String {
    let steps: Vec<&[bool]> = paused.chunks(step(paused.len())).collect();
    let width = WIDTH / steps.len().max(1) as f64;
    let mut path = String::new();
    for (at, _) in steps.iter().enumerate().filter(|(_, step)| step.contains(&true)) {
        let (from, to) = (at as f64 * width, (at + 1) as f64 * width);
        write!(path, "M{from:.1} 12H{to:.1}V{HEIGHT}H{from:.1}Z").expect("a string takes all");
    }
    if path.is_empty() {
        return path;
    }
    format!("<path class=\"pause\" d=\"{path}\"><title>not recorded</title></path>")
}

/// Lines over time, with the greatest value, the duration and the pauses as the only marks. There is one value of `paused` for
/// each second.
fn chart(unit: &str, lines: &[Vec<Option<f64>>], paused: &[bool]) -> String {
    let seconds = paused.len();
    let greatest = lines.iter().flatten().flatten().fold(0.0f64, |most, value| most.max(*value));
    let top = if greatest > 0.0 { greatest } else { 1.0 };
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\"><path class=\"axis\" d=\"M0 12V{base}H{WIDTH}\"/>",
        HEIGHT + 12.0,
        base = HEIGHT
    );
    put(&mut svg, &areas(paused));
    for (number, line) in lines.iter().enumerate() {
        let step = WIDTH / line.len().max(1) as f64;
        let mut path = String::new();
        let mut goes_on = false;
        for (at, value) in line.iter().enumerate() {
            let Some(value) = value else {
                goes_on = false;
                continue;
            };
            let (x, y) = (at as f64 * step, HEIGHT - value.max(0.0) / top * (HEIGHT - 14.0));
            let verb = if goes_on { 'L' } else { 'M' };
            // A step for each second: means have no course in between.
            write!(path, "{verb}{x:.1} {y:.1}H{:.1}", x + step).expect("a string takes all");
            goes_on = true;
        }
        write!(svg, "<path class=\"line{number}\" d=\"{path}\"/>").expect("a string takes all");
    }
    let most = number(greatest);
    write!(
        svg,
        "<text x=\"3\" y=\"10\">{most} {unit}</text><text x=\"{WIDTH}\" y=\"{}\" class=\"end\">{seconds} s</text></svg>",
        HEIGHT + 11.0
    )
    .expect("a string takes all");
    svg
}

/// The parts of the path, finer than the layers.
fn path(out: &mut String, account: &Account) {
    put(out, "<details><summary>Each part of the path</summary>\n<table>\n<tr><th>from → to</th>");
    put(
        out,
        "<th>arrived</th><th>lost</th><th>reasons</th><th>mean delay</th><th>at most</th></tr>\n",
    );
    for hop in &account.hops {
        let Hop { entered, lost, .. } = hop;
        let reasons: Vec<String> =
            hop.causes.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        let delay = |of: &dyn Fn(&crate::account::Delay) -> f64| {
            hop.delay.as_ref().map_or("–".into(), |delay| ms(of(delay)))
        };
        put(
            out,
            &format!(
                "<tr><td>{} → {}</td><td>{entered}</td><td>{lost}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                place(hop.from),
                place(hop.to),
                text(&reasons.join(", ")),
                delay(&|delay| delay.mean_ns),
                delay(&|delay| delay.max_ns as f64)
            ),
        );
    }
    put(out, "</table>\n</details>\n");
}

fn of_host(out: &mut String, host: &Host) {
    let seconds = host.recorded_ns as f64 / 1e9;
    let told = format!("{}: {seconds:.1} s, kernel {}; {}", host.name, host.kernel, host.recording);
    put(out, &format!("<li>{}", text(&told)));
    if !host.pauses_s.is_empty() {
        put(out, &format!("<br>{}", of_pauses(host)));
    }
    for status in &host.points {
        if let Some(why) = &status.missing {
            put(out, &format!("<br>not watched: {}: {}", place(status.point), text(why)));
        }
    }
    put(out, "</li>\n");
}

fn of_pauses(host: &Host) -> String {
    let paused = host.paused_ns as f64 / 1e9;
    let listed = host.pauses_s.iter().take(PAUSES);
    let listed: Vec<String> =
        listed.map(|(from, to)| format!("from {from:.1} s to {to:.1} s")).collect();
    let more = match host.pauses_s.len().saturating_sub(PAUSES) {
        0 => String::new(),
        more => format!(", and {more} times more"),
    };
    format!("not recorded for {paused:.1} s of it, grey in the charts: {}{more}", listed.join(", "))
}

fn of_clock(clock: &Alignment) -> String {
    match clock.error_ns {
        Some(0) => "both hosts share one clock".into(),
        Some(error) => format!("delays between the hosts are accurate to ±{}", ms(error as f64)),
        None => "the error of delays between the hosts is unknown".into(),
    }
}

fn percent(share: f64) -> String {
    // Adding zero turns -0 into a plain 0.
    format!("{:.1} %", (share * 1e3).round() / 10.0 + 0.0)
}

fn ms(ns: f64) -> String {
    format!("{} ms", number(ns / 1e6))
}

/// Three digits.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.9995 => format!("{value:.2}"),
        size if size > 0.0 => format!("{value:.3}"),
        _ => "0".into(),
    }
}

const STYLE: &str = "
:root{color-scheme:light dark;--ink:#1b1f24;--dim:#5b6570;--line:#d4d9de;--card:#f6f8fa;--a:#0969da;--b:#bc4c00;--bad:#cf222e}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--dim:#9198a1;--line:#3d444d;--card:#151b23;--a:#4493f8;--b:#db6d28;--bad:#f85149}}
body{font:14px/1.45 system-ui,sans-serif;color:var(--ink);max-width:1280px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin:2rem 0 .3rem}p{margin:.3rem 0}
.verdict{border-left:4px solid var(--bad);background:var(--card);padding:.6rem 1rem}
table{border-collapse:collapse}th{font-weight:600;color:var(--dim);text-align:left}
th,td{padding:.3rem .6rem;vertical-align:top}
.stack{width:100%}.stack td{border-top:1px solid var(--line)}
.stack b{display:block}.sap{background:var(--card);border:1px solid var(--line)!important;white-space:nowrap}
.sap,.layer{font-variant-numeric:tabular-nums}.layer{white-space:nowrap}
svg{width:100%;min-width:110px;height:auto;overflow:visible}.axis{fill:none;stroke:var(--line)}
.line0{fill:none;stroke:var(--a);stroke-width:1.6}.line1{fill:none;stroke:var(--b);stroke-width:1.6;stroke-dasharray:4 2}
.pause{fill:var(--line)}
svg text{font-size:10px;fill:var(--dim)}.end{text-anchor:end}
details{margin:.5rem 0}details td{border-top:1px solid var(--line);font-variant-numeric:tabular-nums}
.hosts{color:var(--dim)}
";
