//! What VLC 3.0 says: its messages (`--verbose 2`) and its answers to `stats`.

/// What a message reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Message {
    /// A request follows, or an answer.
    Begins(Head),
    /// The first line of a request: path and query.
    Target(String),
    /// The first line of an answer.
    Status(u16),
    /// The length of the answer's body.
    Length(u64),
    /// The empty line after the head of a request or an answer.
    HeadEnds,
    /// It fills its buffer before it shows anything, or again.
    Buffering,
    /// It goes on to show.
    Buffered,
    /// Data came too late: so much is buffered from now on, in milliseconds.
    Delay(u64),
    /// How far it has demultiplexed, and where it began, in microseconds of the stream's
    /// timestamps. Written about once a second of media.
    Demuxed { at_us: u64, began_us: u64 },
    /// The end of the stream.
    Over,
    /// Something failed.
    Error(String),
}

/// The head of an HTTP message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Head {
    Request,
    Answer,
}

/// What a line of standard error says; `None` for what is of no interest here.
pub(super) fn message(line: &str) -> Option<Message> {
    if line.is_empty() {
        return Some(Message::HeadEnds);
    }
    match line.strip_prefix('[') {
        Some(rest) => {
            let (_object, text) = rest.split_once("] ")?;
            logged(text)
        }
        None => header(line),
    }
}

/// A message of one of VLC's objects: `MODULE TYPE LEVEL: TEXT`.
fn logged(text: &str) -> Option<Message> {
    let (from, text) = text.split_once(": ")?;
    if let Some(module) = from.strip_suffix(" error") {
        let delay = text.split_once("pts_delay increased to ");
        if let Some((_, rest)) = delay {
            return first_number(rest).map(Message::Delay);
        }
        return Some(Message::Error(format!("{module}: {text}")));
    }
    match from {
        "main input debug" if text.starts_with("Buffering ") => Some(Message::Buffering),
        "main input debug" if text.starts_with("Stream buffering done") => Some(Message::Buffered),
        "main input debug" if text == "EOF reached" => Some(Message::Over),
        "adaptive demux debug" => demuxed(text),
        _ if text == "outgoing request:" => Some(Message::Begins(Head::Request)),
        _ if text == "incoming response:" => Some(Message::Begins(Head::Answer)),
        _ => None,
    }
}

/// `cached.i_time (14008334) cur 242008334 rap start (pl 12041667/dmx 240041667) pos 0.466944`
fn demuxed(text: &str) -> Option<Message> {
    let rest = text.strip_prefix("cached.i_time (")?;
    let (_, rest) = rest.split_once(") cur ")?;
    let (at, rest) = rest.split_once(" rap start (pl ")?;
    let (_, rest) = rest.split_once("/dmx ")?;
    let (began, _) = rest.split_once(')')?;
    Some(Message::Demuxed { at_us: at.parse().ok()?, began_us: began.parse().ok()? })
}

/// A line of the head of an HTTP message.
fn header(line: &str) -> Option<Message> {
    if let Some(rest) = line.strip_prefix("GET ") {
        let (target, version) = rest.rsplit_once(' ')?;
        return version.starts_with("HTTP/").then(|| Message::Target(target.to_owned()));
    }
    if line.starts_with("HTTP/") {
        let status = line.split(' ').nth(1)?.parse().ok()?;
        return Some(Message::Status(status));
    }
    let (name, value) = line.split_once(':')?;
    let length = name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?;
    length.map(Message::Length)
}

fn first_number(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

/// One figure of the answer to `stats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Statistic {
    /// Frames shown.
    Displayed(u64),
    /// Frames that were too late to be shown.
    Lost(u64),
}

/// `| frames displayed :       75`
pub(super) fn statistic(line: &str) -> Option<Statistic> {
    // A prompt may stand before it.
    let (_, line) = line.split_once('|')?;
    let (name, value) = line.split_once(':')?;
    let value = value.trim().parse().ok()?;
    match name.trim() {
        "frames displayed" => Some(Statistic::Displayed(value)),
        "frames lost" => Some(Statistic::Lost(value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of VLC 3.0.24 (Debian 12), playing live DASH, shortened to what each kind of line looks like.
    const SAID: &str = include_str!("said-dash.txt");

    #[test]
    fn what_it_said_of_dash() {
        let told: Vec<_> = SAID.lines().filter_map(message).collect();
        insta::assert_debug_snapshot!(told);
    }

    #[test]
    fn what_it_said_of_hls() {
        let told: Vec<_> = include_str!("said-hls.txt").lines().filter_map(message).collect();
        insta::assert_debug_snapshot!(told);
    }

    #[test]
    fn its_statistics() {
        let told: Vec<_> = include_str!("stats.txt").lines().filter_map(statistic).collect();
        assert_eq!(told, [Statistic::Displayed(75), Statistic::Lost(0)]);
    }

    #[test]
    fn a_late_stream() {
        let line = "[00007f71d8000c90] main input error: ES_OUT_SET_(GROUP_)PCR  is called too \
                    late (pts_delay increased to 1300 ms)";
        assert_eq!(message(line), Some(Message::Delay(1300)));
    }

    #[test]
    fn what_is_damaged_says_nothing() {
        for line in [
            "[",
            "[x",
            "[x] ",
            "[x] a: ",
            "GET",
            "GET /",
            "GET / FTP",
            "HTTP/1.1",
            "HTTP/1.1 x",
            "content-length: -1",
            "content-length: 99999999999999999999999",
            "[1] adaptive demux debug: cached.i_time (1) cur x rap start (pl 1/dmx 2)",
            "[1] adaptive demux debug: cached.i_time (",
        ] {
            assert_eq!(message(line), None, "{line}");
        }
        for line in ["|", "| frames lost", "| frames lost : x", "frames lost : 1"] {
            assert_eq!(statistic(line), None, "{line}");
        }
    }
}
