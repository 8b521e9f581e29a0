//! A node's registration (IS-04 v1.3, Behaviour: Registration): all resources in their order, then heartbeats, and all
//! of it again if the registry has forgotten the node. If a registry fails, the next one is used. Without any, the node
//! announces itself (Discovery: Peer to Peer Operation).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration as StdDuration;

use serde_json::{Value, json};
use suiro_units::{Duration, Time};
use tokio::sync::{mpsc, watch};

use crate::client::{Base, Client, Manners};
use crate::discovery::{
    Announcement, Announcer, Candidate, Choice, Registries, Search, Service, texts,
};
use crate::net;
use crate::nmos::resources::{About, Kind};
use crate::nmos::{Ask, Id};

/// IS-04 v1.3, Heartbeating.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// How long a request may take.
const PATIENCE: StdDuration = StdDuration::from_secs(2);

/// What a registration says to its node: a word, and more.
pub type Told = (&'static str, String);

/// The resources that have changed since the node started, as they are now.
pub type Changed = BTreeMap<Id, (Kind, Value)>;

/// A node that registers.
pub(super) struct Registering {
    node: Id,
    manners: Manners,
    resources: Vec<(Kind, Value)>,
    /// Those of them, by index, that the registry has not taken as they are now.
    unposted: BTreeSet<usize>,
    /// The registries, as they are known.
    known: watch::Receiver<Vec<Candidate>>,
    /// Whether more may become known.
    looks: bool,
    choice: Choice,
    client: Option<Client>,
    registered: bool,
    /// Whether any registry had it: another one of the same cluster may have it, too.
    was_registered: bool,
    beats_at: Time,
    peer: Option<Peer>,
    tell: mpsc::Sender<Told>,
    told: String,
}

/// Why it is not registered.
enum Failed {
    /// The registry refuses it.
    Refused(String),
    /// It does not answer, or not as it should.
    Silent,
}

impl Registering {
    /// Begins to look for registries. Must be called in a runtime.
    pub fn begin(
        registries: &Registries,
        manners: &Manners,
        about: &About,
        resources: Vec<(Kind, Value)>,
        tell: mpsc::Sender<Told>,
    ) -> Self {
        let node = about.node();
        let seed =
            node.as_str().bytes().fold(0, |seed: u64, c| seed.wrapping_mul(31) + u64::from(c));
        let announces = matches!(registries.search, Some(Search::Multicast | Search::Both));
        Self {
            node,
            manners: manners.clone(),
            resources,
            unposted: BTreeSet::new(),
            known: registries.follow(Service::Register, manners),
            looks: true,
            choice: Choice::new(seed),
            client: None,
            registered: false,
            was_registered: false,
            beats_at: net::monotonic(),
            peer: announces.then(|| Peer::new(about)),
            tell,
            told: String::new(),
        }
    }

    /// Keeps the node registered until `changed` has no sender any more, then removes it.
    pub async fn run(mut self, mut changed: watch::Receiver<Changed>) {
        loop {
            self.choice.know(&self.known.borrow_and_update());
            self.turn().await;
            let now = net::monotonic();
            let until = if self.registered {
                self.beats_at.saturating_since(now)
            } else {
                // Another one may be usable at once.
                self.choice.wait(now).unwrap_or(HEARTBEAT)
            };
            tokio::select! {
                more = changed.changed() => match more {
                    Err(_) => break,
                    Ok(()) => {
                        let changed = changed.borrow_and_update().clone();
                        self.change(&changed).await;
                    }
                },
                more = self.known.changed(), if self.looks => self.looks = more.is_ok(),
                () = tokio::time::sleep(until.into()) => {}
            }
        }
        if let Some(mut client) = self.client.take().filter(|_| self.registered) {
            remove(&mut client, &self.node).await;
        }
        if let Some(peer) = &mut self.peer {
            peer.withdraw().await;
        }
    }

    /// What is due: a registration, or a heartbeat.
    async fn turn(&mut self) {
        let now = net::monotonic();
        let best = self.choice.best(now);
        let current = self.client.as_ref().map(Client::base);
        if self.registered && best.as_ref() == current {
            if now >= self.beats_at {
                self.beats_at = now + HEARTBEAT;
                self.beat().await;
            }
        } else if let Some(base) = best {
            self.client = Some(Client::new(base, self.manners.clone()));
            self.registered = false;
            self.join().await;
        } else {
            self.registered = false;
        }
        let is_alone = self.choice.is_empty();
        if let Some(peer) = &mut self.peer {
            let said = if is_alone { peer.announce() } else { peer.withdraw().await };
            if let Some(said) = said {
                self.say("registry", said);
            }
        }
    }

    async fn join(&mut self) {
        let Some(client) = &mut self.client else { return };
        let base = client.base().clone();
        // IS-04 v1.3, Error Conditions: the first request to another registry is a heartbeat.
        let asked = if self.was_registered { beat(client, &self.node).await } else { Ok(false) };
        let joined = match asked {
            Ok(is_known) => {
                if !is_known {
                    self.unposted = (0..self.resources.len()).collect();
                }
                self.catch_up().await
            }
            Err(failed) => Err(failed),
        };
        match joined {
            Ok(()) => {
                (self.registered, self.was_registered) = (true, true);
                self.beats_at = net::monotonic() + HEARTBEAT;
                self.choice.worked(&base);
                self.say("registry", format!("registered at {base}"));
            }
            Err(failed) => self.failed(&base, failed),
        }
    }

    async fn beat(&mut self) {
        let Some(client) = &mut self.client else { return };
        let base = client.base().clone();
        match beat(client, &self.node).await {
            Ok(true) => {}
            Ok(false) => {
                self.registered = false;
                self.join().await;
            }
            Err(failed) => self.failed(&base, failed),
        }
    }

    fn failed(&mut self, base: &Base, failed: Failed) {
        self.registered = false;
        self.choice.failed(base, net::monotonic());
        match failed {
            Failed::Refused(reason) => self.say("refused", format!("by the registry: {reason}")),
            Failed::Silent => self.say("registry", format!("{base} does not answer")),
        }
    }

    /// Reports something, unless it was the last report.
    fn say(&mut self, what: &'static str, detail: String) {
        if self.told != detail {
            self.told.clone_from(&detail);
            // A node that does not read it has ended.
            let _ = self.tell.try_send((what, detail));
        }
    }

    async fn change(&mut self, changed: &Changed) {
        for (at, (kind, own)) in self.resources.iter_mut().enumerate() {
            let same = |(other, value): &&(Kind, Value)| other == kind && value["id"] == own["id"];
            let found = changed.values().find(same).filter(|(_, value)| value != own);
            let Some((_, value)) = found else { continue };
            own.clone_from(value);
            self.unposted.insert(at);
            if let Some(peer) = &mut self.peer {
                peer.changed(*kind);
            }
        }
        let base = self.client.as_ref().map(|client| client.base().clone());
        let Some(base) = base.filter(|_| self.registered) else { return };
        if let Err(failed) = self.catch_up().await {
            self.failed(&base, failed);
        }
    }

    /// Posts what the registry has not taken, in the order of registration. A node that it knows already is removed first, with
    /// what it may have left there (IS-04 v1.3, Registration: 200).
    async fn catch_up(&mut self) -> Result<(), Failed> {
        let Some(client) = &mut self.client else { return Ok(()) };
        while let Some(at) = self.unposted.first().copied() {
            let (kind, value) = &self.resources[at];
            if post(client, *kind, value).await? == 200 && *kind == Kind::Node {
                remove(client, &self.node).await;
                post(client, *kind, value).await?;
            }
            self.unposted.remove(&at);
        }
        Ok(())
    }
}

/// Takes the node out of the registry, with all that belongs to it.
async fn remove(client: &mut Client, node: &Id) {
    let path = format!("/x-nmos/registration/v1.3/resource/nodes/{node}");
    let ask = Ask { method: "DELETE".to_owned(), path, ..Ask::default() };
    drop(client.ask(&ask, PATIENCE).await);
}

/// Registers a resource; the status: 201 if it is new, 200 if it was known.
async fn post(client: &mut Client, kind: Kind, value: &Value) -> Result<u16, Failed> {
    let body = json!({ "type": kind.name(), "data": value });
    let ask = Ask::json("POST", "/x-nmos/registration/v1.3/resource", &body);
    match client.ask(&ask, PATIENCE).await {
        Ok(reply) if matches!(reply.status, 200 | 201) => Ok(reply.status),
        Ok(reply) if reply.status < 500 => {
            Err(Failed::Refused(format!("{} (status {})", reply.reason(), reply.status)))
        }
        Ok(_) | Err(_) => Err(Failed::Silent),
    }
}

/// Whether the registry still knows the node.
async fn beat(client: &mut Client, node: &Id) -> Result<bool, Failed> {
    let path = format!("/x-nmos/registration/v1.3/health/nodes/{node}");
    let ask = Ask { method: "POST".to_owned(), path, ..Ask::default() };
    match client.ask(&ask, PATIENCE).await {
        Ok(reply) if reply.status == 200 => Ok(true),
        // 404: it was forgotten, and must register anew.
        Ok(reply) if reply.status < 500 => Ok(false),
        Ok(_) | Err(_) => Err(Failed::Silent),
    }
}

/// A node that announces itself while there is no registry.
struct Peer {
    address: IpAddr,
    port: u16,
    name: String,
    texts: Vec<(String, String)>,
    /// How often each kind of resource has changed, in the order of [`Kind::ALL`].
    changes: [u8; Kind::ALL.len()],
    announcer: Option<Announcer>,
}

impl Peer {
    fn new(about: &About) -> Self {
        Self {
            address: about.address,
            port: about.port,
            name: about.name.clone(),
            texts: texts(about.tls, about.authorization),
            changes: [0; Kind::ALL.len()],
            announcer: None,
        }
    }

    /// With the texts of peer-to-peer operation: numbers that change with the resources.
    fn announcement(&self) -> Announcement {
        let number = |kind: &Kind| {
            let key = match kind {
                Kind::Node => "ver_slf",
                Kind::Device => "ver_dvc",
                Kind::Source => "ver_src",
                Kind::Flow => "ver_flw",
                Kind::Sender => "ver_snd",
                Kind::Receiver => "ver_rcv",
            };
            (key.to_owned(), self.changes[*kind as usize].to_string())
        };
        Announcement {
            service: Service::Node,
            name: self.name.clone(),
            address: self.address,
            port: self.port,
            texts: self.texts.iter().cloned().chain(Kind::ALL.iter().map(number)).collect(),
        }
    }

    /// Announces the node, if that is not done; what is to be said of it.
    fn announce(&mut self) -> Option<String> {
        if self.announcer.is_some() {
            return None;
        }
        let begun = Announcer::begin().and_then(|mut announcer| {
            announcer.announce(&self.announcement())?;
            Ok(announcer)
        });
        match begun {
            Ok(announcer) => {
                self.announcer = Some(announcer);
                Some("none is known: the node announces itself".to_owned())
            }
            Err(reason) => Some(format!("none is known, and announcing the node failed: {reason}")),
        }
    }

    /// Withdraws it: there is a registry.
    async fn withdraw(&mut self) -> Option<String> {
        let mut announcer = self.announcer.take()?;
        announcer.withdraw().await;
        None
    }

    fn changed(&mut self, kind: Kind) {
        // IS-04 v1.3: after 255 comes 0.
        let own = &mut self.changes[kind as usize];
        *own = own.wrapping_add(1);
        let announcement = self.announcement();
        if let Some(announcer) = &mut self.announcer {
            // If this fails, the next change announces it.
            let _ = announcer.announce(&announcement);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Exposure;
    use crate::nmos::Reply;
    use crate::server::{Serving, Waiting};

    fn about() -> About {
        About {
            name: "n1".to_owned(),
            address: "192.0.2.1".parse().unwrap(),
            port: 8080,
            tls: false,
            authorization: false,
            interfaces: Vec::new(),
            tags: Vec::new(),
            since: crate::nmos::Tai::from_nanos(1),
        }
    }

    /// Answers the next request with a status: its method, the kind of its path, and the resource's version.
    async fn answered(serving: &mut Serving, status: u16) -> (String, String, Value) {
        let Waiting { ask, reply } = serving.next().await.unwrap();
        reply.send(Reply::empty(status)).unwrap();
        let kind = ask.path.split('/').nth(4).unwrap().to_owned();
        let body: Value = serde_json::from_slice(&ask.body).unwrap_or_default();
        (ask.method, kind, body["data"]["version"].clone())
    }

    #[tokio::test]
    async fn what_a_registry_did_not_take_is_posted_when_it_answers_again() {
        let any = "127.0.0.1:0".parse().unwrap();
        let listener = net::listen(any, Exposure::Loopback).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let base = Base { tls: false, host: "127.0.0.1".to_owned(), port };
        let mut serving = Serving::begin(listener, None);
        let id = Id::named("sender");
        let sender =
            |version: &str| (Kind::Sender, json!({ "id": id.as_str(), "version": version }));
        let (tell, _told) = mpsc::channel(16);
        let (registries, manners) = (Registries::only(base), Manners::default());
        let own = Registering::begin(&registries, &manners, &about(), vec![sender("1:0")], tell);
        let (changes, changed) = watch::channel(Changed::new());
        let running = tokio::spawn(own.run(changed));
        let said = |method: &str, kind: &str, version: Value| {
            (method.to_owned(), kind.to_owned(), version)
        };
        let posted = |version: &str| said("POST", "resource", json!(version));
        let beat = || said("POST", "health", Value::Null);
        assert_eq!(answered(&mut serving, 201).await, posted("1:0"));
        changes.send_modify(|all| drop(all.insert(id.clone(), sender("2:0"))));
        assert_eq!(answered(&mut serving, 503).await, posted("2:0"));
        // Changes while the node leaves the registry alone are posted later, in their latest state.
        for version in ["3:0", "4:0"] {
            changes.send_modify(|all| drop(all.insert(id.clone(), sender(version))));
        }
        assert_eq!(answered(&mut serving, 200).await, beat());
        assert_eq!(answered(&mut serving, 200).await, posted("4:0"));
        drop(changes);
        assert_eq!(answered(&mut serving, 204).await, said("DELETE", "resource", Value::Null));
        running.await.unwrap();
    }

    #[test]
    fn numbers_of_a_peer_follow_its_resources() {
        let mut peer = Peer::new(&about());
        let number = |peer: &Peer, key: &str| {
            let texts = peer.announcement().texts;
            texts.into_iter().find(|(own, _)| own == key).unwrap().1
        };
        assert_eq!(number(&peer, "api_ver"), "v1.3");
        for _ in 0..257 {
            peer.changed(Kind::Sender);
        }
        let all = ["ver_slf", "ver_dvc", "ver_src", "ver_flw", "ver_snd", "ver_rcv"];
        assert_eq!(all.map(|key| number(&peer, key)), ["0", "0", "0", "0", "1", "0"]);
    }
}
