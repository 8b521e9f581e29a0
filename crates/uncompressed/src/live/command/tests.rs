use super::*;

const RATE: FrameRate = FrameRate::P59_94;

fn epoch() -> Epoch {
    Epoch::measured(Time::from_secs(1_780_000_037), Time::from_secs(86_400))
}

/// In frame `frame`, as far as `part` of it has passed.
fn within(frame: u64, part: f64) -> Time {
    epoch().start(RATE, frame) + RATE.period().mul_f64(part)
}

#[test]
fn a_time_means_the_first_frame_that_begins_then_or_later() {
    let now = within(1_000_000_000_000 / 10, 0.5);
    let current = epoch().frame_at(RATE, now);
    let at = |time| boundary(At::Tai(time), epoch(), RATE, now).unwrap();
    assert_eq!(boundary(At::Next, epoch(), RATE, now).unwrap(), None);
    assert_eq!(at(RATE.start_of(current + 1)), Some(current + 1), "exactly at its beginning");
    let after = RATE.start_of(current + 1) + Duration::from_nanos(1);
    assert_eq!(at(after), Some(current + 2), "a nanosecond later");
}

#[test]
fn a_frame_that_has_begun_is_in_the_past() {
    let current = epoch().frame_at(RATE, Time::from_secs(90_000));
    let now = within(current, 0.5);
    let refused = |frame| {
        boundary(At::Tai(RATE.start_of(frame)), epoch(), RATE, now).unwrap_err().to_string()
    };
    assert!(refused(current).contains("began 1 frames ago"), "{}", refused(current));
    assert!(refused(current - 10).contains("began 11 frames ago"));
    // A day later.
    let far = RATE.start_of(current + 86_400 * 60);
    let far = boundary(At::Tai(far), epoch(), RATE, now).unwrap_err();
    assert!(matches!(far, Refusal::Far { .. }), "{far}");
}

#[test]
fn clocks_further_apart_than_the_ring_are_refused() {
    let (now, ring) = (Time::from_secs(90_000), Duration::from_secs(10));
    let own = epoch().tai(now);
    let told = |issued| clocks(Some(issued), epoch(), now, ring);
    assert!(clocks(None, epoch(), now, ring).is_ok());
    assert!(told(own + Duration::from_secs(10)).is_ok() && told(own).is_ok());
    // UTC in place of TAI.
    let error = told(own.saturating_sub(Duration::from_secs(37))).unwrap_err();
    assert!(matches!(error, Refusal::ClocksApart { ahead: false, .. }), "{error}");
    assert!(error.to_string().contains("before the node's clock"), "{error}");
}

#[test]
fn the_time_determines_the_frame_of_a_material() {
    let material = |repeat| Material {
        source: Source::Store(PathBuf::from("node.frames")),
        origin: 1000,
        repeat,
    };
    let (once, again) = (material(false), material(true));
    assert_eq!((once.index(1000, 60), once.index(1059, 60)), (Some(0), Some(59)));
    assert_eq!(once.index(999, 60), None);
    assert_eq!(again.index(999, 60), Some(59), "one before the first of a cycle is its last");
    assert_eq!(again.index(940, 60), Some(0));
    // A node that begins elsewhere shows the same frame: positions go on from the index.
    for frame in 900..1200_u64 {
        let index = again.index(frame, 60).unwrap() % 60;
        assert_eq!((index + 7) % 60, again.index(frame + 7, 60).unwrap() % 60, "{frame}");
    }
}

#[test]
fn an_order_names_lanes_that_exist_once() {
    let order = |lanes: &[u32]| Order::all(At::Next, lanes.iter().copied(), &());
    assert!(lanes(&order(&[3, 1]), &[1, 2, 3]).is_ok());
    assert!(matches!(lanes(&order(&[]), &[1]), Err(Refusal::Empty)));
    let error = lanes(&order(&[1, 9]), &[1, 2]).unwrap_err();
    assert_eq!(error.to_string(), "lane 9: the node has lanes 1, 2");
    assert!(matches!(lanes(&order(&[1, 1]), &[1]), Err(Refusal::Twice(1))));
}

#[test]
fn destinations_that_nothing_can_be_sent_to_are_refused() {
    let route = |text: &str| Route { destination: text.parse().unwrap(), source: None, ttl: 16 };
    let refused = |of: &[&str]| {
        let all: Vec<_> = of.iter().map(|text| route(text)).collect();
        routes(4, &all).unwrap_err().to_string()
    };
    assert!(routes(4, &[route("239.0.0.1:5004"), route("192.0.2.1:5004")]).is_ok());
    assert!(refused(&["239.0.0.1:0"]).contains("it has no port"));
    assert!(refused(&["0.0.0.0:5004"]).contains("neither a host nor a group"));
    assert!(refused(&["239.0.0.1:1", "239.0.0.1:1"]).contains("two paths"));
    assert!(refused(&[]).contains("expected 1 to 8 paths, found 0"));
}
