//! What is running and how long it will take: bars on a terminal, plain lines elsewhere.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use suiro_lab::runner::{Observer, Phase};
use suiro_outside::printable;
use suiro_record::{PlannedTrial, Trial, label_text};
use suiro_units::Time;

use crate::interrupt;
use suiro_analysis::why::wording::count;

/// How often a plain log repeats the progress of one piece of long work: every so many percent.
const PLAIN_STEP_PERCENT: u64 = 20;

/// What a trial takes next to its measuring, about: hosts, the self-check, the end of its endpoints.
const SETUP_S: f64 = 3.0;

/// A bar of some long work that knows its fraction done.
pub struct Work {
    bar: ProgressBar,
    name: String,
    plain: bool,
    told_percent: u64,
    told_text: String,
}

impl Work {
    /// Begins to show the work called `name`.
    pub fn new(name: &str) -> Self {
        let plain = !std::io::stderr().is_terminal();
        let bar = ProgressBar::new(1000);
        bar.set_draw_target(if plain {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        });
        bar.set_style(style("{prefix} {bar:30} {percent:>3} % {msg} (about {eta} left)"));
        bar.set_prefix(printable(name).into_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, name: name.to_owned(), plain, told_percent: 0, told_text: String::new() }
    }

    /// Shows that `fraction` of the work is done and what is being done now.
    pub fn update(&mut self, fraction: f64, text: &str) {
        let done = (fraction.clamp(0.0, 1.0) * 1000.0) as u64;
        self.bar.set_position(done);
        self.bar.set_message(printable(text).into_owned());
        let percent = done / 10;
        if self.plain
            && (text != self.told_text || percent >= self.told_percent + PLAIN_STEP_PERCENT)
        {
            say!("{}: {percent} % {text}", self.name);
            self.told_percent = percent;
            text.clone_into(&mut self.told_text);
        }
    }

    /// Prints a line that stays.
    pub fn tell(&self, line: &str) {
        self.bar.suspend(|| crate::say::line(line));
    }

    /// Takes the bar away.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}

/// The progress of filming screens, shown once there is something to film.
#[derive(Default)]
pub struct Screens(Option<Work>);

impl Screens {
    fn work(&mut self) -> &mut Work {
        self.0.get_or_insert_with(|| Work::new("screens"))
    }

    /// Takes the bar away.
    pub fn finish(self) {
        if let Some(work) = self.0 {
            work.finish();
        }
    }
}

impl suiro_screens::Observer for Screens {
    fn progress(&mut self, trial: &PlannedTrial, done: f64, doing: &str) {
        self.work().update(done, &format!("{}: {doing}", label(trial)));
    }

    fn problem(&mut self, trial: &PlannedTrial, endpoint: &str, problem: &str) {
        self.work().tell(&format!("{}: {endpoint}: {problem}", label(trial)));
    }

    fn interrupted(&self) -> bool {
        interrupt::happened()
    }
}

/// The progress of a run's trials.
pub struct Trials {
    bars: MultiProgress,
    total: ProgressBar,
    each: BTreeMap<String, ProgressBar>,
    plain: bool,
    /// In virtual time it is not known in advance how long a trial takes.
    virtual_time: bool,
    finished: usize,
    planned: usize,
}

impl Trials {
    /// Begins to show `planned` trials, of which `jobs` run at once, `seconds` each; `None` in virtual time.
    pub fn new(planned: usize, jobs: usize, seconds: Option<f64>) -> Self {
        let plain = !std::io::stderr().is_terminal();
        let bars = MultiProgress::with_draw_target(if plain {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        });
        let total = bars.add(ProgressBar::new(planned as u64));
        let rounds = planned.div_ceil(jobs.max(1));
        let expected =
            seconds.map(|each| Duration::from_secs_f64(rounds as f64 * (each + SETUP_S)));
        let left = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let text = match expected {
                Some(expected) => left(expected, state.elapsed()),
                None => "virtual time".to_owned(),
            };
            // What cannot be written is not shown.
            let _ = write!(out, "{text}");
        };
        let style = style("{bar:30} {pos} of {len} trials ({left})");
        total.set_style(style.with_key("left", left));
        total.enable_steady_tick(Duration::from_millis(200));
        if plain {
            let trials = count(planned, "trial");
            match expected {
                Some(about) => {
                    say!("running {trials}, {jobs} at a time: about {} s", about.as_secs());
                }
                None => say!("running {trials} in virtual time, {jobs} at a time"),
            }
        }
        let virtual_time = expected.is_none();
        Self { bars, total, each: BTreeMap::new(), plain, virtual_time, finished: 0, planned }
    }

