use serde_json::json;

use super::query::Steps;
use super::subscriptions::News;
use super::*;
use crate::nmos::Ask;
use crate::nmos::door::Door;

const NOW: Moment =
    Moment { tai: Tai::from_nanos(1_000_000_000_000), monotonic: Time::from_secs(50) };
const BASE: &str = "/x-nmos/registration/v1.3";

/// Some seconds later on both clocks.
fn later(seconds: u64) -> Moment {
    let span = Duration::from_secs(seconds);
    Moment { tai: NOW.tai.after(span), monotonic: NOW.monotonic + span }
}

fn core(name: &str) -> Value {
    json!({ "id": Id::named(name).as_str(), "version": "1:0", "label": name, "description": "", "tags": {} })
}

fn with(mut core: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("{more} is no object") };
    core.as_object_mut().unwrap().extend(more);
    core
}

fn node(name: &str) -> Value {
    let own = json!({ "href": "http://192.0.2.1/", "api": {}, "caps": {}, "services": [], "clocks": [], "interfaces": [] });
    with(core(name), own)
}

fn device(name: &str, node: &str) -> Value {
    let node = Id::named(node);
    let own = json!({ "type": "urn:x-nmos:device:generic", "node_id": node.as_str(), "senders": [], "receivers": [], "controls": [] });
    with(core(name), own)
}

fn sender(name: &str, device: &str) -> Value {
    let own = json!({ "flow_id": null, "transport": "urn:x-nmos:transport:rtp", "device_id": Id::named(device).as_str(),
        "manifest_href": null, "interface_bindings": ["eth0"], "subscription": { "receiver_id": null, "active": true } });
    with(core(name), own)
}

fn post(registry: &mut Registry, now: Moment, kind: &str, data: &Value) -> crate::nmos::Reply {
    let ask =
        Ask::json("POST", &format!("{BASE}/resource"), &json!({ "type": kind, "data": data }));
    registry.answer(now, &ask, &Door::open())
}

fn full() -> Registry {
    let mut registry = Registry::default();
    for (kind, data) in
        [("node", node("n")), ("device", device("d", "n")), ("sender", sender("s", "d"))]
    {
        let reply = post(&mut registry, NOW, kind, &data);
        assert_eq!(reply.status, 201, "{}", reply.body);
        let (_, place) = reply.headers.iter().find(|(name, _)| *name == "location").unwrap();
        assert!(place.contains(data["id"].as_str().unwrap()));
    }
    registry
}

/// The second one is refused as long as the first one lives.
#[test]
fn two_nodes_of_one_name_are_told_apart_by_where_they_are() {
    let mut registry = Registry::default();
    let at = |href: &str| {
        let services = json!([{ "type": SERVICE, "href": href }]);
        with(node("n"), json!({ "href": href, "services": services }))
    };
    let other = at("http://192.0.2.2/");
    assert_eq!(post(&mut registry, NOW, "node", &at("http://192.0.2.1/")).status, 201);
    let refused = post(&mut registry, NOW, "node", &other);
    assert_eq!(refused.status, 409);
    let reason = refused.reason();
    assert!(reason.contains("192.0.2.1") && reason.contains("192.0.2.2"), "{reason}");
    assert_eq!(registry.of(Kind::Node).next().unwrap()["href"], "http://192.0.2.1/");
    assert_eq!(post(&mut registry, later(13), "node", &other).status, 201);
}

/// Its identifier is its own, whatever its name and place.
#[test]
fn a_node_of_others_may_move() {
    let mut registry = full();
    let beat = format!("{BASE}/health/nodes/{}", Id::named("n"));
    let beat = Ask { method: "POST".to_owned(), ..Ask::read(&beat) };
    assert_eq!(registry.answer(NOW, &beat, &Door::open()).status, 200);
    let moved = with(node("n"), json!({ "href": "http://192.0.2.2/", "version": "2:0" }));
    assert_eq!(post(&mut registry, NOW, "node", &moved).status, 200);
    assert_eq!(registry.of(Kind::Node).next().unwrap()["href"], "http://192.0.2.2/");
    assert_eq!(registry.of(Kind::Sender).count(), 1, "what it has stays");
}

#[test]
fn a_clock_that_is_set_removes_no_node_and_keeps_none() {
    let mut registry = full();
    let beat = format!("{BASE}/health/nodes/{}", Id::named("n"));
    let mut ask = |method: &str, now: Moment| {
        let ask = Ask { method: method.to_owned(), ..Ask::read(&beat) };
        let reply = registry.answer(now, &ask, &Door::open());
        (reply.status, reply.value()["health"].clone())
    };
    // The kernel learns the leap seconds.
    let set = |seconds| Moment {
        tai: later(seconds).tai.after(Duration::from_secs(37)),
        ..later(seconds)
    };
    assert_eq!(ask("GET", set(1)), (200, json!("1000")));
    assert_eq!(ask("POST", set(2)), (200, json!("1039")));
    // It is set back; the node has been silent all the same.
    assert_eq!(ask("GET", Moment { tai: NOW.tai, ..later(15) }).0, 404);
}

