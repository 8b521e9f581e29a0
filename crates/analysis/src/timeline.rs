//! Uniform time series of one trial, for figures.

use schemars::JsonSchema;
use serde::Serialize;
use suiro_record::Trial;
use suiro_record::tables::{QualityRow, RateRow};

use crate::bins::Bins;
use crate::crowd;
use crate::held::Stretch;
use crate::layers::{self, LAYERS};
use crate::link::{Direction, directions, since};
use crate::player::{Player, players};
use crate::rivals::{Kind, Rivals};
use crate::tcp::{Senders, media_sockets, senders, srtt_ms};
use crate::{Records, duration_ns};

/// The time series of one trial, all in the same bins.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// Width of a bin in seconds; the first begins at the trial's start.
    pub bin_s: f64,
    /// The series, in the order of a page.
    pub series: Vec<Series>,
    /// When at least half of the pictures stood still: from and to, in seconds, sorted.
    pub stalls: Vec<(f64, f64)>,
}

/// A figure of the stack that shares one time axis, in the order of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Panel {
    /// Throughput down and the link's rate.
    ThroughputDown,
    /// Throughput up and the link's rate.
    ThroughputUp,
    /// Rates of video and of TCP beside each other.
    Rivals,
    /// What a rate control allows, and the video that is sent.
    Target,
    /// Loss as senders of video see it.
    Loss,
    /// Congestion window and slow-start threshold.
    Window,
    /// Round-trip time.
    Rtt,
    /// Bytes waiting in the queue.
    Queue,
    /// Delay in the queue.
    QueueDelay,
    /// Packets dropped.
    Losses,
    /// Media buffered by the player.
    Buffer,
    /// Rung shown, and the throughput that the player expects.
    Rung,
    /// Age of the picture.
    Latency,
    /// How good the picture looks.
    Quality,
    /// How late frames of uncompressed video begin.
    Lateness,
    /// Frames of uncompressed video between storage and sender.
    Ring,
    /// Rates of reading and sending uncompressed video.
    Storage,
    /// Lost between service access points.
    LayerLoss,
    /// Delayed between service access points.
    LayerDelay,
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// A line.
    Line,
    /// A line in steps.
    Step,
    /// A faint line beside the main one.
    Context,
    /// A faint line in steps beside the main one: a bound.
    Bound,
    /// A bar per bin.
    Bar,
}

/// One quantity over a trial.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its name, such as `tcp.cwnd_bytes`.
    pub name: String,
    /// The figure it belongs to.
    pub panel: Panel,
    /// A few words for a legend.
    pub label: String,
    /// `bit/s`, `B`, `ms`, `s`, `packets` or `frames`.
    pub unit: &'static str,
    /// How it is drawn.
    pub style: Style,
    /// What it means.
    pub doc: &'static str,
    /// One value per bin; `None` where nothing was measured.
    pub values: Vec<Option<f64>>,
}

/// The series of a trial in bins of 100 ms, or wider where that would be more than `bins_max`.
/// A series without any value is left out.
pub fn timeline(trial: &Trial, records: &Records, bins_max: usize) -> Timeline {
    let bins = Bins::new(duration_ns(trial), bins_max);
    let mut series = Vec::new();
    for direction in &directions(trial, records) {
        series.extend(of_link(direction, &bins));
    }
    let sockets = media_sockets(trial, records);
    for group in &senders(trial, &sockets) {
        series.extend(of_tcp(group, &bins));
    }
    for direction in &layers::directions(records) {
        series.extend(of_layers(direction, &bins));
    }
    if let Some(rivals) = &Rivals::of(trial, records) {
        series.extend(of_rivals(rivals, &bins));
    }
    let players = players(trial, records);
    let many = players.len() > crowd::DRAWN_MAX;
    let several = players.len() > 1 && !many;
    let of_players = players.iter().flat_map(|player| {
        let screen = of_screen(player, several, &bins);
        of_player(player, several, &bins).into_iter().chain(screen)
    });
    match many {
        true => series.extend(crowd::means(of_players.collect())),
        false => series.extend(of_players),
    }
    series.extend(crate::uncompressed::series(records, &bins));
    for value in series.iter_mut().flat_map(|s| &mut s.values) {
        *value = value.filter(|value| value.is_finite());
    }
    series.retain(|s| s.values.iter().any(Option::is_some));
    series.sort_by_key(|s| s.panel);
    let spans = crowd::mostly(players.iter().flat_map(Player::stall_spans), players.len());
    let stalls = spans.iter().map(|(from, to)| (*from as f64 / 1e9, *to as f64 / 1e9)).collect();
    Timeline { bin_s: bins.width_s(), series, stalls }
}

