//! What web clients refer to, and what cannot be.

use suiro_units::{Bytes, Duration};

use super::{Check, Placed};
use crate::endpoint::{EndpointSpec, WebClients, WebServer};
use crate::error::Issue;

const USERS: std::ops::RangeInclusive<u16> = 1..=1000;
const OBJECTS: std::ops::RangeInclusive<u16> = 1..=1000;
const CONNECTIONS: std::ops::RangeInclusive<u16> = 1..=100;
const THINK: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(3600);
const SHAPE: std::ops::RangeInclusive<f64> = 0.5..=10.0;
const SIZE_MIN: Bytes = Bytes::new(100);

impl Check<'_, '_> {
    pub(super) fn web_clients(
        &self,
        placed: &Placed,
        clients: &WebClients,
        issues: &mut Vec<Issue>,
    ) {
        self.web_server(placed, clients, issues);
        let mut tell = |fits: bool, key: &str, found: String, expected: &str| {
            if !fits {
                issues.push(self.issue(placed, key, found).expected(expected));
            }
        };
        let WebClients { users, think, objects, connections, size, largest, shape, .. } = clients;
        tell(USERS.contains(users), "users", format!("{users} users"), "1 to 1000");
        tell(THINK.contains(think), "think", format!("a think time of {think}"), "1 ms to 1 h");
        tell(OBJECTS.contains(objects), "objects", format!("{objects} objects"), "1 to 1000");
        let found = format!("{connections} connections");
        tell(CONNECTIONS.contains(connections), "connections", found, "1 to 100");
        let found = format!("a shape of {shape}");
        tell(SHAPE.contains(shape), "shape", found, "0.5 to 10, such as 1.2");
        let found = format!("a largest object of {largest}");
        tell(*largest <= WebServer::OBJECT_MAX, "largest", found, "at most 1 GB");
        let found = format!("objects of {size} in the mean, {largest} at most");
        let fits = SIZE_MIN <= *size && size < largest;
        tell(fits, "size", found, "100 B or more, and less than `largest`");
    }

    fn web_server(&self, placed: &Placed, clients: &WebClients, issues: &mut Vec<Issue>) {
        let servers = self.endpoints.iter().filter_map(|other| match &other.endpoint.spec {
            EndpointSpec::WebServer(_) => Some(other.endpoint.name.as_str()),
            _ => None,
        });
        let servers: Vec<&str> = servers.collect();
        let known = servers.contains(&clients.server.as_str());
        if !known && !self.unread.contains(&clients.server) {
            let message = format!("no web-server is named `{}`", clients.server);
            issues.push(self.issue(placed, "server", message).instead(&clients.server, servers));
        }
    }
}