#[test]
fn nodes_that_a_stalled_registry_could_not_hear_stay() {
    let mut registry = full();
    registry.stalled(Duration::from_secs(60), later(60).monotonic);
    assert_eq!(registry.collect(later(61).monotonic), []);
    assert_eq!(registry.collect(later(73).monotonic), [Id::named("n")]);
}

#[test]
fn a_node_lives_by_its_heartbeats() {
    let mut registry = full();
    assert_eq!(post(&mut registry, NOW, "node", &node("n")).status, 200);
    let beat = format!("{BASE}/health/nodes/{}", Id::named("n"));
    let mut ask = |at: Moment, method: &str, path: &str| {
        let ask = Ask { method: method.to_owned(), ..Ask::read(path) };
        registry.answer(at, &ask, &Door::open())
    };
    let reply = ask(later(10), "POST", &beat);
    assert_eq!((reply.status, reply.value()), (200, json!({ "health": "1010" })));
    assert_eq!(ask(later(22), "GET", &beat).value(), json!({ "health": "1010" }));
    // 12 s without one: it is gone with all that it had.
    assert_eq!(ask(later(23), "POST", &beat).status, 404);
    assert_eq!(ask(later(23), "GET", "/x-nmos/query/v1.3/senders").value(), json!([]));
}

#[test]
fn nothing_is_registered_without_what_it_belongs_to() {
    let mut registry = Registry::default();
    let reply = post(&mut registry, NOW, "device", &device("d", "n"));
    assert_eq!(reply.status, 400);
    assert!(reply.reason().starts_with("node_id: the node "), "{}", reply.reason());
    let mut registry = full();
    assert!(registry.remove(Kind::Device, &Id::named("d")));
    assert_eq!((registry.of(Kind::Sender).count(), registry.of(Kind::Node).count()), (0, 1));
    post(&mut registry, NOW, "node", &node("other"));
    post(&mut registry, NOW, "device", &device("d", "n"));
    let reply = post(&mut registry, NOW, "device", &device("d", "other"));
    assert!(reply.reason().contains("it belongs to the node"), "{}", reply.reason());
}

#[test]
fn what_is_no_resource_is_refused_with_its_place() {
    let mut registry = Registry::default();
    let mut refused = |kind: &str, data: Value| {
        let reply = post(&mut registry, NOW, kind, &data);
        assert_eq!(reply.status, 400, "{data}");
        reply.reason()
    };
    assert!(refused("cat", json!({})).starts_with("type: expected one of node, device"));
    assert_eq!(refused("node", json!(7)), "data: expected an object, found 7");
    assert_eq!(refused("node", core("n")), "href: expected a URL, found none");
    assert!(
        refused("node", with(node("n"), json!({ "id": "1" }))).starts_with("id: expected a UUID")
    );
    assert!(
        refused("node", with(node("n"), json!({ "version": "1" })))
            .starts_with("version: expected")
    );
    assert!(
        refused("node", with(node("n"), json!({ "tags": { "a": 1 } }))).contains("arrays of texts")
    );
    assert!(
        refused("node", with(node("n"), json!({ "label": "x".repeat(70_000) })))
            .contains("65536 bytes")
    );
}

#[test]
fn a_query_finds_by_attributes() {
    let mut registry = full();
    let mut ask = |query: &str| {
        let ask = Ask { query: Some(query.to_owned()), ..Ask::read("/x-nmos/query/v1.3/senders/") };
        let reply = registry.answer(NOW, &ask, &Door::open());
        (reply.status, reply.value().as_array().map(Vec::len))
    };
    assert_eq!(ask(""), (200, Some(1)));
    assert_eq!(ask("label=s&subscription.active=true"), (200, Some(1)));
    assert_eq!(ask("interface_bindings=eth0"), (200, Some(1)));
    assert_eq!(ask("label=t"), (200, Some(0)));
    assert_eq!(ask("paging.limit=1"), (200, Some(1)));
    assert_eq!(ask("paging.limit=0"), (200, Some(0)));
    assert_eq!(ask("query.rql=and(eq(label,s),eq(subscription.active,true))"), (200, Some(1)));
    assert_eq!(ask("query.downgrade=v1.0").0, 501);
}