fn of_link(direction: &Direction, bins: &Bins) -> Vec<Series> {
    if direction.rows.is_empty() {
        return Vec::new();
    }
    let panel =
        if direction.direction == "up" { Panel::ThroughputUp } else { Panel::ThroughputDown };
    let new = |panel, field: &str, label, unit, style, doc, values| {
        let name = format!("{}.{field}", direction.prefix);
        let label = format!("{label}{}", suffix(&direction.prefix, "link"));
        Series { name, panel, label, unit, style, doc, values }
    };
    let sizes = direction.delivered().map(|(t_ns, row)| (t_ns, row.size_bytes as f64 * 8.0));
    let per_s = |bits: f64| Some(bits / bins.width_s());
    let throughput = bins.sum(sizes).into_iter().map(per_s).collect();
    let served = direction.service.iter().map(|served| {
        let value = served.value * 8e9 / served.length_ns();
        Stretch { value, ..*served }
    });
    let (rate, rate_doc) = match direction.asked_stretches() {
        Some(asked) => (bins.held_mean(asked), "rate that the scenario asks for"),
        None => (
            bins.held_mean(served),
            "rate at which the link served while packets waited; a gap where none waited",
        ),
    };
    let queue = direction.rows.iter().map(|row| (row.t_ns, row.queue_bytes as f64));
    let waits =
        direction.rows.iter().filter_map(|row| Some((row.t_ns, since(row.dequeued_ns?, row.t_ns))));
    let losses = bins.sum(direction.dropped().map(|row| (row.t_ns, 1.0)));
    vec![
        new(
            panel,
            "throughput_bps",
            "throughput",
            "bit/s",
            Style::Line,
            "IP packets delivered, headers included",
            throughput,
        ),
        new(panel, "rate_bps", "link rate", "bit/s", Style::Bound, rate_doc, rate),
        new(
            Panel::Queue,
            "queue_bytes",
            "queue",
            "B",
            Style::Line,
            "most bytes that an arriving packet found waiting",
            bins.max(queue),
        ),
        new(
            Panel::QueueDelay,
            "queue_delay_ms",
            "queueing delay",
            "ms",
            Style::Line,
            "from arrival to the start of service, mean over packets",
            bins.mean(waits),
        ),
        new(
            Panel::Losses,
            "drops",
            "drops",
            "packets",
            Style::Bar,
            "packets dropped by the link",
            losses.into_iter().map(Some).collect(),
        ),
    ]
}

fn of_rivals(rivals: &Rivals, bins: &Bins) -> Vec<Series> {
    let new = |panel, field: &str, label: &str, unit, style, doc, values| {
        let (name, label) = (format!("fairness.{field}"), label.to_owned());
        Series { name, panel, label, unit, style, doc, values }
    };
    let bps = |of: fn(&RateRow) -> Option<f64>| bins.held_mean(rivals.stretches(of));
    vec![
        new(
            Panel::Rivals,
            "video_bps",
            "video",
            "bit/s",
            Style::Line,
            "IP packets delivered of a video flow, mean over the flows",
            rivals.rate_bins(Kind::Video, bins),
        ),
        new(
            Panel::Rivals,
            "tcp_bps",
            "TCP",
            "bit/s",
            Style::Context,
            "IP packets delivered of a TCP flow, mean over the flows",
            rivals.rate_bins(Kind::Tcp, bins),
        ),
        new(
            Panel::Target,
            "target_bps",
            "target rate",
            "bit/s",
            Style::Step,
            "what the rate control allows a video sender, mean over the senders",
            bps(|row| Some(row.target_bps as f64)),
        ),
        new(
            Panel::Target,
            "version_bps",
            "video rate",
            "bit/s",
            Style::Context,
            "mean rate of the version that is sent, or what the encoder is set to, mean over the senders",
            bps(|row| Some(row.encoder_bps? as f64)),
        ),
        new(
            Panel::Loss,
            "loss_ratio",
            "loss",
            "ratio",
            Style::Line,
            "share of packets lost, as receivers report it to the senders of video",
            bins.mean(rivals.losses()),
        ),
    ]
}

/// The part of a prefix that tells this instance from others, as words.
fn suffix(prefix: &str, family: &str) -> String {
    let instance = prefix.strip_prefix(family).unwrap_or_default().replace('.', " ");
    if instance.is_empty() { instance } else { format!(",{instance}") }
}

fn of_tcp(group: &Senders, bins: &Bins) -> Vec<Series> {
    let new = |panel, field: &str, label, unit, style, doc, values| {
        let name = format!("{}.{field}", group.prefix);
        let label = format!("{label}{}", suffix(&group.prefix, "tcp"));
        Series { name, panel, label, unit, style, doc, values }
    };
    let cwnd = group.stretches(|row| Some(row.cwnd_bytes as f64));
    let ssthresh = group.stretches(|row| row.ssthresh_bytes.map(|bytes| bytes as f64));
    vec![
        new(
            Panel::Window,
            "cwnd_bytes",
            "congestion window",
            "B",
            Style::Line,
            "mean over time of the sockets that carry media",
            bins.held_mean(cwnd),
        ),
        new(
            Panel::Window,
            "ssthresh_bytes",
            "slow-start threshold",
            "B",
            Style::Context,
            "mean over time of the sockets that carry media; a gap while it is infinite",
            bins.held_mean(ssthresh),
        ),
        new(
            Panel::Rtt,
            "srtt_ms",
            "smoothed RTT",
            "ms",
            Style::Line,
            "RFC 6298, mean over time of the sockets that carry media",
            bins.held_mean(group.stretches(srtt_ms)),
        ),
    ]
}

