//! DNS-SD in a DNS domain (RFC 6763): who has a service (PTR), where it is (SRV, A, AAAA) and what it says of itself (TXT). What is
//! sent and read is pure; the sockets are in `net`.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration as StdDuration;

use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, Question, TYPE};
use suiro_outside::file;

use super::{Candidate, REGISTRIES_MAX, Service, Wanted};
use crate::net;

/// Where the system keeps its resolvers.
const RESOLV_CONF: &str = "/etc/resolv.conf";
const RESOLV_CONF_MAX: u64 = 64 << 10;
/// resolv.conf(5): MAXNS, and as many domains as resolvers once had.
const RESOLVERS_MAX: usize = 3;
const DOMAINS_MAX: usize = 6;
/// How long a resolver may take.
const PATIENCE: StdDuration = StdDuration::from_secs(2);
const PORT: u16 = 53;

/// The DNS of this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolvers {
    /// The servers, in the order in which they are asked.
    pub servers: Vec<SocketAddr>,
    /// The domains in which services are looked for.
    pub domains: Vec<String>,
}

impl Resolvers {
    /// Those of /etc/resolv.conf; none if it cannot be read.
    pub fn of_system() -> Self {
        file::read_text(Path::new(RESOLV_CONF), RESOLV_CONF_MAX)
            .map_or_else(|_| Self::default(), |text| Self::parse(&text))
    }

    /// Reads resolv.conf(5). Lines that it does not know are skipped, as the system's resolver does.
    pub fn parse(text: &str) -> Self {
        let mut own = Self::default();
        for line in text.lines() {
            let line = line.split(['#', ';']).next().unwrap_or_default();
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("nameserver") => {
                    let address: Option<IpAddr> = words.next().and_then(|word| word.parse().ok());
                    own.servers.extend(address.map(|address| SocketAddr::new(address, PORT)));
                }
                // The last of these lines counts.
                Some("search" | "domain") => {
                    let names =
                        words.map(|word| word.trim_matches('.')).filter(|word| !word.is_empty());
                    own.domains = names.take(DOMAINS_MAX).map(str::to_owned).collect();
                }
                _ => {}
            }
        }
        own.servers.truncate(RESOLVERS_MAX);
        own
    }
}

/// A question of one type, as a message with this number; `None` if the name is none.
fn query(id: u16, name: &str, kind: TYPE) -> Option<Vec<u8>> {
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    let name = Name::new(name).ok()?;
    packet.questions.push(Question::new(name, QTYPE::TYPE(kind), QCLASS::CLASS(CLASS::IN), false));
    packet.build_bytes_vec().ok()
}

/// Whether this answers the message with this number, and whether it is whole.
fn answers(message: &[u8], id: u16) -> Option<bool> {
    let packet = Packet::parse(message).ok()?;
    let is_answer = packet.id() == id && packet.has_flags(PacketFlag::RESPONSE);
    is_answer.then(|| !packet.has_flags(PacketFlag::TRUNCATION))
}

/// The services that an answer names: PTR of `name`.
pub fn services(message: &[u8], name: &str) -> Vec<String> {
    let Ok(packet) = Packet::parse(message) else { return Vec::new() };
    let of = |record: &simple_dns::ResourceRecord<'_>| match &record.rdata {
        RData::PTR(to) if same(&record.name.to_string(), name) => Some(to.0.to_string()),
        _ => None,
    };
    packet.answers.iter().filter_map(of).take(REGISTRIES_MAX).collect()
}

fn same(one: &str, other: &str) -> bool {
    one.trim_end_matches('.').eq_ignore_ascii_case(other.trim_end_matches('.'))
}

/// What answers say of services.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Targets {
    /// Host and port of each service.
    pub hosts: BTreeMap<String, (String, u16)>,
    /// The texts of each service.
    pub texts: BTreeMap<String, BTreeMap<String, String>>,
    /// The addresses of hosts.
    pub addresses: BTreeMap<String, Vec<IpAddr>>,
}

/// Adds what an answer says: SRV, TXT, A and AAAA, wherever they stand in it.
pub fn targets(message: &[u8], known: &mut Targets) {
    let Ok(packet) = Packet::parse(message) else { return };
    for record in packet.answers.iter().chain(&packet.additional_records).take(4 * REGISTRIES_MAX) {
        let name = record.name.to_string().to_ascii_lowercase();
        match &record.rdata {
            RData::SRV(srv) => {
                known.hosts.entry(name).or_insert_with(|| (srv.target.to_string(), srv.port));
            }
            RData::TXT(txt) => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                // RFC 6763 §6.4: keys are without case, and the first of several counts.
                let own = known.texts.entry(name).or_default();
                for (key, value) in txt.iter_raw() {
                    let key = text(key).to_ascii_lowercase();
                    own.entry(key).or_insert_with(|| text(value.unwrap_or_default()));
                }
            }
            RData::A(a) => {
                known
                    .addresses
                    .entry(name)
                    .or_default()
                    .push(IpAddr::from(a.address.to_be_bytes()));
            }
            RData::AAAA(a) => {
                known
                    .addresses
                    .entry(name)
                    .or_default()
                    .push(IpAddr::from(a.address.to_be_bytes()));
            }
            _ => {}
        }
    }
}