/// A registry with as many senders as fit, with long labels.
fn crowded() -> Registry {
    let mut registry = full();
    let value = Arc::new(with(sender("s", "d"), json!({ "label": "a".repeat(4000) })));
    for n in registry.resources.len()..RESOURCES_MAX {
        let (created, updated, bytes) = (NOW.tai, NOW.tai, 4300);
        let (node, value) = (Id::named("n"), Arc::clone(&value));
        let entry = Entry { node, device: None, value, created, updated, bytes };
        registry.resources.insert((Kind::Sender, Id::named(&n.to_string())), entry);
    }
    registry
}

#[test]
fn a_query_that_takes_too_long_is_refused() {
    let mut registry = crowded();
    let mut ask = |query: &str| {
        let query = Some(format!("paging.limit=1&query.rql={query}"));
        let ask = Ask { query, ..Ask::read("/x-nmos/query/v1.3/senders") };
        registry.answer(NOW, &ask, &Door::open())
    };
    assert_eq!(ask("eq(label,a)").status, 200);
    let pattern = ["matches(label,%5Ba-c%5D*d)"; 8].join(",");
    let refused = ask(&format!("or({pattern})"));
    assert_eq!(refused.status, 400, "{}", refused.body);
    assert!(refused.reason().starts_with("the query takes too long"), "{}", refused.reason());
    // No pattern, but many values.
    let values = format!("in(id,({}))", ["a"; 2000].join(","));
    let refused = ask(&values);
    assert_eq!(refused.status, 400, "{}", refused.body);
    let refused = subscribe(&mut registry, &json!({ "query.rql": values }), false);
    assert_eq!(refused.status, 400, "{}", refused.body);
}

#[test]
fn a_filter_that_takes_too_long_for_changes_is_given_up() {
    let mut registry = full();
    let pattern = "matches(label,%5Ba-c%5D*d)";
    let made = subscribe(&mut registry, &json!({ "query.rql": pattern }), false);
    assert_eq!(made.status, 201, "{}", made.body);
    let path = made.value()["ws_href"].as_str().unwrap().replace("ws://r.example:80", "");
    let (_, own) = registry.subscription_at(&path).unwrap();
    let value = Some(Arc::new(json!({ "label": "a".repeat(4000) })));
    let change = |kind| Change { kind, pre: None, post: value.clone() };
    let mut steps = Steps::of_changes();
    for _ in 0..1000 {
        assert_eq!(own.entry(&change(Kind::Node), &mut steps), None);
    }
    assert!(!steps.is_over(), "resources of other kinds are not looked at");
    for _ in 0..1000 {
        assert_eq!(own.entry(&change(Kind::Sender), &mut steps), None);
    }
    assert!(steps.is_over());
}

#[test]
fn the_token_is_asked_for_everywhere() {
    let door = Door::with("0123456789abcdefghijkl").unwrap();
    for path in ["/x-nmos", "/x-nmos/query/v1.3/nodes", "/elsewhere"] {
        assert_eq!(full().answer(NOW, &Ask::read(path), &door).status, 401);
    }
}

#[test]
fn a_registry_is_bounded() {
    let mut registry = full();
    let value = registry.get(Kind::Sender, &Id::named("s")).unwrap().clone();
    let own = Id::named("n");
    for n in registry.resources.len()..RESOURCES_MAX {
        let entry = Entry {
            node: own.clone(),
            device: None,
            value: Arc::new(value.clone()),
            created: NOW.tai,
            updated: NOW.tai,
            bytes: 1,
        };
        registry.resources.insert((Kind::Sender, Id::named(&n.to_string())), entry);
    }
    let reply = post(&mut registry, NOW, "device", &device("one more", "n"));
    assert!(reply.reason().contains("8192 resources already"), "{}", reply.reason());
    assert_eq!(post(&mut registry, NOW, "node", &node("n")).status, 200);
    let mut registry = full();
    let large = registry.resources.get_mut(&(Kind::Sender, Id::named("s"))).unwrap();
    large.bytes = BYTES_MAX;
    let reply = post(&mut registry, NOW, "device", &device("one more", "n"));
    assert!(reply.reason().contains("of 33554432 bytes already"), "{}", reply.reason());
}

fn subscribe(registry: &mut Registry, params: &Value, persist: bool) -> crate::nmos::Reply {
    let body = json!({ "max_update_rate_ms": 100, "resource_path": "/senders", "params": params,
        "persist": persist, "secure": false });
    let ask = Ask::json("POST", "/x-nmos/query/v1.3/subscriptions", &body);
    registry.answer(NOW, &Ask { host: Some("r.example:80".to_owned()), ..ask }, &Door::open())
}

