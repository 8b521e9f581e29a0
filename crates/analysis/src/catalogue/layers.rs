//! Layered QoS, from direction to direction of hosts.

use suiro_record::tables::LayerAccountRow;
use suiro_record::words::Layer;

use crate::bins::Bins;
use crate::family::{Curve, Family, Measure, Subject};
use crate::held::Stretch;
use crate::instance::Instance;
use crate::layers::{Direction, directions};
use crate::view::View;

/// The main flow from each host to each other.
pub(super) struct Between;

impl Subject for Between {
    type One<'v> = Direction<'v>;

    const PLACE: &'static str = ".DIRECTION";

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, Direction<'v>)> {
        let named = |one: Direction<'v>| {
            let path = format!("{}_to_{}", one.sender, one.receiver);
            let name = path.replace(['_', '.'], " ");
            (Instance { name: Some(name), ..Instance::named(&path) }, one)
        };
        directions(view.records).into_iter().map(named).collect()
    }
}

pub(super) static FAMILY: Family<Between> = Family { metrics: METRICS, series: SERIES };

static METRICS: &[Measure<Between>] = metrics! {
    #[main] layers.system_call_loss_ratio ["ratio", Lower, 3] "System call: loss",
        "Lost by system calls, sockets and their queues, as a share of what was sent: between the layer's access points in both hosts, \
         less the same of the layer below. Of the main flow: the one that sent most of those that carry media, as table `flows` says, \
         or else of UDP, or else of TCP. Over the whole trial, a warm-up included.",
        |d| d.whole(Layer::SystemCall, |row| row.own_loss_ratio);
    #[main] layers.system_call_delay_mean_ms ["ms", Lower, 3] "System call: delay",
        "Delay of system calls, sockets and their queues, mean over packets that came through: as with loss, less the layer below. Over the whole trial, a warm-up included.",
        |d| d.whole(Layer::SystemCall, |row| row.own_delay_mean_ms);
    layers.system_call_delay_max_ms ["ms", Lower, 3] "System call: delay, greatest",
        "Delay of system calls, sockets and their queues, greatest. Over the whole trial, a warm-up included.",
        |d| d.whole(Layer::SystemCall, |row| row.own_delay_max_ms);
    layers.system_call_jitter_ms ["ms", Lower, 3] "System call: jitter",
        "Mean amount by which the delays of successive packets in system calls, sockets and their queues differ. Over the whole trial, a warm-up included.",
        |d| d.whole(Layer::SystemCall, |row| row.own_jitter_ms);
    layers.transport_loss_ratio ["ratio", Lower, 3] "UDP or TCP: loss",
        "Lost by UDP or TCP, as a share of what was sent: between the layer's access points in both hosts, \
         less the same of the layer below. Of the main flow: the one that sent most of those that carry media, as table `flows` says, \
         or else of UDP, or else of TCP. Over the whole trial, a warm-up included.",
        |d| d.whole(Layer::Transport, |row| row.own_loss_ratio);
    layers.transport_delay_mean_ms ["ms", Lower, 3] "UDP or TCP: delay",
        "Delay of UDP or TCP, mean over packets that came through: as with loss, less the layer below. Over the whole trial, a warm-up included.",
        |d| d.whole(Layer::Transport, |row| row.own_delay_mean_ms);
    layers.transport_delay_max_ms ["ms", Lower, 3] "UDP or TCP: delay, greatest",
        "Delay of UDP or TCP, greatest. Over the whole trial, a warm-up included.",
        |d| d.whole(Layer::Transport, |row| row.own_delay_max_ms);
    layers.transport_jitter_ms ["ms", Lower, 3] "UDP or TCP: jitter",
        "Mean amount by which the delays of successive packets in UDP or TCP differ. Over the whole trial, a warm-up included.",
        |d| d.whole(Layer::Transport, |row| row.own_jitter_ms);
    layers.network_loss_ratio ["ratio", Lower, 3] "IP: loss",
        "Lost by IP, as a share of what was sent: between the layer's access points in both hosts, \
         less the same of the layer below. Of the main flow: the one that sent most of those that carry media, as table `flows` says, \
         or else of UDP, or else of TCP. Over the whole trial, a warm-up included.",
        |d| d.whole(Layer::Network, |row| row.own_loss_ratio);
    layers.network_delay_mean_ms ["ms", Lower, 3] "IP: delay",
        "Delay of IP, mean over packets that came through: as with loss, less the layer below. Over the whole trial, a warm-up included.",
        |d| d.whole(Layer::Network, |row| row.own_delay_mean_ms);
    layers.network_delay_max_ms ["ms", Lower, 3] "IP: delay, greatest",
        "Delay of IP, greatest. Over the whole trial, a warm-up included.",
        |d| d.whole(Layer::Network, |row| row.own_delay_max_ms);
    layers.network_jitter_ms ["ms", Lower, 3] "IP: jitter",
        "Mean amount by which the delays of successive packets in IP differ. Over the whole trial, a warm-up included.",
        |d| d.whole(Layer::Network, |row| row.own_jitter_ms);
    #[main] layers.link_loss_ratio ["ratio", Lower, 3] "Data link: loss",
        "Lost by all that is below IP, as a share of what was sent: between the layer's access points in both hosts, \
         less the same of the layer below. Of the main flow: the one that sent most of those that carry media, as table `flows` says, \
         or else of UDP, or else of TCP. Over the whole trial, a warm-up included.",
        |d| d.whole(Layer::Link, |row| row.own_loss_ratio);
    #[main] layers.link_delay_mean_ms ["ms", Lower, 3] "Data link: delay",
        "Delay of all that is below IP, mean over packets that came through: as with loss, less the layer below. Over the whole trial, a warm-up included.",
        |d| d.whole(Layer::Link, |row| row.own_delay_mean_ms);
    layers.link_delay_max_ms ["ms", Lower, 3] "Data link: delay, greatest",
        "Delay of all that is below IP, greatest. Over the whole trial, a warm-up included.",
        |d| d.whole(Layer::Link, |row| row.own_delay_max_ms);
    layers.link_jitter_ms ["ms", Lower, 3] "Data link: jitter",
        "Mean amount by which the delays of successive packets in all that is below IP differ. Over the whole trial, a warm-up included.",
        |d| d.whole(Layer::Link, |row| row.own_jitter_ms);
};

