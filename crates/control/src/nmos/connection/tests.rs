use std::net::Ipv4Addr;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const NOW: Tai = Tai::from_nanos(1_000_000_000_000);
/// The frame boundaries of [`Fake`].
const FRAME_NS: u64 = 20_000_000;

/// Streams that accept every command, unless they are full, and cancel it, unless it began.
#[derive(Debug, Default)]
pub struct Fake {
    pub done: Vec<(Id, bool, Option<Tai>)>,
    pub cancelled: usize,
    pub full: bool,
    pub began: bool,
}

impl Media for Fake {
    fn activate(
        &mut self,
        id: &Id,
        wanted: &Wanted,
        now: Tai,
        at: Option<Tai>,
    ) -> Result<Tai, String> {
        if self.full {
            return Err("all lanes are taken".to_owned());
        }
        self.done.push((id.clone(), wanted.enabled, at));
        let from = at.unwrap_or(now).as_nanos();
        Ok(Tai::from_nanos(from.next_multiple_of(FRAME_NS)))
    }

    fn cancel(&mut self, _: &Id, _: Option<&Wanted>) -> Result<(), String> {
        if self.began {
            return Err("its frame has begun".to_owned());
        }
        self.cancelled += 1;
        Ok(())
    }

    fn fits(&self, _: &Id, description: &Description) -> Result<(), String> {
        let found = description.geometry;
        if found.width() == 1920 { Ok(()) } else { Err(format!("found {found}")) }
    }

    fn description(&self, _: &Id, wanted: &Wanted, since: Tai) -> Option<String> {
        wanted.enabled.then(|| since.to_string())
    }
}

fn own(legs: u8) -> Own {
    Own {
        interfaces: (1..=legs).map(|n| Ipv4Addr::new(192, 0, 2, n)).collect(),
        destinations: (1..=legs).map(|n| format!("239.0.0.{n}:5000").parse().unwrap()).collect(),
    }
}

fn sender() -> Connection {
    Connection::new(Id::named("s"), Side::Sender, own(1), NOW)
}

fn receiver() -> Connection {
    Connection::new(Id::named("r"), Side::Receiver, Own { destinations: Vec::new(), ..own(1) }, NOW)
}

fn get(connection: &mut Connection, what: &str) -> Value {
    let reply = connection.answer(NOW, &[what], &Ask::read("/"), &mut Fake::default());
    assert_eq!(reply.status, 200, "{what}: {}", reply.body);
    reply.value()
}

fn at(ns: u64) -> String {
    NOW.after(Duration::from_nanos(ns)).to_string()
}

#[test]
fn an_immediate_activation_resolves_auto_and_is_told_once() {
    let (mut sender, mut media) = (sender(), Fake::default());
    let body = json!({ "master_enable": true, "activation": { "mode": "activate_immediate" } });
    let reply = sender.patch(NOW, &body, &mut media);
    assert_eq!(reply.status, 200);
    let told = reply.value();
    assert_eq!(told["activation"]["mode"], "activate_immediate");
    assert_eq!(told["activation"]["activation_time"], NOW.to_string());
    assert_eq!(told["transport_params"][0]["destination_ip"], "auto");

    let active = get(&mut sender, "active");
    assert_eq!(active["master_enable"], true);
    let params = &active["transport_params"][0];
    assert_eq!(params["source_ip"], "192.0.2.1");
    assert_eq!(
        (&params["destination_ip"], &params["destination_port"]),
        (&json!("239.0.0.1"), &json!(5000))
    );
    let staged = get(&mut sender, "staged");
    assert_eq!(staged["activation"]["mode"], Value::Null);
    assert_eq!(staged["transport_params"][0]["source_ip"], "auto");
    assert!(sender.changed() > NOW);
    assert_eq!(media.done, [(Id::named("s"), true, None)]);
}

