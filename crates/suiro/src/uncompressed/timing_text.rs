//! An analysis as text: a block for each stream.

use std::fmt::{self, Write};

use suiro_outside::printable;
use suiro_uncompressed::timing::model::Scan;
use suiro_uncompressed::timing::receiver::Reading;
use suiro_uncompressed::timing::{
    Analysis, Basis, Known, Levels, Name, Pair, Report, Spread, Verdict,
};

/// Width of the first column.
const NAME: usize = 34;
/// Width of each number.
const NUMBER: usize = 11;
/// Lines of a histogram; more values are put together.
const LINES: i64 = 24;
/// Width of the longest bar.
const BAR: u64 = 40;

/// The text.
pub fn text(analysis: &Analysis, histograms: bool) -> String {
    let mut text = String::new();
    write(analysis, histograms, &mut text).expect("a string can be written to");
    printable(&text).into_owned()
}

fn write(analysis: &Analysis, histograms: bool, out: &mut String) -> fmt::Result {
    for (number, report) in analysis.streams.iter().enumerate() {
        write_stream(number + 1, report, histograms, out)?;
        writeln!(out)?;
    }
    for pair in &analysis.pairs {
        write_pair(pair, analysis, out)?;
    }
    for other in &analysis.others {
        let because = other.because.replace('\n', "; ");
        writeln!(
            out,
            "{} ({} packets) is not analysed: {because}",
            named(&other.stream),
            other.packets
        )?;
    }
    Ok(())
}

fn named(name: &Name) -> String {
    format!("{}: {} to {}, SSRC {:#010x}", name.file, name.from, name.to, name.ssrc)
}

fn write_stream(number: usize, report: &Report, histograms: bool, out: &mut String) -> fmt::Result {
    let Report { format, verdict, sequence, .. } = report;
    writeln!(out, "stream {number}: {}", named(&report.name))?;
    let scan = format.scan;
    let unit = if format.scan == Scan::Interlaced { "field" } else { "frame" };
    let rows = format.height.map_or("rows unknown".to_owned(), |height| format!("{height} rows"));
    writeln!(
        out,
        "  {rows}, {scan}, {} frames/s, {} packets per {unit}, IP packets up to {} bytes, read {}",
        format.frame_rate, format.packets_per_frame, format.ip_bytes, format.schedule
    )?;
    writeln!(
        out,
        "  {} packets in {:.3} s, {} {unit}s, {} of another size; {} lost, {} copies, {} out of order",
        report.packets,
        report.seconds,
        report.frames,
        report.other_sizes,
        sequence.lost,
        sequence.copies,
        sequence.reordered
    )?;
    writeln!(out, "  clock: {}", clock(report))?;
    writeln!(out, "  result: {}", result(verdict))?;
    for reason in &verdict.reasons {
        writeln!(out, "    because {reason}")?;
    }
    for check in &report.checks {
        let holds = if check.holds { "ok" } else { "NO" };
        writeln!(out, "    {holds}: {}: {}; expected {}", check.name, check.found, check.expected)?;
    }
    write_table(report, out)?;
    if histograms {
        write_histogram("C_INST", &report.c_inst, out)?;
        if let Some((name, reading)) = decisive(report) {
            write_histogram(name, &reading.levels, out)?;
        }
    }
    Ok(())
}

fn clock(report: &Report) -> String {
    let offset = report.clock.tai_offset_s;
    match (report.clock.from, offset) {
        (Known::Given, _) => format!("TAI is {offset} s later than the capture's times, as given"),
        (Known::Timestamps, 0) => "the capture's times are TAI, because RTP timestamps agree".to_owned(),
        (Known::Timestamps, _) => {
            format!("the capture's times are UTC, because RTP timestamps are {offset} s later")
        }
        (Known::Unknown, _) => {
            "RTP timestamps follow another one than the capture, so what counts from the beginning of a frame is unknown \
             (--tai-offset assumes an offset)"
                .to_owned()
        }
    }
}

fn result(verdict: &Verdict) -> String {
    let basis = match verdict.basis {
        Basis::Default => "VRX with TRO_DEFAULT",
        Basis::Announced => "VRX with the announced TROFF",
        Basis::Least => {
            "VRX with the least offset that leaves no packet late, as clock or rows are unknown"
        }
    };
    let Verdict { profile, network, receiver, .. } = verdict;
    format!("{profile} (C_INST: {network}; {basis}: {receiver})")
}

/// The VRX that decided.
fn decisive(report: &Report) -> Option<(&'static str, &Reading)> {
    let vrx = &report.vrx;
    let (name, reading) = match report.verdict.basis {
        Basis::Default => ("VRX, TRO_DEFAULT", &vrx.ideal),
        Basis::Announced => ("VRX, announced TROFF", &vrx.announced),
        Basis::Least => ("VRX, least offset", &vrx.least),
    };
    reading.as_ref().map(|reading| (name, reading))
}