static SERIES: &[Curve<Between>] = series! {
    layers.system_call_lost_ratio [LayerLoss, "ratio", Line] "system call",
        "share of what was sent in each second, lost between the layer's access points",
        |d, bins| by_second(d, Layer::SystemCall, bins, |row| row.between_loss_ratio);
    layers.system_call_between_ms [LayerDelay, "ms", Line] "system call",
        "one-way delay between the layer's access points, mean over each second",
        |d, bins| by_second(d, Layer::SystemCall, bins, |row| row.between_delay_mean_ms);
    layers.transport_lost_ratio [LayerLoss, "ratio", Line] "transport",
        "share of what was sent in each second, lost between the layer's access points",
        |d, bins| by_second(d, Layer::Transport, bins, |row| row.between_loss_ratio);
    layers.transport_between_ms [LayerDelay, "ms", Line] "transport",
        "one-way delay between the layer's access points, mean over each second",
        |d, bins| by_second(d, Layer::Transport, bins, |row| row.between_delay_mean_ms);
    layers.network_lost_ratio [LayerLoss, "ratio", Line] "network",
        "share of what was sent in each second, lost between the layer's access points",
        |d, bins| by_second(d, Layer::Network, bins, |row| row.between_loss_ratio);
    layers.network_between_ms [LayerDelay, "ms", Line] "network",
        "one-way delay between the layer's access points, mean over each second",
        |d, bins| by_second(d, Layer::Network, bins, |row| row.between_delay_mean_ms);
    layers.link_lost_ratio [LayerLoss, "ratio", Line] "link",
        "share of what was sent in each second, lost between the layer's access points",
        |d, bins| by_second(d, Layer::Link, bins, |row| row.between_loss_ratio);
    layers.link_between_ms [LayerDelay, "ms", Line] "link",
        "one-way delay between the layer's access points, mean over each second",
        |d, bins| by_second(d, Layer::Link, bins, |row| row.between_delay_mean_ms);
};

/// Each bin has the value of its second.
fn by_second(
    direction: &Direction,
    layer: Layer,
    bins: &Bins,
    of: fn(&LayerAccountRow) -> Option<f64>,
) -> Vec<Option<f64>> {
    let stretch = |(from_ns, value)| Stretch { from_ns, to_ns: from_ns + 1_000_000_000, value };
    bins.held_mean(direction.seconds(layer, of).map(stretch))
}
