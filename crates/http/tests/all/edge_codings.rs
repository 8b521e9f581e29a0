//! What a cache does about content codings: each client gets what it can read, and media is fetched once for all.

use std::sync::Arc;
use std::time::Duration;

use hyper::Method;
use tokio::sync::Notify;

use crate::edge::{Edge, KEPT, Origin, Step, header, object, rest};
use crate::edge_validation::unchanged;

fn takes_gzip(head: &str) -> bool {
    head.contains("\r\naccept-encoding: gzip\r\n")
}

/// An origin whose playlist expires at once, and how it answers whether that is still valid.
fn expiring() -> Origin {
    Origin::start(|head, _| {
        let is_coded = takes_gzip(head);
        let (tag, coding, body) = match is_coded {
            true => ("\"1-gzip\"", "content-encoding: gzip\r\n", "coded"),
            false => ("\"1\"", "", "plain"),
        };
        let headers = format!("{KEPT}age: 61\r\nvary: accept-encoding\r\netag: {tag}\r\n");
        match head.contains(&format!("\r\nif-none-match: {tag}\r\n")) {
            true => unchanged(&headers),
            false => object(&format!("{headers}{coding}"), body),
        }
    })
}

/// The origin is asked about the form that the client takes, and what is still valid has its coding.
#[tokio::test]
async fn each_form_is_validated_by_itself() {
    let origin = expiring();
    let edge = Edge::start(&origin).await;
    for round in 0..2 {
        for (codings, tag, body) in [("gzip", "\"1-gzip\"", "coded"), ("br", "\"1\"", "plain")] {
            let coding = if body == "coded" { "gzip" } else { "" };
            let response = edge.ask(Method::GET, "/a.mpd", &[("accept-encoding", codings)]).await;
            assert_eq!(header(&response, "content-encoding"), coding);
            let status = header(&response, "cache-status");
            assert_eq!(status.contains("fwd-status=304"), round == 1, "{status}");
            assert_eq!(rest(response).await.expect("a whole body"), body);
            let known = [("accept-encoding", codings), ("if-none-match", tag)];
            let response = edge.ask(Method::GET, "/a.mpd", &known).await;
            assert_eq!(response.status(), 304, "{codings}");
            assert_eq!(header(&response, "content-encoding"), "");
            assert_eq!(header(&response, "vary"), "accept-encoding");
        }
    }
    edge.stop().await;
}

/// A playlist on its way in one coding is none for those who take another.
#[tokio::test]
async fn requests_for_two_forms_do_not_join() {
    let go_on = Arc::new(Notify::new());
    let gate = go_on.clone();
    let origin = Origin::start(move |head, _| {
        let is_coded = takes_gzip(head);
        let mut steps = Vec::from_iter(is_coded.then(|| Step::Wait(gate.clone())));
        steps.extend(object(KEPT, if is_coded { "coded" } else { "plain" }));
        steps
    });
    let edge = Edge::start(&origin).await;
    let ask = async |codings| {
        let headers = [("accept-encoding", codings)];
        rest(edge.ask(Method::GET, "/v0.m3u8", &headers).await).await.expect("a whole body")
    };
    let plain = async {
        while origin.asked() == 0 {
            tokio::task::yield_now().await;
        }
        let plain = ask("identity").await;
        go_on.notify_one();
        plain
    };
    let both = async { tokio::join!(ask("gzip"), plain) };
    let both = tokio::time::timeout(Duration::from_secs(20), both).await;
    assert_eq!(both.expect("neither waits for the other"), ("coded".into(), "plain".into()));
    edge.stop().await;
}

#[tokio::test]
async fn each_client_gets_a_coding_that_it_takes() {
    let origin = Origin::start(|head, _| match takes_gzip(head) {
        true => {
            object(&format!("{KEPT}vary: Accept-Encoding\r\ncontent-encoding: gzip\r\n"), "coded")
        }
        false => object(&format!("{KEPT}vary: Accept-Encoding\r\n"), "plain"),
    });
    let edge = Edge::start(&origin).await;
    let ask = async |path, codings| {
        let response = edge.ask(Method::GET, path, &[("accept-encoding", codings)]).await;
        let said = ["content-encoding", "vary"].map(|name| header(&response, name));
        let is_hit = header(&response, "cache-status").contains("; hit;");
        (rest(response).await.expect("a whole body"), said, is_hit)
    };
    let answer = |body: &str, coding: &str, is_hit| {
        (body.to_owned(), [coding.to_owned(), "Accept-Encoding".to_owned()], is_hit)
    };
    for is_hit in [false, true] {
        assert_eq!(ask("/v0.m3u8", "gzip, deflate, br").await, answer("coded", "gzip", is_hit));
        assert_eq!(ask("/v0.m3u8", "br").await, answer("plain", "", is_hit));
    }
    assert_eq!(ask("/v0.m3u8", "x-gzip").await, answer("coded", "gzip", true));
    for (codings, is_hit) in [("gzip", false), ("identity", true)] {
        assert_eq!(ask("/v0/1.m4s", codings).await, answer("plain", "", is_hit));
    }
    assert_eq!(origin.asked(), 3);
    edge.stop().await;
}
