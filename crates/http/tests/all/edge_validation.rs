//! A cache asks its origin whether what has expired is still valid (RFC 9111 §4.3), and answers viewers who ask that.

use std::sync::Arc;

use hyper::Method;
use suiro_record::words::{CacheFault, CacheOutcome};
use tokio::sync::Notify;

use crate::edge::{Edge, KEPT, Origin, Step, answers, fault, header, object, records, rest};

/// A response with these is kept, and has expired when it comes: the next request asks about it.
const EXPIRED: &str = "cache-control: max-age=60\r\nage: 90\r\netag: \"1\"\r\n";
/// The same object from then on.
const VALID: &str = "cache-control: max-age=60\r\netag: \"1\"\r\n";

pub fn unchanged(headers: &str) -> Vec<Step> {
    vec![Step::Send(format!("HTTP/1.1 304 Not Modified\r\n{headers}\r\n").into_bytes())]
}

/// The tag that a request asks about; none if it asks for the whole.
fn known(head: &str) -> Option<&str> {
    head.lines().find_map(|line| line.strip_prefix("if-none-match: "))
}

/// An object that has expired, and is unchanged for whoever asks.
fn expired(head: &str) -> Vec<Step> {
    match known(head) {
        Some("\"1\"") => unchanged(&format!("{VALID}x-new: 2\r\n")),
        Some(other) => panic!("{other} was never stored"),
        None => object(&format!("{EXPIRED}content-type: video/mp4\r\nx-old: 1\r\n"), "body"),
    }
}

#[tokio::test]
async fn what_has_expired_is_asked_about_and_is_fresh_again() {
    let origin = Origin::start(|head, _| expired(head));
    let dir = tempfile::tempdir().unwrap();
    let edge = Edge::recorded(&origin, &dir).await;
    edge.text("/a").await;
    let again = edge.get("/a").await;
    let said = header(&again, "cache-status");
    assert_eq!(said, "edge; fwd=stale; fwd-status=304; ttl=59; stored");
    // The headers of both answers; and the origin has validated it for this request (RFC 9111, section 5.1).
    let of = |name| header(&again, name);
    assert_eq!(["x-old", "x-new", "content-type", "age"].map(of), ["1", "2", "video/mp4", ""]);
    assert!(!of("date").is_empty() && of("content-length") == "4");
    assert_eq!(rest(again).await.unwrap(), "body");
    let (text, said) = edge.text("/a").await;
    assert_eq!((text.as_str(), said.as_str()), ("body", "edge; hit; ttl=59"));
    assert_eq!(origin.asked(), 2);
    let counted = edge.stop().await;
    assert_eq!((counted.misses, counted.revalidated, counted.hits), (1, 1, 1));
    assert_eq!((counted.failed, counted.body_bytes), (0, 12));
    let rows = answers(&dir);
    let outcomes: Vec<_> = rows.iter().filter_map(|row| row.cache).collect();
    assert_eq!(outcomes, [CacheOutcome::Miss, CacheOutcome::Revalidated, CacheOutcome::Hit]);
    assert!(rows[0].cache_age_ms >= Some(90_000) && rows[1].cache_age_ms < Some(60_000));
}

#[tokio::test]
async fn viewers_who_wait_for_the_same_question_are_all_served() {
    let go_on = Arc::new(Notify::new());
    let gate = go_on.clone();
    let origin = Origin::start(move |head, _| {
        let mut steps = expired(head);
        if known(head).is_some() {
            steps.insert(0, Step::Wait(gate.clone()));
        }
        steps
    });
    let edge = Edge::start(&origin).await;
    edge.text("/a").await;
    // Whichever comes second follows the first.
    let release = async {
        while origin.asked() < 2 {
            tokio::task::yield_now().await;
        }
        go_on.notify_one();
    };
    let (one, two, ()) = tokio::join!(edge.text("/a"), edge.text("/a"), release);
    assert_eq!([one.0.as_str(), two.0.as_str()], ["body"; 2]);
    assert_eq!(origin.asked(), 2);
    let counted = edge.stop().await;
    assert_eq!((counted.misses, counted.revalidated), (1, 1));
    assert_eq!(counted.joined + counted.hits, 1);
}

