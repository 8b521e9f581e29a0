//! Layered QoS, from direction to direction of hosts.

use super::Metric;

pub(super) static METRICS: &[Metric] = catalogue! {
    #[main] layers.system_call_loss_ratio ["ratio", Lower, 3] "System call: loss",
        "Lost by system calls, sockets and their queues, as a share of what was sent: between the layer's access points in both hosts, \
         less the same of the layer below. Of the main flow: the one of UDP, or else of TCP, that sent \
         most.",
        Layers(|d| d.whole("system_call", |row| row.own_loss_ratio));
    #[main] layers.system_call_delay_mean_ms ["ms", Lower, 3] "System call: delay",
        "Delay of system calls, sockets and their queues, mean over packets that came through: as with loss, less the layer below.",
        Layers(|d| d.whole("system_call", |row| row.own_delay_mean_ms));
    layers.system_call_delay_max_ms ["ms", Lower, 3] "System call: delay, greatest",
        "Delay of system calls, sockets and their queues, greatest.",
        Layers(|d| d.whole("system_call", |row| row.own_delay_max_ms));
    layers.system_call_jitter_ms ["ms", Lower, 3] "System call: jitter",
        "Mean amount by which the delays of successive packets in system calls, sockets and their queues differ.",
        Layers(|d| d.whole("system_call", |row| row.own_jitter_ms));
    layers.transport_loss_ratio ["ratio", Lower, 3] "UDP or TCP: loss",
        "Lost by UDP or TCP, as a share of what was sent: between the layer's access points in both hosts, \
         less the same of the layer below. Of the main flow: the one of UDP, or else of TCP, that sent \
         most.",
        Layers(|d| d.whole("transport", |row| row.own_loss_ratio));
    layers.transport_delay_mean_ms ["ms", Lower, 3] "UDP or TCP: delay",
        "Delay of UDP or TCP, mean over packets that came through: as with loss, less the layer below.",
        Layers(|d| d.whole("transport", |row| row.own_delay_mean_ms));
    layers.transport_delay_max_ms ["ms", Lower, 3] "UDP or TCP: delay, greatest",
        "Delay of UDP or TCP, greatest.",
        Layers(|d| d.whole("transport", |row| row.own_delay_max_ms));
    layers.transport_jitter_ms ["ms", Lower, 3] "UDP or TCP: jitter",
        "Mean amount by which the delays of successive packets in UDP or TCP differ.",
        Layers(|d| d.whole("transport", |row| row.own_jitter_ms));
    layers.network_loss_ratio ["ratio", Lower, 3] "IP: loss",
        "Lost by IP, as a share of what was sent: between the layer's access points in both hosts, \
         less the same of the layer below. Of the main flow: the one of UDP, or else of TCP, that sent \
         most.",
        Layers(|d| d.whole("network", |row| row.own_loss_ratio));
    layers.network_delay_mean_ms ["ms", Lower, 3] "IP: delay",
        "Delay of IP, mean over packets that came through: as with loss, less the layer below.",
        Layers(|d| d.whole("network", |row| row.own_delay_mean_ms));
    layers.network_delay_max_ms ["ms", Lower, 3] "IP: delay, greatest",
        "Delay of IP, greatest.",
        Layers(|d| d.whole("network", |row| row.own_delay_max_ms));
    layers.network_jitter_ms ["ms", Lower, 3] "IP: jitter",
        "Mean amount by which the delays of successive packets in IP differ.",
        Layers(|d| d.whole("network", |row| row.own_jitter_ms));
    #[main] layers.link_loss_ratio ["ratio", Lower, 3] "Data link: loss",
        "Lost by all that is below IP, as a share of what was sent: between the layer's access points in both hosts, \
         less the same of the layer below. Of the main flow: the one of UDP, or else of TCP, that sent \
         most.",
        Layers(|d| d.whole("link", |row| row.own_loss_ratio));
    #[main] layers.link_delay_mean_ms ["ms", Lower, 3] "Data link: delay",
        "Delay of all that is below IP, mean over packets that came through: as with loss, less the layer below.",
        Layers(|d| d.whole("link", |row| row.own_delay_mean_ms));
    layers.link_delay_max_ms ["ms", Lower, 3] "Data link: delay, greatest",
        "Delay of all that is below IP, greatest.",
        Layers(|d| d.whole("link", |row| row.own_delay_max_ms));
    layers.link_jitter_ms ["ms", Lower, 3] "Data link: jitter",
        "Mean amount by which the delays of successive packets in all that is below IP differ.",
        Layers(|d| d.whole("link", |row| row.own_jitter_ms));
};