#[test]
fn a_subscription_hears_of_what_fits_it() {
    let mut registry = full();
    registry.take_changes();
    let made = subscribe(&mut registry, &json!({ "description": "x" }), false);
    assert_eq!(made.status, 201, "{}", made.body);
    let href = made.value()["ws_href"].as_str().unwrap().to_owned();
    let path = href.strip_prefix("ws://r.example:80").unwrap();
    let (id, own) = registry.subscription_at(path).unwrap();
    let own = own.clone();
    assert_eq!(own.sync(&registry), Some(Vec::new()), "the sender has another description");
    let mut told = |change: &dyn Fn(&mut Registry)| {
        change(&mut registry);
        let changes = registry.take_changes();
        let mut steps = Steps::of_changes();
        let entries = changes.iter().filter_map(|change| own.entry(change, &mut steps));
        entries.map(|entry| (entry.pre.is_some(), entry.post.is_some())).collect::<Vec<_>>()
    };
    let described = |text: &str| with(sender("s", "d"), json!({ "description": text }));
    let post = |data: Value| {
        move |registry: &mut Registry| {
            assert_eq!(post(registry, NOW, "sender", &data).status, 200);
        }
    };
    assert_eq!(
        told(&post(described("x"))),
        [(false, true)],
        "it fits now: to the client it is new"
    );
    assert_eq!(told(&post(described("x"))), [(true, true)]);
    assert_eq!(told(&post(described("y"))), [(true, false)], "it does not fit any more");
    assert_eq!(told(&post(described("x"))), [(false, true)]);
    let node = Id::named("n");
    let removed = told(&move |registry: &mut Registry| assert!(registry.remove(Kind::Node, &node)));
    assert_eq!(removed, [(true, false)], "with its node");
    let (head, tail) = own.message(&id, NOW.tai);
    let own = Arc::new(json!({ "id": "p", "label": "[]" }));
    let news = News { pre: None, post: Some(Arc::clone(&own)) };
    let message = format!("{head}{},{}{tail}", news.text(), news.text());
    let message: Value = serde_json::from_str(&message).unwrap();
    assert_eq!(message["grain"]["topic"], "/senders/");
    let entry = json!({ "path": "p", "post": *own });
    assert_eq!(message["grain"]["data"], json!([entry, entry]));
}

#[test]
fn a_subscription_ends_with_its_last_connection_unless_it_persists() {
    let mut registry = full();
    let id = |reply: crate::nmos::Reply| -> Id {
        reply.value()["id"].as_str().unwrap().parse().unwrap()
    };
    let (own, kept) = (
        id(subscribe(&mut registry, &json!({}), false)),
        id(subscribe(&mut registry, &json!({}), true)),
    );
    assert_eq!(subscribe(&mut registry, &json!({}), true).status, 200, "it is there already");
    let mut ask = |at: Moment, method: &str, id: &Id| {
        let path = format!("/x-nmos/query/v1.3/subscriptions/{id}");
        let ask = Ask { method: method.to_owned(), ..Ask::read(&path) };
        registry.answer(at, &ask, &Door::open()).status
    };
    assert_eq!((ask(NOW, "GET", &own), ask(NOW, "DELETE", &own)), (200, 403));
    let then = later(61);
    assert_eq!((ask(then, "GET", &own), ask(then, "GET", &kept)), (404, 200), "nobody connected");
    assert_eq!((ask(then, "DELETE", &kept), ask(then, "GET", &kept)), (204, 404));
    let own = id(subscribe(&mut registry, &json!({}), false));
    registry.subscriptions.opened(&own);
    registry.subscriptions.collect(later(3600).monotonic);
    assert!(registry.subscriptions.get(&own).is_some());
    registry.subscriptions.closed(&own, NOW.monotonic);
    assert!(registry.subscriptions.get(&own).is_none());
}

#[test]
fn a_web_socket_begins_with_its_key() {
    let mut registry = full();
    let made = subscribe(&mut registry, &json!({}), false).value();
    let path = format!("/x-nmos/query/v1.3/subscriptions/{}/ws", made["id"].as_str().unwrap());
    let mut ask = |key: Option<&str>| {
        let ask = Ask { upgrade: key.map(str::to_owned), ..Ask::read(&path) };
        registry.answer(NOW, &ask, &Door::open())
    };
    assert_eq!(ask(None).status, 426);
    assert_eq!(ask(Some("x")).status, 400);
    let reply = ask(Some("dGhlIHNhbXBsZSBub25jZQ=="));
    assert_eq!(reply.status, 101);
    assert!(
        reply
            .headers
            .contains(&("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=".to_owned()))
    );
}