/// The origin is asked about what the cache has, whatever a viewer has.
#[tokio::test]
async fn viewers_who_have_it_are_told_that_it_is_unchanged() {
    let origin = Origin::start(|head, _| expired(head));
    let dir = tempfile::tempdir().unwrap();
    let edge = Edge::recorded(&origin, &dir).await;
    edge.text("/a").await;
    let same = [("if-none-match", "\"0\", W/\"1\"")];
    for (method, said) in
        [(Method::GET, "edge; fwd=stale; fwd-status=304"), (Method::HEAD, "edge; hit")]
    {
        let response = edge.ask(method, "/a", &same).await;
        assert_eq!(response.status(), 304);
        assert!(header(&response, "cache-status").starts_with(said), "{said}");
        let of = |name| header(&response, name);
        assert_eq!(["etag", "cache-control"].map(of), ["\"1\"", "max-age=60"]);
        assert_eq!(["content-type", "content-length"].map(of), ["", ""]);
        assert!(!of("date").is_empty());
        assert_eq!(rest(response).await.unwrap(), "");
    }
    let other = edge.ask(Method::GET, "/a", &[("if-none-match", "\"0\"")]).await;
    assert_eq!((other.status().as_u16(), rest(other).await.unwrap().as_str()), (200, "body"));
    assert_eq!(origin.asked(), 2);
    edge.stop().await;
    let rows = answers(&dir);
    let mut unchanged = rows.iter().filter(|row| row.status == 304);
    assert!(unchanged.all(|row| row.body_bytes == 0));
}

#[tokio::test]
async fn what_has_changed_takes_the_place_of_what_was_there() {
    let origin = Origin::start(|head, number| {
        let headers = format!("cache-control: max-age=60\r\nage: 90\r\netag: W/\"{number}\"\r\n");
        object(&headers, &format!("{number} after {}", known(head).unwrap_or("nothing")))
    });
    let edge = Edge::start(&origin).await;
    for expected in ["0 after nothing", "1 after W/\"0\"", "2 after W/\"1\""] {
        let (text, said) = edge.text("/a").await;
        assert_eq!(text, expected);
        assert!(said.contains("fwd-status=200"), "{said}");
    }
    // Another query is another object, such as a playlist that was waited for.
    assert_eq!(edge.text("/a?_HLS_msn=1").await.0, "3 after nothing");
    let counted = edge.stop().await;
    assert_eq!((counted.misses, counted.revalidated), (4, 0));
}

#[tokio::test]
async fn without_a_tag_the_whole_is_asked_for() {
    let origin = Origin::start(|head, _| {
        let text = known(head).unwrap_or("nothing");
        object("cache-control: max-age=60\r\nage: 90\r\n", text)
    });
    let edge = Edge::start(&origin).await;
    for reason in ["miss", "stale"] {
        let (text, said) = edge.text("/a").await;
        assert_eq!(text, "nothing");
        assert!(said.contains(&format!("fwd={reason}; fwd-status=200")), "{said}");
    }
    edge.stop().await;
}

/// RFC 9111 §4.3.4: such a 304 says nothing about what is stored.
#[tokio::test]
async fn a_304_that_nobody_asked_for_is_a_failure_of_the_origin() {
    let origin = Origin::start(|head, _| match (head.split(' ').nth(1).unwrap(), known(head)) {
        ("/unasked", _) => unchanged(VALID),
        ("/other", Some(_)) => unchanged("etag: \"2\"\r\n"),
        ("/bare", Some(_)) => unchanged("cache-control: max-age=60\r\n"),
        _ => object(EXPIRED, "whole"),
    });
    let edge = Edge::start(&origin).await;
    assert_eq!(edge.get("/unasked").await.status(), 502);
    for path in ["/other", "/bare"] {
        assert_eq!(edge.text(path).await.0, "whole");
        assert_eq!(edge.get(path).await.status(), 502, "{path}");
        // The stored object is of no use, so the whole is asked for.
        assert_eq!(edge.text(path).await.0, "whole", "{path}");
    }
    let counted = edge.stop().await;
    assert_eq!((counted.failed, counted.revalidated, counted.misses), (3, 0, 7));
}

/// RFC 9111 §4.3.3: the answer is passed on, and what is stored can be asked about again.
#[tokio::test]
async fn an_origin_that_fails_at_the_question_is_asked_again() {
    let origin = Origin::start(|head, number| match number {
        1 => {
            let head = "HTTP/1.1 503 Busy\r\nretry-after: 1\r\ncontent-length: 4\r\n\r\n";
            vec![Step::Send(head.into()), Step::Send("busy".into())]
        }
        _ => expired(head),
    });
    let edge = Edge::start(&origin).await;
    edge.text("/a").await;
    let busy = edge.get("/a").await;
    assert_eq!((busy.status().as_u16(), header(&busy, "retry-after").as_str()), (503, "1"));
    assert_eq!(rest(busy).await.unwrap(), "busy");
    let (text, said) = edge.text("/a").await;
    assert_eq!(text, "body");
    assert!(said.contains("fwd=stale; fwd-status=304"), "{said}");
    assert_eq!((origin.asked(), edge.stop().await.revalidated), (3, 1));
}

#[tokio::test]
async fn what_may_not_be_kept_any_more_is_served_and_forgotten() {
    let origin = Origin::start(|head, _| match known(head) {
        Some(_) => unchanged("etag: \"1\"\r\ncache-control: no-store\r\n"),
        None => object(EXPIRED, "body"),
    });
    let edge = Edge::start(&origin).await;
    for expected in ["fwd=miss; fwd-status=200", "fwd=stale; fwd-status=304", "fwd=miss"] {
        let (text, said) = edge.text("/a").await;
        assert_eq!(text, "body");
        assert!(said.contains(expected), "{said}");
        assert_eq!(said.contains("stored"), !expected.contains("304"), "{said}");
    }
    edge.stop().await;
}

