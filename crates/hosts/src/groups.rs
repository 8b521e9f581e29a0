//! What the kernel of a multicast router forwards: /proc/net/ip_mr_cache, a line for each source of a group, and
//! /proc/net/ip_mr_vif, a line for each interface (net/ipv4/ipmr.c).

use std::net::Ipv4Addr;

use crate::{Host, HostsError};

/// Most lines of either file that are read; others are counted.
const LINES_MAX: usize = 4096;
/// Interfaces that the kernel forwards between, at most (MAXVIFS of linux/mroute.h).
const INTERFACES_MAX: u16 = 32;

/// What a router forwards, and how much it has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Groups {
    /// Its interfaces.
    pub interfaces: Vec<Interface>,
    /// The sources of groups that it has heard of.
    pub routes: Vec<Route>,
    /// Lines that were left out: more than 4096, or of a format that is not known.
    pub unread: usize,
}

/// An interface of a multicast router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its number in routes.
    pub number: u16,
    /// Its name; `pimreg` is the way through which a router registers sources with the rendezvous point.
    pub name: String,
    /// Bytes of IP packets that came in and had a route.
    pub bytes_in: u64,
    /// Their number.
    pub packets_in: u64,
    /// Bytes of IP packets that went out.
    pub bytes_out: u64,
    /// Their number.
    pub packets_out: u64,
}

/// A source of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The group.
    pub group: Ipv4Addr,
    /// The source.
    pub source: Ipv4Addr,
    /// The number of the interface that its packets come in by; `None` while that is not known.
    pub input: Option<u16>,
    /// The numbers of the interfaces to which the kernel forwards these packets.
    pub outputs: Vec<u16>,
    /// Packets that came in, also if they go nowhere.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that came in by another interface and were dropped.
    pub wrong: u64,
}

impl Groups {
    /// Reads them in the namespace of the calling thread. A kernel without a multicast router has none.
    ///
    /// # Errors
    /// If the files cannot be read.
    pub fn read() -> Result<Self, HostsError> {
        let text = |name: &str| {
            let path = format!("/proc/thread-self/net/{name}");
            match std::fs::read(&path) {
                Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
                Err(error) => Err(HostsError::os(format!("reading {path}"))(error)),
            }
        };
        Ok(Self::parse(&text("ip_mr_vif")?, &text("ip_mr_cache")?))
    }

    /// From the texts of the two files. Lines that are not understood are counted.
    pub fn parse(interfaces: &str, routes: &str) -> Self {
        let mut unread = 0;
        let interfaces = lines(interfaces, &mut unread, interface);
        let routes = lines(routes, &mut unread, route);
        Self { interfaces, routes, unread }
    }
}

impl Host {
    /// What this host forwards as a multicast router.
    ///
    /// # Errors
    /// As [`Groups::read`].
    pub fn groups(&self) -> Result<Groups, HostsError> {
        self.enter(Groups::read)?
    }
}

/// What each line after the first, the heading, says.
fn lines<T>(text: &str, unread: &mut usize, line: impl Fn(&str) -> Option<T>) -> Vec<T> {
    let all = text.lines().skip(1).filter(|line| !line.trim().is_empty());
    *unread += all.clone().count().saturating_sub(LINES_MAX);
    let read: Vec<_> = all.take(LINES_MAX).map(line).collect();
    *unread += read.iter().filter(|line| line.is_none()).count();
    read.into_iter().flatten().collect()
}

/// `NUMBER NAME BYTES_IN PACKETS_IN BYTES_OUT PACKETS_OUT FLAGS LOCAL REMOTE`.
fn interface(line: &str) -> Option<Interface> {
    let words: Vec<_> = line.split_whitespace().collect();
    let [number, name, bytes_in, packets_in, bytes_out, packets_out, ..] = words[..] else {
        return None;
    };
    Some(Interface {
        number: known(number)?,
        name: name.to_owned(),
        bytes_in: bytes_in.parse().ok()?,
        packets_in: packets_in.parse().ok()?,
        bytes_out: bytes_out.parse().ok()?,
        packets_out: packets_out.parse().ok()?,
    })
}