/// Looks for a service in all domains. `None` if no resolver answers.
pub(super) async fn look(
    resolvers: &Resolvers,
    service: Service,
    wanted: Wanted,
) -> Option<Vec<Candidate>> {
    let mut found = None;
    for domain in &resolvers.domains {
        let name = format!("{}.{domain}", service.name());
        let Some(answer) = ask(resolvers, &name, TYPE::PTR).await else { continue };
        let mut known = Targets::default();
        targets(&answer, &mut known);
        let found = found.get_or_insert_with(Vec::new);
        for own in services(&answer, &name) {
            let key = own.to_ascii_lowercase();
            for (kind, is_known) in [
                (TYPE::SRV, known.hosts.contains_key(&key)),
                (TYPE::TXT, known.texts.contains_key(&key)),
            ] {
                if !is_known && let Some(answer) = ask(resolvers, &own, kind).await {
                    targets(&answer, &mut known);
                }
            }
            let Some((host, port)) = known.hosts.get(&key).cloned() else { continue };
            let host_key = host.to_ascii_lowercase();
            if !known.addresses.contains_key(&host_key)
                && let Some(answer) = ask(resolvers, &host, TYPE::A).await
            {
                targets(&answer, &mut known);
            }
            let addresses = known.addresses.get(&host_key).map_or(&[][..], Vec::as_slice);
            let texts = known.texts.get(&key).cloned().unwrap_or_default();
            found.extend(wanted.candidate((&host, port), addresses, &texts));
            if found.len() >= REGISTRIES_MAX {
                break;
            }
        }
    }
    found
}

