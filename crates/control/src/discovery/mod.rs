//! Where registries are: addresses that were given, and those that announce themselves by DNS-SD (IS-04 v1.3, Discovery; RFC
//! 6763), in a DNS domain or by multicast.

mod choice;
mod multicast;
mod unicast;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration as StdDuration;

use tokio::sync::watch;

pub use choice::Choice;
pub use multicast::{Announcement, Announcer, texts};
pub use unicast::{Resolvers, Targets, services, targets};

use crate::client::{Base, Manners};

/// Registries that are known at most.
pub const REGISTRIES_MAX: usize = 64;
/// How often a DNS domain is asked while it has no registry, and while it has some.
const ASK_AGAIN: [StdDuration; 2] = [StdDuration::from_secs(5), StdDuration::from_secs(30)];
/// Priorities from here on are reserved for development (IS-04 v1.3, DNS-SD TXT records: `pri`).
const DEVELOPMENT: u32 = 100;
/// The version of the APIs that is spoken here.
pub const VERSION: &str = "v1.3";

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Where nodes register.
    Register,
    /// Where controllers ask.
    Query,
    /// A node without a registry.
    Node,
}

impl Service {
    /// Its type in DNS-SD.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Register => "_nmos-register._tcp",
            Self::Query => "_nmos-query._tcp",
            Self::Node => "_nmos-node._tcp",
        }
    }
}

/// How registries are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Search {
    /// By multicast DNS, in `local.`
    Multicast,
    /// In the search domains of /etc/resolv.conf.
    Unicast,
    /// In these domains, and by multicast if they have none.
    Both,
}

impl FromStr for Search {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "multicast" => Ok(Self::Multicast),
            "unicast" => Ok(Self::Unicast),
            "both" => Ok(Self::Both),
            _ => Err("expected multicast, unicast or both"),
        }
    }
}

impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Multicast => "multicast",
            Self::Unicast => "unicast",
            Self::Both => "both",
        })
    }
}

/// Which registries may be used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registries {
    /// Addresses that were given: used in this order, if none that is found answers.
    pub fixed: Vec<Base>,
    /// Whether others are looked for.
    pub search: Option<Search>,
}

impl Registries {
    /// Only this one.
    pub fn only(base: Base) -> Self {
        Self { fixed: vec![base], search: None }
    }

    /// Whether there can be any.
    pub const fn is_none(&self) -> bool {
        self.fixed.is_empty() && self.search.is_none()
    }

    /// Keeps looking: the registries as they are known. Must be called in a runtime. It ends with the last receiver.
    pub fn follow(&self, service: Service, manners: &Manners) -> watch::Receiver<Vec<Candidate>> {
        let fixed = self.fixed.iter().take(REGISTRIES_MAX);
        let fixed: Vec<Candidate> = fixed
            .zip(DEVELOPMENT..)
            .map(|(base, pri)| Candidate { pri, base: base.clone() })
            .collect();
        let (tell, known) = watch::channel(fixed.clone());
        if let Some(search) = self.search {
            tokio::spawn(look(search, service, Wanted::of(manners), fixed, tell));
        }
        known
    }
}

/// A registry: those of a smaller `pri` come first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    /// Its priority; addresses that were given come after all that announce themselves.
    pub pri: u32,
    /// Where it is.
    pub base: Base,
}

/// Which announcements are of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Whether certificates can be checked.
    pub tls: bool,
    /// Whether there is a token to show. It is shown only to servers with a certificate: anybody can announce a server.
    pub token: bool,
}

impl Wanted {
    /// What can be spoken with these.
    pub const fn of(manners: &Manners) -> Self {
        Self { tls: manners.tls.is_some(), token: manners.token.is_some() }
    }

