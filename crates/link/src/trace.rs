//! Traces of real links: Mahimahi's format, and CSV of time and rate.

use serde::{Deserialize, Serialize};
use suiro_units::{BitRate, Bytes, Duration, Time};

use suiro_strict::{Refusal, TextLine};

/// Most lines a trace may have.
pub const MAX_TRACE_LINES: usize = 1_000_000;
/// Latest time a trace may name.
pub const MAX_TRACE_TIME: Duration = Duration::from_secs(24 * 3600);
/// Highest rate of a link.
pub const MAX_RATE: BitRate = BitRate::from_mbps(1_000_000);
/// Shortest period of a trace that repeats.
pub const MIN_PERIOD: Duration = Duration::from_millis(1);
/// What one delivery opportunity carries, as Mahimahi defines it.
pub const OPPORTUNITY: Bytes = Bytes::new(1500);

/// A rate that changes stepwise, once or for ever again. Times count from the trial's start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateCurve {
    /// The steps: the first at time zero, times increasing.
    pub steps: Vec<RateStep>,
    /// When the curve begins again, after the last step; `None`: the last rate holds.
    pub period: Option<Duration>,
}

/// One step of a [`RateCurve`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateStep {
    /// From when on.
    pub at: Duration,
    /// This rate; zero is an outage.
    pub rate: BitRate,
}

impl RateCurve {
    /// A rate that never changes.
    pub fn constant(rate: BitRate) -> Self {
        Self { steps: vec![RateStep { at: Duration::ZERO, rate }], period: None }
    }

    /// The rate in force at a time.
    pub fn at(&self, time: Time) -> BitRate {
        let since = time.as_nanos();
        let since = self.period.map_or(since, |period| since % period.as_nanos());
        let past = self.steps.partition_point(|step| step.at.as_nanos() <= since);
        self.steps[past.saturating_sub(1)].rate
    }

    /// The mean rate over one period, or, of a curve that does not repeat, over its steps but the
    /// last; of a constant, itself.
    pub fn mean(&self) -> BitRate {
        let last = self.steps[self.steps.len() - 1];
        let end = self.period.unwrap_or(last.at).as_nanos();
        if end == 0 {
            return last.rate;
        }
        let ends = self.steps.iter().skip(1).map(|step| step.at.as_nanos()).chain([end]);
        let carried: u128 = self
            .steps
            .iter()
            .zip(ends)
            .map(|(step, to)| u128::from(step.rate.as_bps()) * u128::from(to - step.at.as_nanos()))
            .sum();
        BitRate::from_bps(u64::try_from(carried / u128::from(end)).unwrap_or(u64::MAX))
    }

    /// True if it carries anything at all, ever.
    pub fn carries(&self) -> bool {
        self.steps.iter().any(|step| !step.rate.is_zero())
    }
}

/// Recorded delivery opportunities of [`OPPORTUNITY`] bytes each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpportunityTrace {
    /// Their times in milliseconds since the start, not decreasing; the last one is above zero and
    /// is the trace's period.
    pub times_ms: Vec<u32>,
    /// Whether the trace begins again at its end, as in Mahimahi. If not, nothing is delivered
    /// after it.
    pub repeat: bool,
}

impl OpportunityTrace {
    /// The time of the last opportunity, at which a repeating trace begins again.
    pub fn period(&self) -> Duration {
        Duration::from_millis(u64::from(self.times_ms.last().copied().unwrap_or(0)))
    }

    /// The mean rate over one period.
    pub fn mean(&self) -> BitRate {
        Bytes::new(OPPORTUNITY.get() * self.times_ms.len() as u64) / self.period()
    }
}

/// Reads a trace in Mahimahi's format: on each line the time of one delivery opportunity of 1500
/// bytes, in whole milliseconds, not decreasing. Empty lines and lines that begin with `#` are
/// passed over.
///
/// # Errors
/// A line that is no such number or lies before the one above it, more than [`MAX_TRACE_LINES`],
/// a time above [`MAX_TRACE_TIME`], no opportunity at all, or none after time zero.
pub fn parse_mahimahi(text: &str) -> Result<OpportunityTrace, Refusal<TextLine>> {
    let mut times_ms = Vec::new();
    let mut end = 1;
    for (line, content) in lines(text)? {
        let time = milliseconds(line, content)?;
        if times_ms.last().is_some_and(|&before| time < before) {
            return Err(Refusal::new(line, "times must not decrease"));
        }
        times_ms.push(time);
        end = line;
    }
    match times_ms.last() {
        None => Err(Refusal::new(end, "a trace needs at least one delivery opportunity")),
        Some(0) => {
            Err(Refusal::new(end, "the last time is the trace's period and must be above zero"))
        }
        Some(_) => Ok(OpportunityTrace { times_ms, repeat: true }),
    }
}

fn milliseconds(line: usize, content: &str) -> Result<u32, Refusal<TextLine>> {
    let time: u32 = whole(content).ok_or_else(|| {
        let shown = excerpt(content);
        Refusal::new(line, format!("`{shown}` is not a whole number of milliseconds"))
    })?;
    if Duration::from_millis(u64::from(time)) > MAX_TRACE_TIME {
        return Err(Refusal::new(line, format!("a time must not exceed {MAX_TRACE_TIME}")));
    }
    Ok(time)
}

