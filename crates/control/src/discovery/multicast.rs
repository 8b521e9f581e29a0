//! DNS-SD by multicast DNS (RFC 6762): who announces a service on the networks of this machine, and announcing one.

use std::collections::BTreeMap;
use std::net::IpAddr;

use mdns_sd::{Receiver, ServiceDaemon, ServiceEvent, ServiceInfo};

use super::{Candidate, REGISTRIES_MAX, Service, Wanted};

/// Who announces a service, as it is heard.
pub(super) struct Browser {
    daemon: ServiceDaemon,
    events: Receiver<ServiceEvent>,
    wanted: Wanted,
    known: BTreeMap<String, Candidate>,
}

impl Browser {
    /// Begins to ask. `None` if the system has no multicast.
    pub fn begin(service: Service, wanted: Wanted) -> Option<Self> {
        let daemon = ServiceDaemon::new().ok()?;
        let events = daemon.browse(&format!("{}.local.", service.name())).ok()?;
        Some(Self { daemon, events, wanted, known: BTreeMap::new() })
    }

    /// All that are known, when that has changed; `None` if there will be no more.
    async fn next(&mut self) -> Option<Vec<Candidate>> {
        loop {
            match self.events.recv_async().await.ok()? {
                ServiceEvent::ServiceResolved(found) => {
                    let addresses: Vec<IpAddr> =
                        found.get_addresses_v4().into_iter().map(IpAddr::V4).collect();
                    let texts = found.get_properties().iter();
                    let texts = texts
                        .map(|own| (own.key().to_ascii_lowercase(), own.val_str().to_owned()))
                        .collect();
                    let (host, port) = (found.get_hostname(), found.get_port());
                    let name = found.get_fullname().to_owned();
                    match self.wanted.candidate((host, port), &addresses, &texts) {
                        Some(own) if self.known.len() < REGISTRIES_MAX => {
                            self.known.insert(name, own);
                        }
                        _ => {
                            self.known.remove(&name);
                        }
                    }
                }
                ServiceEvent::ServiceRemoved(_, name) => {
                    self.known.remove(&name);
                }
                _ => continue,
            }
            return Some(self.known.values().cloned().collect());
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        drop(self.daemon.shutdown());
    }
}

/// What a browser knows next; never, without one.
pub(super) async fn next(browser: &mut Option<Browser>) -> Vec<Candidate> {
    if let Some(own) = browser {
        if let Some(found) = own.next().await {
            return found;
        }
        *browser = None;
    }
    std::future::pending().await
}

/// A service that is announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// What it is.
    pub service: Service,
    /// Its name, unique among those of its kind.
    pub name: String,
    /// Its address; unspecified: all of this machine's.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
    /// Its texts.
    pub texts: Vec<(String, String)>,
}

/// The texts that all services have (IS-04 v1.3, DNS-SD TXT records).
pub fn texts(tls: bool, authorization: bool) -> Vec<(String, String)> {
    let texts = [
        ("api_proto", if tls { "https" } else { "http" }.to_owned()),
        ("api_ver", super::VERSION.to_owned()),
        ("api_auth", authorization.to_string()),
    ];
    texts.map(|(key, value)| (key.to_owned(), value)).to_vec()
}

/// Announces services until it is dropped.
pub struct Announcer {
    daemon: ServiceDaemon,
    announced: Vec<String>,
}

impl Announcer {
    /// Announces nothing yet.
    ///
    /// # Errors
    /// What the system said.
    pub fn begin() -> Result<Self, String> {
        let daemon = ServiceDaemon::new().map_err(|error| error.to_string())?;
        Ok(Self { daemon, announced: Vec::new() })
    }

    /// Announces this, or this with other texts.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn announce(&mut self, own: &Announcement) -> Result<(), String> {
        let failed = |error: mdns_sd::Error| error.to_string();
        let kind = format!("{}.local.", own.service.name());
        // A name for each port: several servers of one machine may have different addresses.
        let host = format!(
            "suiro-{}-{}.local.",
            own.address.to_string().replace(['.', ':'], "-"),
            own.port
        );
        let address =
            if own.address.is_unspecified() { String::new() } else { own.address.to_string() };
        let info =
            ServiceInfo::new(&kind, &own.name, &host, address.as_str(), own.port, &own.texts[..]);
        let info = info.map_err(failed)?;
        let info = if own.address.is_unspecified() { info.enable_addr_auto() } else { info };
        let name = info.get_fullname().to_owned();
        self.daemon.register(info).map_err(failed)?;
        if !self.announced.contains(&name) {
            self.announced.push(name);
        }
        Ok(())
    }

    /// Withdraws all that it announced, and waits until that is said.
    pub async fn withdraw(&mut self) {
        for name in self.announced.drain(..) {
            if let Ok(done) = self.daemon.unregister(&name) {
                drop(done.recv_async().await);
            }
        }
    }
}

impl Drop for Announcer {
    fn drop(&mut self) {
        drop(self.daemon.shutdown());
    }
}