/// `GROUP SOURCE INPUT PACKETS BYTES WRONG [OUTPUT:TTL…]`, addresses in hexadecimal as they are in memory.
fn route(line: &str) -> Option<Route> {
    let words: Vec<_> = line.split_whitespace().collect();
    let [group, source, input, packets, bytes, wrong, outputs @ ..] = &words[..] else {
        return None;
    };
    let output = |word: &&str| known(word.split_once(':')?.0);
    Some(Route {
        group: address(group)?,
        source: address(source)?,
        // -1 until it is known.
        input: if *input == "-1" { None } else { Some(known(input)?) },
        packets: packets.parse().ok()?,
        bytes: bytes.parse().ok()?,
        wrong: wrong.parse().ok()?,
        outputs: outputs.iter().map(output).collect::<Option<_>>()?,
    })
}

fn known(number: &str) -> Option<u16> {
    number.parse().ok().filter(|number| *number < INTERFACES_MAX)
}

fn address(word: &str) -> Option<Ipv4Addr> {
    let digits = word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u32::from_str_radix(word, 16).ok().filter(|_| digits)?;
    Some(number.to_ne_bytes().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From a router of Linux 6.18 with FRR 8.4.4.
    const INTERFACES: &str = "\
Interface      BytesIn  PktsIn  BytesOut PktsOut Flags Local    Remote
 0 pimreg            0       0     24096       3 00004 00000000 00000000
 1 eth0       72335085    9006         0       0 00008 00000005 00000000
 3 eth2              0       0  60545216    7538 00008 0000000A 00000000
";
    const ROUTES: &str = "\
Group    Origin   Iif     Pkts    Bytes    Wrong Oifs
010101EF 0100000A 1       9007 72343114        1  3:1    0:1  
020101EF 0200000A -1         0        0        0
";

    #[test]
    fn a_routers_files_are_read() {
        let groups = Groups::parse(INTERFACES, ROUTES);
        assert_eq!(groups.unread, 0);
        let names: Vec<_> = groups.interfaces.iter().map(|it| (it.number, &*it.name)).collect();
        assert_eq!(names, [(0, "pimreg"), (1, "eth0"), (3, "eth2")]);
        let last = &groups.interfaces[2];
        assert_eq!((last.packets_in, last.packets_out, last.bytes_out), (0, 7538, 60_545_216));
        let [one, unknown] = &groups.routes[..] else { panic!("{groups:?}") };
        if cfg!(target_endian = "little") {
            assert_eq!(one.group, Ipv4Addr::new(239, 1, 1, 1));
            assert_eq!(one.source, Ipv4Addr::new(10, 0, 0, 1));
        }
        assert_eq!((one.input, &one.outputs[..]), (Some(1), &[3, 0][..]));
        assert_eq!((one.packets, one.bytes, one.wrong), (9007, 72_343_114, 1));
        assert_eq!((unknown.input, unknown.outputs.len()), (None, 0));
    }

    #[test]
    fn odd_lines_are_counted_and_left_out() {
        let none = Groups::default();
        assert_eq!(Groups::parse("", ""), none);
        assert_eq!(Groups::parse("heading only", "heading only\n\n"), none);
        for odd in [
            "010101EF",
            "010101EF 0100000A 1 2 3",
            "010101EG 0100000A 1 2 3 4",
            "+10101EF 0100000A 1 2 3 4",
            "0010101EF 0100000A 1 2 3 4",
            "010101EF 0100000A 32 2 3 4",
            "010101EF 0100000A -2 2 3 4",
            "010101EF 0100000A 1 -2 3 4",
            "010101EF 0100000A 1 2 99999999999999999999 4",
            "010101EF 0100000A 1 2 3 4 5",
            "010101EF 0100000A 1 2 3 4 x:1",
            "010101EF 0100000A 1 2 3 4 :",
            "\u{1f4a3}",
        ] {
            let text = format!("heading\n{odd}\n010101EF 0100000A 1 2 3 4\n");
            let groups = Groups::parse("", &text);
            assert_eq!((groups.unread, groups.routes.len()), (1, 1), "{odd}");
        }
        for odd in ["1 eth0 2 3 4", "99 eth0 1 2 3 4", "x eth0 1 2 3 4", "1 eth0 1 2 3 -4"] {
            let groups = Groups::parse(&format!("heading\n{odd}"), "");
            assert_eq!((groups.unread, groups.interfaces.len()), (1, 0), "{odd}");
        }
    }

    #[test]
    fn many_lines_are_bounded() {
        let text = "heading\n".to_owned() + &"010101EF 0100000A 1 2 3 4\n".repeat(LINES_MAX + 7);
        let groups = Groups::parse("", &text);
        assert_eq!((groups.routes.len(), groups.unread), (LINES_MAX, 7));
    }
}