#[test]
fn a_scheduled_activation_locks_until_its_time_or_its_end() {
    let (mut sender, mut media) = (sender(), Fake::default());
    let body = json!({ "master_enable": true, "activation": {
        "mode": "activate_scheduled_absolute", "requested_time": at(30_000_000) } });
    let reply = sender.patch(NOW, &body, &mut media);
    assert_eq!(reply.status, 202);
    // The frame boundary after the time asked for.
    assert_eq!(reply.value()["activation"]["activation_time"], at(40_000_000));
    assert_eq!(get(&mut sender, "staged")["activation"]["requested_time"], at(30_000_000));

    let locked = sender.patch(NOW, &json!({ "master_enable": false }), &mut media);
    assert_eq!(locked.status, 423);
    assert!(locked.reason().contains("cancel it"), "{}", locked.reason());
    // A request that cannot be read is refused before anything else, and cancels nothing.
    let wrong = json!({ "master_enable": 1, "activation": { "mode": null } });
    assert_eq!(sender.patch(NOW, &wrong, &mut media).status, 400);
    assert_eq!(media.cancelled, 0);

    let before = NOW.after(Duration::from_nanos(39_999_999));
    assert!(!sender.advance(before) && !sender.is_active());
    let time = NOW.after(Duration::from_nanos(40_000_000));
    assert!(sender.advance(time) && sender.is_active());
    assert_eq!((sender.changed(), sender.scheduled()), (time, None));
    assert_eq!(get(&mut sender, "active")["activation"]["mode"], "activate_scheduled_absolute");

    let relative = json!({ "master_enable": false, "activation": {
        "mode": "activate_scheduled_relative", "requested_time": "0:100000000" } });
    let reply = sender.patch(time, &relative, &mut media);
    assert_eq!(
        (reply.status, &reply.value()["activation"]["activation_time"]),
        (202, &json!(at(140_000_000)))
    );
    let cancel = json!({ "activation": { "mode": null }, "master_enable": true });
    assert_eq!(sender.patch(time, &cancel, &mut media).status, 200);
    assert_eq!((media.cancelled, sender.scheduled()), (1, None));
    assert!(!sender.advance(NOW.after(Duration::from_secs(9))) && sender.is_active());
}

#[test]
fn an_activation_that_cannot_be_cancelled_comes_to_pass() {
    let (mut sender, mut media) = (sender(), Fake { began: true, ..Fake::default() });
    let body = json!({ "master_enable": true, "activation": {
        "mode": "activate_scheduled_relative", "requested_time": "0:40000000" } });
    assert_eq!(sender.patch(NOW, &body, &mut media).status, 202);
    let before = sender.clone();
    let cancel = json!({ "activation": { "mode": null }, "master_enable": false });
    let reply = sender.patch(NOW, &cancel, &mut media);
    assert_eq!(reply.status, 500);
    assert!(reply.reason().ends_with("cancelled: its frame has begun"), "{}", reply.reason());
    assert_eq!(sender, before);
    assert!(sender.advance(NOW.after(Duration::from_secs(1))) && sender.is_active());
}

#[test]
fn a_request_that_the_streams_refuse_changes_nothing() {
    let mut sender = sender();
    let before = sender.clone();
    let body = json!({ "master_enable": true, "activation": { "mode": "activate_immediate" } });
    let reply = sender.patch(NOW, &body, &mut Fake { full: true, ..Fake::default() });
    assert_eq!((reply.status, reply.reason().as_str()), (500, "all lanes are taken"));
    assert_eq!(sender, before);
    // Without a default, `auto` cannot be resolved.
    let mut other = Connection::new(
        Id::named("x"),
        Side::Sender,
        Own { destinations: Vec::new(), ..own(1) },
        NOW,
    );
    let reply = other.patch(NOW, &body, &mut Fake::default());
    assert_eq!(reply.status, 500);
    assert!(reply.reason().contains("destination_ip"), "{}", reply.reason());
}

#[test]
fn what_does_not_match_the_schema_is_refused_with_its_place() {
    let refused = |side: Side, body: Value| {
        let mut connection = if side == Side::Sender { sender() } else { receiver() };
        let before = connection.clone();
        let reply = connection.patch(NOW, &body, &mut Fake::default());
        assert_eq!(connection, before);
        assert_eq!(reply.value()["code"], 400, "{body}");
        assert!(reply.value()["debug"].is_null());
        reply.reason()
    };
    let leg = |leg: Value| json!({ "transport_params": [leg] });
    let s = |body| refused(Side::Sender, body);
    assert_eq!(s(json!([])), "expected an object, found []");
    assert!(s(json!({ "masterenable": true })).contains("found \"masterenable\""));
    assert!(s(json!({ "sender_id": null })).contains("expected only receiver_id"));
    assert!(s(json!({ "receiver_id": "7" })).contains("receiver_id: expected a UUID"));
    assert!(s(json!({ "transport_params": [] })).contains("expected 1 entries"));
    assert!(
        s(leg(json!({ "destination_port": 0 })))
            .contains("[0].destination_port: expected a port, 1 to 65535")
    );
    assert!(s(leg(json!({ "destination_port": 65536 }))).contains("found 65536"));
    assert!(s(leg(json!({ "destination_port": 5004.5 }))).contains("found 5004.5"));
    assert!(
        s(leg(json!({ "source_ip": "198.51.100.7" })))
            .contains("an address of this device: 192.0.2.1")
    );
    assert!(s(leg(json!({ "destination_ip": null }))).contains("an IPv4 address or \"auto\""));
    assert!(s(leg(json!({ "destination_ip": "0.0.0.0" }))).contains("the address of a host"));
    assert!(
        s(leg(json!({ "fec_enabled": true }))).contains("expected only source_ip, destination_ip")
    );
    let mode = |mode: Value, time: Value| json!({ "activation": { "mode": mode, "requested_time": time } });
    assert!(
        s(mode(json!("now"), Value::Null)).contains("activation.mode: expected activate_immediate")
    );
    assert!(s(json!({ "activation": {} })).contains("found none"));
    assert!(s(mode(json!("activate_scheduled_relative"), Value::Null)).contains("needs a time"));
    assert!(
        s(mode(json!("activate_scheduled_absolute"), json!("1.5"))).contains("SECONDS:NANOSECONDS")
    );
    assert!(
        s(mode(json!("activate_scheduled_absolute"), json!("999:0"))).contains("one hour at most")
    );
    assert!(
        s(mode(json!("activate_scheduled_relative"), json!("3601:0"))).contains("one hour at most")
    );
    let r = |body| refused(Side::Receiver, body);
    assert!(r(leg(json!({ "multicast_ip": "192.0.2.9" }))).contains("a multicast group"));
    assert!(r(leg(json!({ "interface_ip": "192.0.2.9" }))).contains("an address of this device"));
    assert!(r(json!({ "transport_file": { "data": "v=0" } })).contains("both texts or both null"));
    assert!(
        r(json!({ "transport_file": { "data": "x", "type": "text/plain" } }))
            .contains("application/sdp")
    );
}

