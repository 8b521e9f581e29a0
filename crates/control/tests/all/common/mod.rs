//! A node for tests, and schemas to check its answers with.

pub mod schema;

use std::net::Ipv4Addr;

use suiro_control::nmos::connection::{Media, Own, Wanted};
use suiro_control::nmos::door::Door;
use suiro_control::nmos::node::{Node, Streams};
use suiro_control::nmos::resources::{About, Interface, Outgoing};
use suiro_control::nmos::{Id, Tai};
use suiro_uncompressed::Geometry;
use suiro_uncompressed::sdp::Description;

/// The time of tests.
pub const NOW: Tai = Tai::from_nanos(1_439_299_836_000_000_010);

/// Streams that carry out every command at once.
pub struct Obedient;

impl Media for Obedient {
    fn activate(&mut self, _: &Id, _: &Wanted, now: Tai, at: Option<Tai>) -> Result<Tai, String> {
        Ok(at.unwrap_or(now))
    }

    fn cancel(&mut self, _: &Id, _: Option<&Wanted>) -> Result<(), String> {
        Ok(())
    }

    fn fits(&self, _: &Id, _: &Description) -> Result<(), String> {
        Ok(())
    }

    fn description(&self, _: &Id, _: &Wanted, _: Tai) -> Option<String> {
        Some("v=0\r\n".to_owned())
    }
}

/// A node that can send two streams and receive one, over two paths.
pub fn node() -> Node {
    let interfaces = vec![
        Interface { name: "eth0".to_owned(), mac: [2, 0, 0, 0, 0, 1] },
        Interface { name: "eth1".to_owned(), mac: [2, 0, 0, 0, 0, 2] },
    ];
    let about = About {
        name: "n1".to_owned(),
        address: Ipv4Addr::new(192, 0, 2, 1).into(),
        port: 8080,
        tls: false,
        authorization: false,
        interfaces,
        tags: vec![("urn:x-suiro:tag:site".to_owned(), "east".to_owned())],
        since: NOW,
    };
    let own = Own {
        interfaces: vec![Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(198, 51, 100, 1)],
        destinations: vec!["239.1.0.1:5004".parse().unwrap(), "239.2.0.1:5004".parse().unwrap()],
    };
    let outgoing = |stream| (Outgoing { stream, geometry: Geometry::HD }, own.clone());
    let streams = Streams {
        outgoing: vec![outgoing(0), outgoing(1)],
        incoming: vec![(0, Own { destinations: Vec::new(), ..own.clone() })],
    };
    Node::new(about, Door::open(), &streams)
}