    /// Takes the bars away.
    pub fn finish(self) {
        self.total.finish_and_clear();
    }

    fn bar(&mut self, trial: &PlannedTrial) -> &ProgressBar {
        let bars = &self.bars;
        self.each.entry(trial.folder.clone()).or_insert_with(|| {
            let bar = bars.add(ProgressBar::new_spinner());
            bar.set_style(style("  {prefix} {msg}"));
            bar.set_prefix(printable(&label(trial)).into_owned());
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        })
    }
}

impl Observer for Trials {
    fn phase(&mut self, trial: &PlannedTrial, phase: &Phase) {
        if self.plain {
            if let Phase::Running { duration_s } = phase
                && !self.virtual_time
            {
                say!("{}: measuring for {duration_s:.0} s", label(trial));
            }
            return;
        }
        let virtual_time = self.virtual_time;
        let bar = self.bar(trial);
        match phase {
            Phase::Building => bar.set_message("making hosts and links"),
            Phase::Checking => bar.set_message("checking the links"),
            Phase::Starting => bar.set_message("starting endpoints"),
            Phase::Running { .. } if virtual_time => {
                bar.set_style(style("  {prefix} measuring, {msg}"));
            }
            Phase::Running { duration_s } => {
                bar.set_length(1);
                bar.reset_elapsed();
                bar.set_style(style("  {prefix} measuring {elapsed} of {msg}"));
                bar.set_message(format!("{duration_s:.0}s"));
            }
            Phase::Finishing => {
                bar.set_style(style("  {prefix} {msg}"));
                bar.set_message("closing records");
            }
        }
    }

    fn clock(&mut self, trial: &PlannedTrial, time: Time) {
        if !self.plain {
            let seconds = time.as_nanos() / 1_000_000_000;
            self.bar(trial).set_message(format!("{seconds} s on its clock"));
        }
    }

    fn repeats(&mut self, trial: &PlannedTrial, outcome: &Trial) {
        if let Some(bar) = self.each.remove(&trial.folder) {
            bar.finish_and_clear();
        }
        let reason = outcome.invalid_because.as_deref().unwrap_or("packets left late");
        let line = format!(
            "{}: runs again (attempt {}): {reason}",
            label(trial),
            outcome.attempts.len() + 2
        );
        if self.plain {
            say!("{line}");
        } else {
            // A terminal that went away loses this line; the record has it.
            let _ = self.bars.println(printable(&line));
        }
    }

    fn finished(&mut self, trial: &PlannedTrial, outcome: &Trial) {
        self.finished += 1;
        self.total.inc(1);
        if let Some(bar) = self.each.remove(&trial.folder) {
            bar.finish_and_clear();
        }
        let verdict = match &outcome.invalid_because {
            None => "done".to_owned(),
            Some(reason) if outcome.skipped => format!("skipped: {reason}"),
            Some(reason) => format!("INVALID: {reason}"),
        };
        let line = format!("[{}/{}] {}: {verdict}", self.finished, self.planned, label(trial));
        if self.plain {
            say!("{line}");
        } else if outcome.invalid_because.is_some() {
            // A terminal that went away loses this line; the report has it.
            let _ = self.bars.println(printable(&line));
        }
    }
}

/// How long a run that was thought to take `expected` goes on, `elapsed` after its start.
fn left(expected: Duration, elapsed: Duration) -> String {
    let left = expected.saturating_sub(elapsed).as_secs();
    match (left / 3600, left / 60 % 60, left % 60) {
        (0, 0, 0) => "nearly done".to_owned(),
        (0, 0, seconds) => format!("about {seconds} s left"),
        (0, minutes, seconds) => format!("about {minutes} min {seconds} s left"),
        (hours, minutes, _) => format!("about {hours} h {minutes} min left"),
    }
}

/// `tcp=reno #1`.
pub fn label(trial: &PlannedTrial) -> String {
    let cell: Vec<String> =
        trial.cell.iter().map(|(axis, value)| format!("{axis}={}", label_text(value))).collect();
    let cell = if cell.is_empty() { "trial".to_owned() } else { cell.join(" ") };
    format!("{cell} #{}", trial.repetition)
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is ours and tested")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_in_words() {
        let words =
            |expected, elapsed| left(Duration::from_secs(expected), Duration::from_secs(elapsed));
        assert_eq!(words(43, 1), "about 42 s left");
        assert_eq!(words(200, 15), "about 3 min 5 s left");
        assert_eq!(words(7300, 0), "about 2 h 1 min left");
        assert_eq!(words(10, 30), "nearly done");
    }
}