/// Loss and delay between the access points of each layer: second by second, each bin the value of its
/// second.
fn of_layers(direction: &layers::Direction, bins: &Bins) -> Vec<Series> {
    let stretches = |values: Vec<(i64, f64)>| {
        let stretch = |(from_ns, value)| Stretch { from_ns, to_ns: from_ns + 1_000_000_000, value };
        values.into_iter().map(stretch).collect::<Vec<_>>()
    };
    let new = |panel, field: String, label: String, unit, doc, values| Series {
        name: format!("{}.{field}", direction.prefix),
        panel,
        label: format!("{label}{}", suffix(&direction.prefix, "layers").replace('_', " ")),
        unit,
        style: Style::Line,
        doc,
        values,
    };
    let of_layer = |layer: &&str| {
        let label = layer.replace('_', " ");
        let losses = direction.seconds(layer, |row| row.between_loss_ratio);
        let delays = direction.seconds(layer, |row| row.between_delay_mean_ms);
        [
            new(
                Panel::LayerLoss,
                format!("{layer}_lost_ratio"),
                label.clone(),
                "",
                "share of what was sent in each second, lost between the layer's access points",
                bins.held_mean(stretches(losses.collect())),
            ),
            new(
                Panel::LayerDelay,
                format!("{layer}_between_ms"),
                label,
                "ms",
                "one-way delay between the layer's access points, mean over each second",
                bins.held_mean(stretches(delays.collect())),
            ),
        ]
    };
    LAYERS.iter().flat_map(of_layer).collect()
}

/// Makes a series of this player, whose name it bears if there are several.
fn naming(
    player: &Player,
    several: bool,
) -> impl Fn(Panel, &str, &str, &'static str, Style, &'static str, Vec<Option<f64>>) -> Series {
    let (infix, tail) = if several {
        (format!("{}.", player.name), format!(", {}", player.name))
    } else {
        (String::new(), String::new())
    };
    move |panel, field, label, unit, style, doc, values| {
        let name = format!("player.{infix}{field}");
        Series { name, panel, label: format!("{label}{tail}"), unit, style, doc, values }
    }
}

fn of_screen(player: &Player, several: bool, bins: &Bins) -> Vec<Series> {
    let new = naming(player, several);
    let score = |of: fn(&QualityRow) -> Option<f64>| {
        bins.mean(player.screen.quality.iter().filter_map(|row| Some((row.t_ns, of(row)?))))
    };
    vec![
        new(
            Panel::Quality,
            "picture_vmaf",
            "VMAF of the picture",
            "",
            Style::Line,
            "each picture shown against its own source frame",
            score(|row| row.picture_vmaf),
        ),
        new(
            Panel::Quality,
            "experience_vmaf",
            "VMAF of the experience",
            "",
            Style::Context,
            "the screen against the source at a constant delay",
            score(|row| row.experience_vmaf),
        ),
    ]
}

fn of_player(player: &Player, several: bool, bins: &Bins) -> Vec<Series> {
    let new = naming(player, several);
    let buffer = player.stretches(|row| Some(row.buffer_ms? / 1e3));
    let rung = player.stretches(|row| row.rung_bps.map(|bps| bps as f64));
    let estimate = player.stretches(|row| row.estimate_bps.map(|bps| bps as f64));
    let latency = match player.screen.is_known() {
        true => bins.mean(player.screen.latencies()),
        false => bins.held_mean(player.stretches(|row| row.latency_ms)),
    };
    vec![
        new(
            Panel::Buffer,
            "buffer_s",
            "buffer",
            "s",
            Style::Line,
            "media buffered ahead of the playhead",
            bins.held_mean(buffer),
        ),
        new(
            Panel::Rung,
            "rung_bps",
            "rung",
            "bit/s",
            Style::Step,
            "nominal bit rate of the video under the playhead",
            bins.held_last(rung),
        ),
        new(
            Panel::Rung,
            "estimate_bps",
            "estimate",
            "bit/s",
            Style::Context,
            "throughput as the player estimates it",
            bins.held_mean(estimate),
        ),
        new(
            Panel::Latency,
            "latency_ms",
            "latency",
            "ms",
            Style::Line,
            "from the capture of a picture to its display",
            latency,
        ),
    ]
}