/// Digits only: no sign, which `parse` would take.
fn whole<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Reads a trace of rates: a header line that names both columns, then a time and a rate on each
/// line. The first time is 0; times increase. From each time on, its rate is in force.
///
/// The header is `time,rate` where both carry their units (`1.5 s,8 Mbit/s`), or names the units:
/// `time_s` or `time_ms`, `rate_bps`, `rate_kbps` or `rate_mbps`. Empty lines and lines that begin
/// with `#` are passed over.
///
/// With `repeat`, the last line's time ends the period: there the trace begins again, and the
/// last line's rate has no meaning. Without, the last rate holds.
///
/// # Errors
/// Lines that are not of this form, more than [`MAX_TRACE_LINES`], a time above
/// [`MAX_TRACE_TIME`], a rate above [`MAX_RATE`], a trace in which every rate is zero, a period
/// below [`MIN_PERIOD`].
pub fn parse_csv(text: &str, repeat: bool) -> Result<RateCurve, Refusal<TextLine>> {
    let mut lines = lines(text)?;
    let Some((line, header)) = lines.next() else {
        return Err(Refusal::new(1, "a trace must begin with a header line, such as `time,rate`"));
    };
    let columns = Columns::parse(line, header)?;
    let mut steps: Vec<RateStep> = Vec::new();
    let mut end = line;
    for (line, content) in lines {
        let step = columns.step(line, content)?;
        match steps.last() {
            None if !step.at.is_zero() => {
                return Err(Refusal::new(line, "the first time must be 0"));
            }
            Some(before) if step.at < before.at => {
                return Err(Refusal::new(line, "times must not decrease"));
            }
            Some(before) if step.at == before.at => {
                return Err(Refusal::new(line, "two rates at the same time"));
            }
            _ => steps.push(step),
        }
        end = line;
    }
    curve(steps, repeat).map_err(|message| Refusal::new(end, message))
}

fn curve(mut steps: Vec<RateStep>, repeat: bool) -> Result<RateCurve, String> {
    let period = match (repeat, steps.len()) {
        (_, 0) => return Err("a trace needs at least one line after its header".into()),
        (true, 1) => {
            return Err("a trace that repeats needs a second line, which marks its end".into());
        }
        (true, _) => steps.pop().map(|end| end.at),
        (false, _) => None,
    };
    if period.is_some_and(|period| period < MIN_PERIOD) {
        return Err(format!("a trace that repeats must last {MIN_PERIOD} or longer"));
    }
    let curve = RateCurve { steps, period };
    curve.carries().then_some(curve).ok_or_else(|| "every rate of the trace is zero".into())
}

/// What the columns of a CSV trace mean.
struct Columns {
    time_unit: &'static str,
    rate_unit: &'static str,
}

impl Columns {
    fn parse(line: usize, header: &str) -> Result<Self, Refusal<TextLine>> {
        let unit = |name: &str, known: &[(&str, &'static str)]| {
            known.iter().find(|(known, _)| *known == name.trim()).map(|(_, unit)| *unit)
        };
        let times = [("time", ""), ("time_s", "s"), ("time_ms", "ms")];
        let rates =
            [("rate", ""), ("rate_bps", "bit/s"), ("rate_kbps", "kbit/s"), ("rate_mbps", "Mbit/s")];
        let columns = header.split_once(',').and_then(|(time, rate)| {
            Some(Self { time_unit: unit(time, &times)?, rate_unit: unit(rate, &rates)? })
        });
        columns.ok_or_else(|| {
            Refusal::new(
                line,
                format!(
                    "`{}` is not a header; write `time,rate`, or name the units: time_s or \
                     time_ms, rate_bps, rate_kbps or rate_mbps",
                    excerpt(header)
                ),
            )
        })
    }

    fn step(&self, line: usize, content: &str) -> Result<RateStep, Refusal<TextLine>> {
        let Some((time, rate)) = content.split_once(',') else {
            return Err(Refusal::new(line, "expected a time, a comma and a rate"));
        };
        let at: Duration = cell(line, time, self.time_unit)?;
        let rate: BitRate = cell(line, rate, self.rate_unit)?;
        if at > MAX_TRACE_TIME {
            return Err(Refusal::new(line, format!("a time must not exceed {MAX_TRACE_TIME}")));
        }
        if rate > MAX_RATE {
            return Err(Refusal::new(line, format!("a rate must not exceed {MAX_RATE}")));
        }
        Ok(RateStep { at, rate })
    }
}

fn cell<T>(line: usize, text: &str, unit: &str) -> Result<T, Refusal<TextLine>>
where
    T: std::str::FromStr<Err = suiro_units::UnitError>,
{
    let text = text.trim();
    if text.len() > 40 {
        return Err(Refusal::new(line, format!("`{}` is too long", excerpt(text))));
    }
    let bare = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !unit.is_empty() && !bare {
        return Err(Refusal::new(
            line,
            format!("`{text}` is not a number without unit, in {unit}"),
        ));
    }
    format!("{text} {unit}").parse().map_err(|error| Refusal::new(line, format!("{error}")))
}

/// The lines that say something, with their numbers from 1.
fn lines(text: &str) -> Result<impl Iterator<Item = (usize, &str)>, Refusal<TextLine>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.lines().nth(MAX_TRACE_LINES).is_some() {
        let message = format!("a trace must not exceed {MAX_TRACE_LINES} lines");
        return Err(Refusal::new(MAX_TRACE_LINES + 1, message));
    }
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    Ok(numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')))
}

fn excerpt(text: &str) -> String {
    let mut shown: String = text.chars().take(30).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
