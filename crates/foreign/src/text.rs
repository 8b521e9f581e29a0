//! An account as text for a terminal.

use std::fmt::Write as _;

use suiro_analysis::why::label;
use suiro_outside::printable;
use suiro_record::words::Cause;

use crate::model::Account;
use suiro_analysis::why::wording::seconds;

/// What the sources are, the streams, and what happened, with causes and where they are recorded.
pub fn text(account: &Account) -> String {
    let mut text = String::new();
    let mut line = |it: String| {
        let _ = writeln!(text, "{}", printable(&it));
    };
    for source in &account.sources {
        line(format!("{}: {}, {}", source.name, source.kind, source.note));
    }
    if !account.streams.is_empty() {
        line(String::new());
    }
    for stream in &account.streams {
        line(format!("{} ({}): {}", stream.name, stream.source, stream.text));
    }
    line(String::new());
    if account.effects.is_empty() {
        line(
            "nothing that a viewer would notice: no gap, no freeze, no late or lost packets"
                .to_owned(),
        );
    }
    for (number, effect) in account.effects.iter().enumerate() {
        let cause = match effect.cause {
            Cause::Unknown => "not known",
            cause => label(cause),
        };
        line(format!(
            "[{number}] {}  {}: {}",
            seconds(effect.from_ns),
            effect.subject,
            effect.what
        ));
        line(format!("        {cause}: {}", effect.because));
        for evidence in &effect.evidence {
            line(format!("        {}: {}", evidence.source, evidence.place));
        }
    }
    if account.left_out > 0 {
        line(format!("{} further effects are not shown", account.left_out));
    }
    text
}