fn write_table(report: &Report, out: &mut String) -> fmt::Result {
    let limits = &report.limits;
    let row = |out: &mut String, name: &str, numbers: [String; 3], note: &str| {
        let [min, mean, max] = numbers;
        let line = format!("  {name:<NAME$}{min:>NUMBER$}{mean:>NUMBER$}{max:>NUMBER$}   {note}");
        writeln!(out, "{}", line.trim_end())
    };
    let head = ["min", "mean", "max"].map(str::to_owned);
    row(out, "", head, "")?;
    let levels = |levels: &Levels| {
        [levels.min.to_string(), format!("{:.2}", levels.mean), levels.max.to_string()]
    };
    let times =
        |spread: &Spread| [spread.min, spread.mean, spread.max].map(|it| format!("{it:.2}"));
    let c_max = format!("C_MAX narrow {}, wide {}", limits.burst_narrow, limits.burst_wide);
    row(out, "C_INST (packets)", levels(&report.c_inst), &c_max)?;
    let full = format!("VRX_FULL narrow {}, wide {}", limits.buffer_narrow, limits.buffer_wide);
    let vrx = &report.vrx;
    for (name, reading) in [
        ("VRX, TRO_DEFAULT", &vrx.ideal),
        ("VRX, announced TROFF", &vrx.announced),
        ("VRX, mean FPT", &vrx.measured),
        ("VRX, from the first packet", &vrx.first_packet),
        ("VRX, least offset", &vrx.least),
    ] {
        let Some(reading) = reading else { continue };
        let offset = match report.clock.from {
            Known::Unknown => String::new(),
            _ => format!("T_VD {:.2} µs after the frame begins", reading.offset_us),
        };
        let note = if name.ends_with("TRO_DEFAULT") || offset.is_empty() { &full } else { &offset };
        row(out, name, levels(&reading.levels), note)?;
    }
    let default = report.format.tro_default_us;
    let default = default.map_or(String::new(), |us| format!("TRO_DEFAULT {us:.2}"));
    let step =
        format!("T_FRAME {:.3} µs, T_RS {:.3} µs", report.format.t_frame_us, report.format.t_rs_us);
    let (basis, margins) = decisive(report).unzip();
    let basis = basis.map_or(String::new(), |basis| format!("of {basis}"));
    for (name, spread, note) in [
        ("FPT (µs)", report.fpt_us, &*default),
        ("margin of first packets (µs)", margins.map(|reading| reading.first_margin_us), &*basis),
        ("margin of all packets (µs)", margins.map(|reading| reading.margin_us), ""),
        ("latency from RTP timestamp (µs)", report.latency_us, ""),
        ("offset of RTP timestamp (ticks)", report.rtp_offset_ticks, ""),
        ("step of RTP timestamps (ticks)", report.rtp_step_ticks, ""),
        ("spacing within frames (µs)", report.spacing_us.within, &*step),
        ("spacing between frames (µs)", report.spacing_us.between, ""),
    ] {
        match spread {
            Some(spread) => row(out, name, times(&spread), note)?,
            None => row(out, name, ["-"; 3].map(str::to_owned), "unknown")?,
        }
    }
    Ok(())
}

fn write_histogram(name: &str, levels: &Levels, out: &mut String) -> fmt::Result {
    writeln!(out, "  {name}: packets with each value")?;
    let width = levels.max.saturating_sub(levels.min) / LINES + 1;
    let mut lines: Vec<(i64, u64)> = Vec::new();
    for (value, times) in &levels.histogram {
        let from = levels.min + (value - levels.min) / width * width;
        match lines.last_mut() {
            Some(last) if last.0 == from => last.1 += times,
            _ => lines.push((from, *times)),
        }
    }
    let most = lines.iter().map(|(_, times)| *times).max().unwrap_or(1).max(1);
    for (from, times) in lines {
        let to = from + width - 1;
        let label = if width == 1 { from.to_string() } else { format!("{from} to {to}") };
        let bar = usize::try_from(times.saturating_mul(BAR).div_ceil(most)).unwrap_or(0);
        writeln!(out, "  {label:>16} {times:>10} {}", "#".repeat(bar))?;
    }
    Ok(())
}

fn write_pair(pair: &Pair, analysis: &Analysis, out: &mut String) -> fmt::Result {
    let [a, b] = pair.legs;
    let of =
        |at: usize| analysis.streams.get(at).map_or(String::new(), |report| named(&report.name));
    writeln!(out, "streams {} and {} have the same packets (ST 2022-7):", a + 1, b + 1)?;
    writeln!(out, "  {}\n  {}", of(a), of(b))?;
    writeln!(
        out,
        "  {} packets; lost {} and {}, recovered {}, lost on both {}; {} differ",
        pair.packets, pair.lost[0], pair.lost[1], pair.recovered, pair.lost_on_both, pair.different
    )?;
    let Spread { min, mean, max } = pair.skew_us;
    writeln!(out, "  skew, second later than first: {min:.2} to {max:.2} µs, mean {mean:.2} µs\n")
}