    /// An announced server, if it is one to use: version, protocol, authorization and priority (IS-04 v1.3, Client Interaction
    /// Procedure). `addresses` are those of `host`.
    pub fn candidate(
        self,
        (host, port): (&str, u16),
        addresses: &[std::net::IpAddr],
        txt: &BTreeMap<String, String>,
    ) -> Option<Candidate> {
        let value = |key: &str| txt.get(key).map(String::as_str);
        let tls = match value("api_proto") {
            Some("http") if !self.token => false,
            Some("https") if self.tls => true,
            _ => return None,
        };
        if !value("api_ver")?.split(',').any(|version| version.trim() == VERSION) {
            return None;
        }
        if value("api_auth") == Some("true") && !self.token {
            return None;
        }
        let pri = value("pri")?.parse().ok().filter(|pri| *pri < DEVELOPMENT)?;
        // A certificate is of a name. Without one, the address is all that is needed.
        let host = match addresses.first() {
            Some(address) if !tls => address.to_string(),
            _ => host.trim_end_matches('.').to_owned(),
        };
        let authority = if host.contains(':') { format!("[{host}]") } else { host };
        let scheme = if tls { "https" } else { "http" };
        let base = Base::parse(&format!("{scheme}://{authority}:{port}")).ok()?;
        Some(Candidate { pri, base })
    }
}

/// Searches until its receiver is gone.
async fn look(
    search: Search,
    service: Service,
    wanted: Wanted,
    fixed: Vec<Candidate>,
    tell: watch::Sender<Vec<Candidate>>,
) {
    let mut browser = match search {
        Search::Multicast => multicast::Browser::begin(service, wanted),
        Search::Unicast | Search::Both => None,
    };
    let (mut unicast, mut multicast) = (Vec::new(), Vec::new());
    loop {
        if search != Search::Multicast {
            let resolvers = Resolvers::of_system();
            unicast = unicast::look(&resolvers, service, wanted).await.unwrap_or_default();
            // IS-04 v1.3, Discovery: multicast is for networks whose DNS knows none.
            if unicast.is_empty() && search == Search::Both && browser.is_none() {
                browser = multicast::Browser::begin(service, wanted);
            }
        }
        let pause = ASK_AGAIN[usize::from(!unicast.is_empty())];
        let again = tokio::time::sleep(pause);
        tokio::pin!(again);
        loop {
            let found = if unicast.is_empty() { &multicast } else { &unicast };
            let all: Vec<Candidate> = found.iter().chain(&fixed).cloned().collect();
            tell.send_if_modified(|known| {
                let is_new = *known != all;
                *known = all;
                is_new
            });
            tokio::select! {
                () = tell.closed() => return,
                () = &mut again, if search != Search::Multicast => break,
                found = multicast::next(&mut browser) => multicast = found,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn txt(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let usual =
            [("api_proto", "http"), ("api_ver", "v1.2,v1.3"), ("api_auth", "false"), ("pri", "10")];
        let all = usual.iter().chain(pairs);
        all.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn announcements_are_used_if_they_can_be_spoken_to() {
        let open = Wanted { tls: false, token: false };
        let closed = Wanted { tls: true, token: true };
        let of = |wanted: Wanted, pairs: &[(&str, &str)]| {
            let address = ["192.0.2.7".parse().unwrap()];
            let found = wanted.candidate(("registry.example.", 8235), &address, &txt(pairs));
            found.map(|found| (found.base.to_string(), found.pri))
        };
        assert_eq!(of(open, &[]), Some(("http://192.0.2.7:8235".to_owned(), 10)));
        assert_eq!(of(open, &[("api_ver", "v9.0")]), None);
        assert_eq!(of(open, &[("api_proto", "invalid")]), None);
        assert_eq!(of(open, &[("api_proto", "https")]), None, "no certificate can be checked");
        assert_eq!(of(open, &[("api_auth", "true")]), None);
        assert_eq!(of(open, &[("pri", "100")]), None, "reserved for development");
        assert_eq!(of(open, &[("pri", "first")]), None);
        assert_eq!(of(closed, &[("api_auth", "true")]), None, "a token needs TLS");
        let secure = [("api_proto", "https"), ("api_auth", "true")];
        assert_eq!(of(closed, &secure), Some(("https://registry.example:8235".to_owned(), 10)));
        let none = open.candidate(("registry.example.", 80), &[], &txt(&[])).unwrap();
        assert_eq!(none.base.to_string(), "http://registry.example:80");
    }

    #[tokio::test]
    async fn given_addresses_are_known_without_looking() {
        let bases: Vec<Base> =
            ["http://a:1", "http://b:2"].iter().map(|url| Base::parse(url).unwrap()).collect();
        let registries = Registries { fixed: bases.clone(), search: None };
        let known = registries.follow(Service::Register, &Manners::default());
        let known: Vec<Base> = known.borrow().iter().map(|own| own.base.clone()).collect();
        assert_eq!(known, bases);
    }
}
