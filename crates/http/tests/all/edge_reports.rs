//! What a cache reports with its answers (CMSD, CTA-5006), next to what the origin does.

use hyper::body::Incoming;
use hyper::{Method, Response};

use crate::edge::{Edge, KEPT, Origin, header, object, rest};

const DYNAMIC: &str = "\"o\";etp=96;rtt=8;rd=9";

fn dynamic(response: &Response<Incoming>) -> Vec<String> {
    let lines = response.headers().get_all("cmsd-dynamic").iter();
    lines.map(|line| line.to_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_cache_adds_what_it_knows_of_its_own_connection() {
    let origin = Origin::start(|_, _| {
        let reported = format!("cmsd-static: n=\"o\",ot=v\r\ncmsd-dynamic: {DYNAMIC}\r\n");
        object(&format!("{KEPT}etag: \"1\"\r\n{reported}"), "body")
    });
    let edge = Edge::start(&origin).await;
    let miss = edge.get("/a").await;
    let (is_of, lines) = (header(&miss, "cmsd-static"), dynamic(&miss));
    assert_eq!((is_of.as_str(), lines[0].as_str()), ("n=\"o\",ot=v", DYNAMIC));
    // When the body would begin was not known.
    assert!(lines[1].starts_with("\"edge\";") && lines[1].contains(";rtt="), "{lines:?}");
    assert!(lines.len() == 2 && !lines[1].contains(";rd="), "{lines:?}");
    rest(miss).await.unwrap();
    let hit = edge.get("/a").await;
    let (is_of, lines) = (header(&hit, "cmsd-static"), dynamic(&hit));
    assert_eq!((is_of.as_str(), lines.len()), ("n=\"o\",ot=v", 1));
    assert!(lines[0].starts_with("\"edge\";") && lines[0].contains(";rtt="), "{lines:?}");
    assert!(lines[0].contains(";rd="), "{lines:?}");
    // These have no body that begins.
    let known = [("if-none-match", "\"1\"")];
    for (method, headers) in [(Method::HEAD, &known[..0]), (Method::GET, &known[..])] {
        let lines = dynamic(&edge.ask(method, "/a", headers).await);
        assert!(lines[0].contains(";rtt=") && !lines[0].contains(";rd="), "{lines:?}");
    }
    edge.stop().await;
}

#[tokio::test]
async fn a_cache_of_an_origin_that_reports_nothing_reports_nothing() {
    let origin = Origin::start(|_, _| object(KEPT, "body"));
    let edge = Edge::start(&origin).await;
    for _ in 0..2 {
        let response = edge.get("/a").await;
        assert_eq!((header(&response, "cmsd-static").as_str(), dynamic(&response).len()), ("", 0));
        rest(response).await.unwrap();
    }
    edge.stop().await;
}
