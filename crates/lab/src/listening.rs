//! Whether something listens in a host. Read from the kernel's tables, so no packet is sent.

use std::fs;

/// `TCP_LISTEN` and, for UDP, an unconnected socket (`TCP_CLOSE`), as written in /proc/net.
const LISTENS: [(&str, &str); 4] = [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")];

/// Whether a TCP socket in the network namespace of process `pid` listens on `port`.
pub fn at_port(pid: i32, port: u16) -> bool {
    ports(pid, &LISTENS[..2]).contains(&port)
}

/// Whether any TCP socket there listens, or any UDP socket is open and unconnected.
pub fn at_all(pid: i32) -> bool {
    !ports(pid, &LISTENS).is_empty()
}

fn ports(pid: i32, tables: &[(&str, &str)]) -> Vec<u16> {
    let mut found = Vec::new();
    for (table, state) in tables {
        // A table that does not exist (no IPv6) has no sockets.
        let text = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        found.extend(text.lines().filter_map(|line| port_of(line, state)));
    }
    found
}

/// The local port of a line in that state: `sl local_address rem_address st …`, all hexadecimal.
fn port_of(line: &str, state: &str) -> Option<u16> {
    let mut words = line.split_whitespace().skip(1);
    let (local, _remote, found) = (words.next()?, words.next()?, words.next()?);
    let (_, port) = local.rsplit_once(':')?;
    (found == state).then(|| u16::from_str_radix(port, 16).ok())?
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};

    use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};

    use super::*;

    #[test]
    fn lines_of_the_kernel() {
        let listening = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000";
        assert_eq!(port_of(listening, "0A"), Some(8080));
        assert_eq!(port_of(listening, "07"), None);
        let header = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt";
        assert_eq!(port_of(header, "0A"), None);
        assert_eq!(port_of("", "0A"), None);
    }

    /// A socket on all addresses of both families, so that no other process can listen on its port. The test does not
    /// close it to see it disappear, because a child that another test starts meanwhile may keep it open for a while.
    #[test]
    fn a_listening_socket_is_seen_and_one_that_is_only_bound_is_not() {
        let socket = socket(AddressFamily::INET6, SocketType::STREAM, None).unwrap();
        bind(&socket, &SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, 0, 0, 0)).unwrap();
        let port = SocketAddr::try_from(getsockname(&socket).unwrap()).unwrap().port();
        let own = std::process::id().cast_signed();
        assert!(!at_port(own, port));
        listen(&socket, 1).unwrap();
        assert!(at_port(own, port) && at_all(own));
    }
}
