//! What programs of ours have written, and anybody may have changed: results, recordings, states, reports of pages.

use std::path::Path;
use std::sync::Once;

use serde::Serialize;
use serde::de::DeserializeOwned;
use suiro_control::node::Status;
use suiro_foreign::{Account, Source};
use suiro_layers::of_rows;
use suiro_layers::report::joined;
use suiro_moq::chromium as moq;
use suiro_record::tables::{
    FlowRow, HopRow, LayerRow, LinkRow, RequestRow, RungRow, TcpRow, WebrtcRow,
};
use suiro_record::{Findings, Manifest, Reader, Row, Screens, Summary, Trial};
use suiro_webrtc::chromium as webrtc;

/// A document of a results folder, after a letter that says which: what is accepted is written and read the same.
pub fn documents(data: &[u8]) {
    let Some((kind, text)) = data.split_first() else { return };
    match kind {
        b'm' => same_again::<Manifest>(text),
        b't' => same_again::<Trial>(text),
        b's' => same_again::<Summary>(text),
        b'f' => same_again::<Findings>(text),
        _ => same_again::<Screens>(text),
    }
}

fn same_again<T: Serialize + DeserializeOwned>(text: &[u8]) {
    let Ok(document) = serde_json::from_slice::<T>(text) else { return };
    let written = serde_json::to_string(&document).expect("a document is JSON");
    let again: T = serde_json::from_str(&written).expect("what is written can be read");
    assert_eq!(serde_json::to_string(&again).ok(), Some(written));
}

/// A table of a results folder, after a letter that says which.
pub fn tables(data: &[u8]) {
    let Some((kind, file)) = data.split_first() else { return };
    match kind {
        b'l' => table::<LinkRow>(file),
        b't' => table::<TcpRow>(file),
        b'q' => table::<RequestRow>(file),
        b'f' => table::<FlowRow>(file),
        b'h' => table::<HopRow>(file),
        b'w' => table::<WebrtcRow>(file),
        b's' => summary(file),
        _ => table::<RungRow>(file),
    }
}

/// The Parquet reader panics on damaged pages, which [`Reader`] catches. libfuzzer ends the process at each panic, unless
/// the hook that does so is replaced; a panic that nobody catches still ends it.
fn panics_may_be_caught() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| std::panic::set_hook(Box::new(|panic| eprintln!("{panic}"))));
}

fn table<R: Row>(file: &[u8]) {
    panics_may_be_caught();
    let mut rows = 0_u64;
    let read = Reader::each_of::<R>(Path::new("fuzz"), file.to_vec().into(), |_| rows += 1);
    if let Err(error) = read {
        assert!(!error.to_string().is_empty(), "an error says something");
    }
}

fn summary(file: &[u8]) {
    panics_may_be_caught();
    if let Err(error) = Summary::rows_of(Path::new("fuzz"), file.to_vec().into()) {
        assert!(!error.to_string().is_empty(), "an error says something");
    }
}

/// A recording of `layers`: the length of its document in two bytes, the document, its table. It is joined with itself.
pub fn layers_recording(data: &[u8]) {
    let Some((length, rest)) = data.split_first_chunk::<2>() else { return };
    let Some((text, file)) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length))) else {
        return;
    };
    let Ok(text) = std::str::from_utf8(text) else { return };
    panics_may_be_caught();
    let mut rows: Vec<LayerRow> = Vec::new();
    let file = file.to_vec().into();
    // What was read before a fault is taken, so that the fault does not hide the rest.
    let _ = Reader::each_of(Path::new("fuzz"), file, |row| rows.push(row));
    let Ok(recording) = of_rows(text, &rows) else { return };
    let report = joined(&recording, &recording);
    assert!(report.accounts.iter().all(|account| account.is_conserved()), "it adds up");
}

/// What a node of uncompressed streams says of itself.
pub fn node_status(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Status::parse("n1", text) {
        Ok(status) => assert_eq!(status.name, "n1"),
        Err(error) => assert!(!error.is_empty(), "an error says something"),
    }
}

/// What a page in a browser reports, or pion's program, after a letter that says which.
pub fn browser_report(data: &[u8]) {
    let Some((kind, body)) = data.split_first() else { return };
    let checked = match kind {
        b'p' => suiro_players::check_report(body),
        b'w' => webrtc::check_report(body),
        b'f' => webrtc::check_frames(body),
        b'g' => suiro_webrtc::pion::check_message(body),
        b'm' => moq::check_report(body),
        _ => moq::check_objects(body),
    };
    if let Err(error) = checked {
        assert!(!error.is_empty(), "an error says something");
    }
}

/// A file of another program; a capture also next to itself, as those of two hosts.
pub fn foreign(data: &[u8]) {
    let sources = [Source { name: "a", content: data }, Source { name: "b", content: data }];
    match suiro_foreign::explain(&sources[..1]) {
        Ok(account) => {
            check_account(&account);
            if account.sources[0].kind == "capture" {
                check_account(&suiro_foreign::explain(&sources).expect("each of them was read"));
            }
        }
        Err(error) => assert!(!error.to_string().is_empty(), "an error says something"),
    }
}

fn check_account(account: &Account) {
    assert!(!suiro_foreign::text(account).is_empty(), "an account says something");
    assert!(account.effects.len() <= suiro_foreign::EFFECTS_MAX, "effects are bounded");
}