const SDP_TEXT: &str = "v=0\r\no=- 1 1 IN IP4 192.0.2.40\r\ns=x\r\nt=0 0\r\nm=video 5010 RTP/AVP 96\r\n\
    c=IN IP4 239.7.7.7/32\r\na=source-filter: incl IN IP4 239.7.7.7 192.0.2.40\r\na=rtpmap:96 raw/90000\r\n\
    a=fmtp:96 sampling=YCbCr-4:2:2; width=1920; height=1080; exactframerate=60000/1001; depth=10; TCS=SDR; \
    colorimetry=BT709; PM=2110GPM; SSN=ST2110-20:2017; TP=2110TPW\r\na=ts-refclk:local\r\na=mediaclk:direct=0\r\n";

#[test]
fn a_transport_file_sets_what_the_request_does_not() {
    let (mut receiver, mut media) = (receiver(), Fake::default());
    let body = json!({
        "transport_file": { "data": SDP_TEXT, "type": "application/sdp" },
        "transport_params": [{ "destination_port": 6000 }],
        "master_enable": true,
        "activation": { "mode": "activate_immediate" },
    });
    assert_eq!(receiver.patch(NOW, &body, &mut media).status, 200);
    let active = get(&mut receiver, "active");
    let params = &active["transport_params"][0];
    assert_eq!(params["multicast_ip"], "239.7.7.7");
    assert_eq!(params["source_ip"], "192.0.2.40");
    // Staged Requests Precedence: the parameter, not the file.
    assert_eq!(params["destination_port"], 6000);
    assert_eq!(active["transport_file"]["type"], "application/sdp");
    let wanted = receiver.wanted().unwrap();
    assert_eq!(wanted.description.as_ref().unwrap().path.port, 5010);

    let narrow = SDP_TEXT.replace("width=1920", "width=1280");
    let other = json!({ "transport_file": { "data": narrow, "type": "application/sdp" } });
    let reply = receiver.patch(NOW, &other, &mut media);
    assert_eq!(reply.status, 400);
    assert!(reply.reason().contains("found 1280x1080"), "{}", reply.reason());
    let broken = json!({ "transport_file": { "data": "v=0\r\n", "type": "application/sdp" } });
    let reply = receiver.patch(NOW, &broken, &mut media);
    assert_eq!(reply.status, 500);
    assert!(reply.reason().starts_with("transport_file.data: "), "{}", reply.reason());
}

#[test]
fn resources_are_listed_and_others_are_not_there() {
    let (mut sender, mut media) = (sender(), Fake::default());
    let mut ask = |method: &str, rest: &[&str]| {
        let ask = Ask { method: method.to_owned(), ..Ask::read("/p") };
        sender.answer(NOW, rest, &ask, &mut media).status
    };
    assert_eq!(ask("GET", &[]), 200);
    assert_eq!(ask("GET", &["constraints"]), 200);
    assert_eq!(ask("GET", &["transporttype"]), 200);
    assert_eq!(ask("GET", &["transportfile"]), 404);
    assert_eq!(ask("GET", &["nothing"]), 404);
    assert_eq!(ask("PUT", &["staged"]), 405);
    assert_eq!(ask("PATCH", &["active"]), 405);
    // Without its content type, a body is not JSON.
    assert_eq!(ask("PATCH", &["staged"]), 415);
    let start = json!({ "master_enable": true, "activation": { "mode": "activate_immediate" } });
    sender.patch(NOW, &start, &mut media);
    let file = sender.answer(NOW, &["transportfile"], &Ask::read("/p"), &mut media);
    assert_eq!((file.status, file.content_type), (200, SDP));
    assert!(file.headers.contains(&("cache-control", "no-cache".to_owned())));
}

