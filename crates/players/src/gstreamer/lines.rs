//! What GStreamer says: `gst-launch-1.0 -m -v` on standard output, and the debug category
//! `adaptivedemux2` on standard error.

/// What the pipeline's bus reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Message {
    /// The whole pipeline shows, or is stalled.
    Moves(bool),
    /// Frames that were too late to be shown, so far.
    Dropped(u64),
    /// The end of the stream.
    Over,
}

/// What a download reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Download {
    /// A request is sent.
    Sent(String),
    /// The first bytes of its body have come.
    FirstByte(String),
    /// It is over, with this status.
    Done(String, u16),
}

/// What a line of standard output says; `None` for what is of no interest here.
pub(super) fn message(line: &str) -> Option<Message> {
    if let Some((_, counts)) = line.split_once("last-message = rendered: ") {
        let (_, dropped) = counts.split_once("dropped: ")?;
        return dropped.split(',').next()?.trim().parse().ok().map(Message::Dropped);
    }
    // A line that is overwritten on a terminal may stand before it.
    let (_, message) = line.split_once("Got message #")?;
    let (_, message) = message.split_once(" from element \"playbin")?;
    let (_, message) = message.split_once("\" (")?;
    let (kind, told) = message.split_once("):")?;
    match kind {
        "eos" => Some(Message::Over),
        "state-changed" => {
            let (_, state) = told.split_once("new-state=(GstState)")?;
            match state.split(',').next()? {
                "playing" => Some(Message::Moves(true)),
                "paused" if told.contains("old-state=(GstState)playing") => {
                    Some(Message::Moves(false))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// What a line of standard error says; `None` for what is of no interest here.
pub(super) fn download(line: &str) -> Option<Download> {
    let (_, text) = line.split_once(" downloadhelper.c:")?;
    if let Some((_, rest)) = text.split_once(" Submitting request URI ") {
        return Some(Download::Sent(target(rest)?));
    }
    if let Some((_, rest)) = text.split_once(" Got first data for URI ") {
        return Some(Download::FirstByte(target(rest)?));
    }
    let (_, rest) = text.split_once(" request complete. Code ")?;
    let (status, rest) = rest.split_once(" URI ")?;
    Some(Download::Done(target(rest)?, status.parse().ok()?))
}

/// The path and query of the URL that a text begins with.
fn target(text: &str) -> Option<String> {
    let url = text.split_whitespace().next()?;
    suiro_http::Url::parse(url).ok().map(|url| url.target().to_owned())
}

/// The text of an error, as `gst-launch-1.0` prints it.
pub(super) fn error(line: &str) -> Option<&str> {
    line.strip_prefix("ERROR: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of GStreamer 1.22.0 (Debian 12), playing live HLS.
    #[test]
    fn what_its_bus_said() {
        let told: Vec<_> = include_str!("said-bus.txt").lines().filter_map(message).collect();
        insta::assert_debug_snapshot!(told);
    }

    #[test]
    fn what_its_downloads_said() {
        let told: Vec<_> =
            include_str!("said-downloads.txt").lines().filter_map(download).collect();
        insta::assert_debug_snapshot!(told);
    }

    #[test]
    fn what_is_damaged_says_nothing() {
        for line in [
            "",
            "Got message #1",
            "Got message #1 from element \"playbin3-0\" (state-changed): x",
            "x last-message = rendered: 1",
            "x last-message = rendered: 1, dropped: x, ",
        ] {
            assert_eq!(message(line), None, "{line}");
        }
        for line in [
            "",
            " downloadhelper.c:1: Submitting request URI ",
            " downloadhelper.c:1: request complete. Code x URI http://s/ r",
            " downloadhelper.c:1: Got first data for URI file:///x",
        ] {
            assert_eq!(download(line), None, "{line}");
        }
    }
}