/// It is served from what the question was about.
#[tokio::test]
async fn an_object_that_made_room_during_the_question_is_served() {
    let go_on = Arc::new(Notify::new());
    let gate = go_on.clone();
    let large = "x".repeat(600_000);
    let origin = Origin::start(move |head, _| match known(head) {
        Some(_) => {
            let mut steps = unchanged(VALID);
            steps.insert(0, Step::Wait(gate.clone()));
            steps
        }
        None => object(EXPIRED, &large),
    });
    let store = suiro_units::Bytes::new(1_000_000);
    let edge = Edge::start_with(&origin, |job| job.store = store).await;
    edge.text("/a").await;
    let meanwhile = async {
        while origin.asked() < 2 {
            tokio::task::yield_now().await;
        }
        edge.text("/b").await;
        go_on.notify_one();
    };
    let (again, ()) = tokio::join!(edge.text("/a"), meanwhile);
    assert_eq!(again.0.len(), 600_000);
    let counted = edge.stop().await;
    // Each of the two took the place of the other.
    assert_eq!((counted.revalidated, counted.evicted, counted.failed), (1, 2, 0));
}

#[tokio::test]
async fn ranges_are_cut_from_what_is_still_valid() {
    let origin = Origin::start(|head, _| expired(head));
    let edge = Edge::start(&origin).await;
    edge.text("/a").await;
    for (range, expected) in [("bytes=1-2", "od"), ("bytes=-1", "y")] {
        let asked = [("range", range), ("if-range", "\"1\"")];
        let response = edge.ask(Method::GET, "/a", &asked).await;
        assert_eq!(response.status(), 206, "{range}");
        assert_eq!(rest(response).await.unwrap(), expected);
    }
    let other = [("range", "bytes=1-2"), ("if-range", "\"0\"")];
    assert_eq!(edge.ask(Method::GET, "/a", &other).await.status(), 200);
    assert_eq!(origin.asked(), 2);
    edge.stop().await;
}

#[tokio::test]
async fn a_stale_cache_asks_nobody() {
    let origin = Origin::start(|head, _| expired(head));
    let edge = Edge::faulty(&origin, fault(CacheFault::Stale)).await;
    edge.text("/a").await;
    let (text, said) = edge.text("/a").await;
    assert!(text == "body" && said.starts_with("edge; hit; ttl=-"), "{said}");
    assert_eq!(origin.asked(), 1);
    edge.stop().await;
}

/// RFC 9110 §6.6.1: of an answer without a date, that of its arrival is kept, and `Expires` counts from it.
#[tokio::test]
async fn what_has_no_date_is_given_one_when_it_comes() {
    let origin = Origin::start(|head, _| match head.split(' ').nth(1).unwrap() {
        "/expires" => object("expires: Fri, 31 Dec 2399 23:59:59 GMT\r\n", "x"),
        _ => object(KEPT, "x"),
    });
    let edge = Edge::start(&origin).await;
    for path in ["/kept", "/expires"] {
        let first = edge.get(path).await;
        let again = edge.get(path).await;
        assert!(header(&again, "cache-status").starts_with("edge; hit"), "{path}");
        assert!(!header(&first, "date").is_empty());
        assert_eq!(header(&first, "date"), header(&again, "date"), "{path}");
    }
    edge.stop().await;
}

/// Column `cache_fault` has what the cache did wrong, and not what it could not do wrong.
#[tokio::test]
async fn a_fault_that_changes_nothing_is_not_recorded() {
    for (kind, path, expected) in [
        (CacheFault::Reset, "/a", [true, false, false]),
        (CacheFault::Age, "/a", [true, true, true]),
        (CacheFault::Age, "/hangup", [false, false, false]),
    ] {
        let origin = Origin::start(|head, _| match head.split(' ').nth(1).unwrap() {
            "/hangup" => vec![Step::Close],
            _ => object(VALID, "body"),
        });
        let dir = tempfile::tempdir().unwrap();
        let change = |job: &mut suiro_http::edge::EdgeJob| {
            (job.records, job.fault) = (Some(records(&dir)), Some(fault(kind)));
        };
        let edge = Edge::start_with(&origin, change).await;
        let whole = rest(edge.get(path).await).await;
        assert_eq!(whole.is_err(), kind == CacheFault::Reset);
        edge.ask(Method::GET, path, &[("if-none-match", "\"1\"")]).await;
        edge.ask(Method::HEAD, path, &[]).await;
        edge.stop().await;
        let rows = answers(&dir);
        let met: Vec<_> = rows.iter().map(|row| row.cache_fault.is_some()).collect();
        assert_eq!(met, expected, "{kind} {path}");
    }
}