#[test]
fn a_description_has_the_version_of_its_activation() {
    let (mut sender, mut media) = (sender(), Fake::default());
    let start = json!({ "master_enable": true, "activation": { "mode": "activate_immediate" } });
    sender.patch(NOW, &start, &mut media);
    let version = |sender: &mut Connection| -> Tai {
        let file = sender.answer(NOW, &["transportfile"], &Ask::read("/p"), &mut Fake::default());
        file.body.parse().unwrap()
    };
    let first = version(&mut sender);
    let at = NOW.after(Duration::from_secs(2));
    let moved = json!({
        "transport_params": [{ "destination_port": 5010 }],
        "activation": { "mode": "activate_scheduled_absolute", "requested_time": at.to_string() },
    });
    assert_eq!(sender.patch(NOW, &moved, &mut media).status, 202);
    assert_eq!(version(&mut sender), first, "until then the contents are the same");
    assert!(sender.advance(at.after(Duration::from_secs(1))));
    assert!(version(&mut sender) > first);
}

#[test]
fn two_legs_are_two_paths() {
    let mut sender = Connection::new(Id::named("two"), Side::Sender, own(2), NOW);
    let body = json!({
        "transport_params": [{}, { "rtp_enabled": false, "destination_ip": "239.9.9.9" }],
        "master_enable": true,
        "activation": { "mode": "activate_immediate" },
    });
    assert_eq!(sender.patch(NOW, &body, &mut Fake::default()).status, 200);
    let legs = &sender.wanted().unwrap().legs;
    assert_eq!(legs[0].interface, Ipv4Addr::new(192, 0, 2, 1));
    assert!(legs[0].enabled && !legs[1].enabled);
    assert_eq!(legs[1].destination, Some(Ipv4Addr::new(239, 9, 9, 9)));
    assert_eq!(legs[1].interface, Ipv4Addr::new(192, 0, 2, 2));
}

proptest! {
    /// Any request leaves the state as it was or is carried out, and has a reply of the right form.
    #[test]
    fn no_request_does_harm(key in "(master_enable|activation|transport_params|receiver_id|x)", text in "[ -~]{0,40}") {
        let values = [
            json!(text), json!([text]), json!({ "mode": text }), json!([{ "source_ip": text }]),
            serde_json::from_str(&text).unwrap_or(Value::Null),
        ];
        for value in values {
            let mut sender = sender();
            let before = sender.clone();
            let reply = sender.patch(NOW, &json!({ &*key: value }), &mut Fake::default());
            if reply.status == 400 {
                prop_assert_eq!(&sender, &before);
                prop_assert_eq!(&reply.value()["code"], 400);
            } else {
                prop_assert_eq!(reply.status, 200, "{}", reply.body);
            }
        }
    }
}

#[test]
fn the_second_medium_is_the_second_leg() {
    let own = Own { destinations: Vec::new(), ..own(2) };
    let mut receiver = Connection::new(Id::named("two"), Side::Receiver, own, NOW);
    let stage = |receiver: &mut Connection, text: &str| {
        let body = json!({ "transport_file": { "data": text, "type": "application/sdp" } });
        assert_eq!(receiver.patch(NOW, &body, &mut Fake::default()).status, 200);
        get(receiver, "staged")["transport_params"].clone()
    };
    let (session, medium) = SDP_TEXT.split_at(SDP_TEXT.find("m=").unwrap());
    let other = medium.replace("239.7.7.7", "239.7.7.8").replace("5010", "5012");
    let both = format!("{session}a=group:DUP a b\r\n{medium}a=mid:a\r\n{other}a=mid:b\r\n");
    let legs = stage(&mut receiver, &both);
    assert_eq!(
        (&legs[0]["multicast_ip"], &legs[0]["destination_port"]),
        (&json!("239.7.7.7"), &json!(5010))
    );
    assert_eq!(
        (&legs[1]["multicast_ip"], &legs[1]["destination_port"]),
        (&json!("239.7.7.8"), &json!(5012))
    );
    assert_eq!(legs[1]["rtp_enabled"], true);
    // A stream with one path leaves the second leg unused.
    let legs = stage(&mut receiver, SDP_TEXT);
    assert_eq!((&legs[0]["rtp_enabled"], &legs[1]["rtp_enabled"]), (&json!(true), &json!(false)));
}