/// Asks the resolvers one after the other; again over TCP if an answer is cut.
async fn ask(resolvers: &Resolvers, name: &str, kind: TYPE) -> Option<Vec<u8>> {
    // RFC 5452 §4.5: only a server that received the query knows its number and port.
    let mut id = [0; 2];
    aws_lc_rs::rand::fill(&mut id).ok()?;
    let id = u16::from_be_bytes(id);
    let message = query(id, name, kind)?;
    for server in &resolvers.servers {
        let fits = |answer: &[u8]| answers(answer, id).is_some();
        let asked = tokio::time::timeout(PATIENCE, net::ask_udp(*server, &message, fits)).await;
        let Ok(Ok(answer)) = asked else { continue };
        if answers(&answer, id) == Some(true) {
            return Some(answer);
        }
        let asked = tokio::time::timeout(PATIENCE, net::ask_tcp(*server, &message)).await;
        if let Ok(Ok(answer)) = asked
            && answers(&answer, id).is_some()
        {
            return Some(answer);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use simple_dns::ResourceRecord;
    use simple_dns::rdata::{A, PTR, SRV, TXT};

    use super::*;

    #[test]
    fn resolv_conf_is_read_as_the_system_does() {
        let text = "# made by hand\nnameserver 192.0.2.53 ; first\nnameserver 2001:db8::53\nnameserver nonsense\n\
            domain old.example\nsearch studio.example. plant.example\noptions timeout:1\n";
        let own = Resolvers::parse(text);
        let servers: Vec<String> = own.servers.iter().map(ToString::to_string).collect();
        assert_eq!(servers, ["192.0.2.53:53", "[2001:db8::53]:53"]);
        assert_eq!(own.domains, ["studio.example", "plant.example"]);
        assert_eq!(Resolvers::parse(""), Resolvers::default());
    }

    fn name(text: &str) -> Name<'_> {
        Name::new_unchecked(text)
    }

    fn record<'a>(of: &'a str, rdata: RData<'a>) -> ResourceRecord<'a> {
        ResourceRecord::new(name(of), CLASS::IN, 60, rdata)
    }

    #[test]
    fn a_service_is_put_together_from_its_records() {
        const KIND: &str = "_nmos-register._tcp.studio.example";
        const OWN: &str = "one._nmos-register._tcp.studio.example";
        let mut reply = Packet::new_reply(7);
        reply.answers.push(record(KIND, RData::PTR(PTR(name(OWN)))));
        reply
            .answers
            .push(record("_other._tcp.studio.example", RData::PTR(PTR(name("x.example")))));
        let srv =
            SRV { priority: 0, weight: 0, port: 8235, target: name("Registry.studio.example") };
        reply.additional_records.push(record(OWN, RData::SRV(srv)));
        let txt = ["api_proto=http", "api_ver=v1.3", "API_AUTH=false", "pri=20", "pri=5"];
        let txt = txt.iter().fold(TXT::new(), |all, text| all.with_string(text).unwrap());
        reply.additional_records.push(record(OWN, RData::TXT(txt)));
        let address = A::from(Ipv4Addr::new(192, 0, 2, 9));
        reply.additional_records.push(record("registry.studio.example", RData::A(address)));
        let message = reply.build_bytes_vec_compressed().unwrap();
        assert_eq!(answers(&message, 7), Some(true));
        assert_eq!(answers(&message, 8), None, "it answers another question");
        assert_eq!(services(&message, KIND), [OWN]);
        let mut known = Targets::default();
        targets(&message, &mut known);
        let key = OWN.to_ascii_lowercase();
        let (host, port) = known.hosts[&key].clone();
        let addresses = &known.addresses[&host.to_ascii_lowercase()];
        let wanted = Wanted { tls: false, token: false };
        let found = wanted.candidate((&host, port), addresses, &known.texts[&key]).unwrap();
        assert_eq!((found.base.to_string().as_str(), found.pri), ("http://192.0.2.9:8235", 20));
    }

    /// A DNS server with one registry: it answers over UDP with a cut message, and over TCP with all.
    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "the server of a test")]
    async fn a_domain_is_searched_and_a_cut_answer_asked_for_again() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let tcp = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = tcp.local_addr().unwrap();
        let udp = tokio::net::UdpSocket::bind(server).await.unwrap();
        let reply = |question: &[u8], is_cut: bool| {
            let asked = Packet::parse(question).unwrap();
            let name = asked.questions[0].qname.to_string();
            let mut reply = Packet::new_reply(asked.id());
            let own = "one._nmos-query._tcp.studio.example";
            if is_cut {
                reply.set_flags(PacketFlag::TRUNCATION);
            } else {
                let txt = ["api_proto=http", "api_ver=v1.3", "api_auth=false", "pri=3"];
                let txt = txt.iter().fold(TXT::new(), |all, text| all.with_string(text).unwrap());
                let srv = SRV {
                    priority: 0,
                    weight: 0,
                    port: 80,
                    target: Name::new_unchecked("host.example"),
                };
                let all = [
                    ("_nmos-query._tcp.studio.example", RData::PTR(PTR(Name::new_unchecked(own)))),
                    (own, RData::SRV(srv)),
                    (own, RData::TXT(txt)),
                    ("host.example", RData::A(A::from(Ipv4Addr::new(192, 0, 2, 4)))),
                ];
                // Each question has one answer: nothing comes with it.
                let kind = asked.questions[0].qtype;
                let fits = |of: &str, data: &RData<'_>| {
                    of == name && QTYPE::TYPE(data.type_code()) == kind
                };
                let mut all = all.into_iter().filter(|(of, data)| fits(of, data));
                reply.answers.extend(all.next().map(|(of, data)| record(of, data)));
            }
            reply.build_bytes_vec().unwrap()
        };
        let serve = async {
            let mut bytes = [0; 512];
            loop {
                let (length, from) = udp.recv_from(&mut bytes).await.unwrap();
                udp.send_to(&reply(&bytes[..length], true), from).await.unwrap();
                let (mut stream, _) = tcp.accept().await.unwrap();
                let mut question = vec![0; stream.read_u16().await.unwrap().into()];
                stream.read_exact(&mut question).await.unwrap();
                let whole = reply(&question, false);
                stream.write_u16(whole.len() as u16).await.unwrap();
                stream.write_all(&whole).await.unwrap();
            }
        };
        let resolvers =
            Resolvers { servers: vec![server], domains: vec!["studio.example".to_owned()] };
        let wanted = Wanted { tls: false, token: false };
        let found = tokio::select! {
            found = look(&resolvers, Service::Query, wanted) => found,
            () = serve => None,
        };
        let found = found.unwrap();
        assert_eq!((found.len(), found[0].pri), (1, 3));
        assert_eq!(found[0].base.to_string(), "http://192.0.2.4:80");
    }

    #[test]
    fn a_question_is_a_message_with_its_number() {
        let message = query(0x1234, "_nmos-query._tcp.studio.example", TYPE::PTR).unwrap();
        assert_eq!(&message[..6], [0x12, 0x34, 1, 0, 0, 1]);
        assert_eq!(answers(&message, 0x1234), None, "it is no answer");
        assert_eq!(query(1, &"x".repeat(64), TYPE::PTR), None);
    }
}
