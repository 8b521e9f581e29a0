//! What layers lost and delayed, of the main flow of each direction.

use crate::common;
use suiro_analysis::{Panel, Records, summarise, timeline};
use suiro_record::tables::LayerAccountRow;

fn row(flow: &str, layer: &str, t_ns: Option<i64>, sent: i64, own: f64) -> LayerAccountRow {
    LayerAccountRow {
        t_ns,
        flow: flow.into(),
        sender: "ws1".into(),
        receiver: "ws2".into(),
        layer: layer.parse().unwrap(),
        sent,
        between_loss_ratio: Some(own + 0.1),
        own_loss_ratio: Some(own),
        between_delay_mean_ms: Some(5.0),
        between_delay_max_ms: None,
        own_delay_mean_ms: Some(2.0),
        own_delay_max_ms: Some(9.0),
        own_jitter_ms: None,
    }
}

#[test]
fn the_main_flow_of_a_direction_speaks_for_it() {
    let second = 1_000_000_000;
    let media = "udp 10.0.0.1:1>10.0.0.2:2";
    let records = Records {
        layer_accounts: vec![
            row("udp 10.0.0.1:3>10.0.0.2:4", "system_call", None, 10, 0.9),
            row(media, "system_call", None, 1000, 0.25),
            row(media, "link", None, 1000, 0.0),
            // Of TCP bytes are counted: it does not compare.
            row("tcp 10.0.0.1:5>10.0.0.2:6", "system_call", None, 1_000_000, 0.8),
            row(media, "system_call", Some(second), 100, 0.4),
        ],
        ..Records::default()
    };
    let trial = common::trial(3.0);
    let metrics = summarise(&trial, &records);
    let of = |field: &str| metrics[&format!("layers.ws1_to_ws2.{field}")];
    assert_eq!(of("system_call_loss_ratio"), Some(0.25));
    assert_eq!(of("system_call_delay_mean_ms"), Some(2.0));
    assert_eq!(of("system_call_delay_max_ms"), Some(9.0));
    assert_eq!(of("system_call_jitter_ms"), None);
    assert_eq!(of("link_loss_ratio"), Some(0.0));
    assert_eq!(of("network_loss_ratio"), None, "it was not watched");

    let timeline = timeline(&trial, &records, 3);
    let name = "layers.ws1_to_ws2.system_call_lost_ratio";
    let loss = timeline.series.iter().find(|series| series.name == name).unwrap();
    assert_eq!((loss.panel, &loss.values[..]), (Panel::LayerLoss, &[None, Some(0.5), None][..]));
}
