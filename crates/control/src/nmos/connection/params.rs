//! Transport parameters of RTP (IS-05 v1.1, Behaviour: RTP Transport Type): the core set of senders, and core and
//! multicast sets of receivers, over IPv4.

use std::net::{Ipv4Addr, SocketAddrV4};

use serde_json::{Map, Value, json};

use super::Side;
use crate::nmos::found;

/// What IS-05 suggests for `auto` as a port.
const PORT: u16 = 5004;

/// The value of one parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// The device chooses.
    Auto,
    /// It is not set.
    Null,
    /// An address.
    Address(Ipv4Addr),
    /// A UDP port.
    Port(u16),
    /// True or false.
    Flag(bool),
}

impl Setting {
    fn value(self) -> Value {
        match self {
            Self::Auto => json!("auto"),
            Self::Null => Value::Null,
            Self::Address(address) => json!(address.to_string()),
            Self::Port(port) => json!(port),
            Self::Flag(flag) => json!(flag),
        }
    }
}

/// The values that a parameter may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// An address or `auto`.
    Address,
    /// An address or null.
    AddressOrNull,
    /// A port from the least on, or `auto`.
    Port { least: u16 },
    /// True or false.
    Flag,
}

/// A parameter: its name and values.
type Parameter = (&'static str, Kind);

const SENDER: [Parameter; 5] = [
    ("source_ip", Kind::Address),
    ("destination_ip", Kind::Address),
    ("source_port", Kind::Port { least: 0 }),
    ("destination_port", Kind::Port { least: 1 }),
    ("rtp_enabled", Kind::Flag),
];

const RECEIVER: [Parameter; 5] = [
    ("source_ip", Kind::AddressOrNull),
    ("multicast_ip", Kind::AddressOrNull),
    ("interface_ip", Kind::Address),
    ("destination_port", Kind::Port { least: 1 }),
    ("rtp_enabled", Kind::Flag),
];

const fn parameters(side: Side) -> &'static [Parameter; 5] {
    match side {
        Side::Sender => &SENDER,
        Side::Receiver => &RECEIVER,
    }
}

/// The parameters of one leg, in the order of their table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings([Setting; 5]);

/// Changes of the parameters of one leg: those that a request names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes([Option<Setting>; 5]);

/// What a device knows of itself, to choose for `auto`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// The address of each leg's interface: as many as there are legs.
    pub interfaces: Vec<Ipv4Addr>,
    /// Where each leg of a sender goes by default; empty if there is no default.
    pub destinations: Vec<SocketAddrV4>,
}

/// One leg with every `auto` resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leg {
    /// Whether it carries packets (`rtp_enabled`).
    pub enabled: bool,
    /// The own interface: a sender's `source_ip`, a receiver's `interface_ip`.
    pub interface: Ipv4Addr,
    /// A receiver's only source; `None`: any.
    pub source: Option<Ipv4Addr>,
    /// Where packets go: a sender's `destination_ip`, a receiver's `multicast_ip`; `None`: to the interface.
    pub destination: Option<Ipv4Addr>,
    /// The port that they go to.
    pub port: u16,
    /// The port that they come from; 0: any.
    pub source_port: u16,
}

impl Settings {
    /// Those of an uninitialised leg: everything that can be is chosen by the device.
    pub fn initial(side: Side) -> Self {
        Self(parameters(side).map(|(_, kind)| match kind {
            Kind::Address | Kind::Port { .. } => Setting::Auto,
            Kind::AddressOrNull => Setting::Null,
            Kind::Flag => Setting::Flag(true),
        }))
    }

    /// The same with changes.
    pub fn with(mut self, changes: &Changes) -> Self {
        for (setting, change) in self.0.iter_mut().zip(changes.0) {
            *setting = change.unwrap_or(*setting);
        }
        self
    }

    /// As JSON.
    pub fn value(&self, side: Side) -> Value {
        let pairs = parameters(side).iter().zip(self.0);
        Value::Object(
            pairs.map(|((key, _), setting)| ((*key).to_owned(), setting.value())).collect(),
        )
    }

    fn get(&self, side: Side, key: &str) -> Setting {
        let at = parameters(side).iter().position(|(name, _)| *name == key);
        self.0[at.expect("the table has this key")]
    }

    /// Resolves `auto`; `leg` counts from 0.
    ///
    /// # Errors
    /// What cannot be resolved, in words.
    pub fn resolved(&self, side: Side, leg: usize, own: &Own) -> Result<(Self, Leg), String> {
        let interface = *own.interfaces.get(leg).ok_or("there is no interface for this leg")?;
        let destination = own.destinations.get(leg).copied();
        let mut settings = *self;
        for ((key, _), setting) in parameters(side).iter().zip(&mut settings.0) {
            if *setting != Setting::Auto {
                continue;
            }
            *setting = match *key {
                "source_ip" | "interface_ip" => Setting::Address(interface),
                "destination_ip" => Setting::Address(*destination.map(|to| *to.ip()).as_ref().ok_or_else(
                    || format!("transport_params[{leg}].destination_ip: this sender has no default for `auto`"),
                )?),
                _ => Setting::Port(destination.map_or(PORT, |to| to.port())),
            };
        }
        Ok((settings, settings.leg(side)))
    }

    fn leg(&self, side: Side) -> Leg {
        let address = |key| match self.get(side, key) {
            Setting::Address(address) => Some(address),
            _ => None,
        };
        let port = |key| match self.get(side, key) {
            Setting::Port(port) => port,
            _ => 0,
        };
        let (interface, source, destination, source_port) = match side {
            Side::Sender => ("source_ip", None, "destination_ip", port("source_port")),
            Side::Receiver => ("interface_ip", address("source_ip"), "multicast_ip", 0),
        };
        Leg {
            enabled: self.get(side, "rtp_enabled") == Setting::Flag(true),
            interface: address(interface).unwrap_or(Ipv4Addr::UNSPECIFIED),
            source,
            destination: address(destination),
            port: port("destination_port"),
            source_port,
        }
    }
}

impl Changes {
    /// What a receiver's session description says: group or own address, source, port.
    pub fn described(destination: Ipv4Addr, source: Option<Ipv4Addr>, port: u16) -> Self {
        let source = source.map_or(Setting::Null, Setting::Address);
        let group = Some(destination).filter(Ipv4Addr::is_multicast);
        let group = group.map_or(Setting::Null, Setting::Address);
        Self([
            Some(source),
            Some(group),
            None,
            Some(Setting::Port(port)),
            Some(Setting::Flag(true)),
        ])
    }

    /// A leg that carries nothing.
    pub fn unused() -> Self {
        Self([None, None, None, None, Some(Setting::Flag(false))])
    }

    /// The same with later changes over them.
    pub fn then(mut self, later: &Self) -> Self {
        for (own, later) in self.0.iter_mut().zip(later.0) {
            *own = later.or(*own);
        }
        self
    }

    /// Reads the parameters of one leg; `at` names it in refusals.
    ///
    /// # Errors
    /// What is wrong: the place, what was expected, what was found.
    pub fn read(side: Side, value: &Value, at: &str, own: &Own) -> Result<Self, String> {
        let Value::Object(pairs) = value else {
            return Err(format!("{at}: expected an object, found {}", found(value)));
        };
        let mut changes = Self::default();
        for (key, value) in pairs {
            let place = parameters(side).iter().position(|(name, _)| name == key);
            let Some(place) = place else {
                let known: Vec<&str> = parameters(side).iter().map(|(name, _)| *name).collect();
                let key = found(&json!(key));
                return Err(format!("{at}: expected only {}, found {key}", known.join(", ")));
            };
            let (name, kind) = parameters(side)[place];
            let setting = setting(kind, value);
            let wrong = |expected: &str| {
                format!("{at}.{name}: expected {expected}, found {}", found(value))
            };
            let setting = setting.map_err(wrong)?;
            check(name, setting, own).map_err(|expected| wrong(&expected))?;
            changes.0[place] = Some(setting);
        }
        Ok(changes)
    }
}

fn setting(kind: Kind, value: &Value) -> Result<Setting, &'static str> {
    let address = |text: &String| text.parse().ok().map(Setting::Address);
    match (kind, value) {
        (Kind::Address | Kind::Port { .. }, Value::String(text)) if text == "auto" => {
            Ok(Setting::Auto)
        }
        (Kind::AddressOrNull, Value::Null) => Ok(Setting::Null),
        (Kind::Address, Value::String(text)) => address(text).ok_or("an IPv4 address or \"auto\""),
        (Kind::AddressOrNull, Value::String(text)) => {
            address(text).ok_or("an IPv4 address or null")
        }
        (Kind::Port { least }, Value::Number(number)) => number
            .as_u64()
            .and_then(|number| u16::try_from(number).ok())
            .filter(|port| *port >= least)
            .map(Setting::Port)
            .ok_or(port_expected(least)),
        (Kind::Flag, Value::Bool(flag)) => Ok(Setting::Flag(*flag)),
        (Kind::Address, _) => Err("an IPv4 address or \"auto\""),
        (Kind::AddressOrNull, _) => Err("an IPv4 address or null"),
        (Kind::Port { least }, _) => Err(port_expected(least)),
        (Kind::Flag, _) => Err("true or false"),
    }
}

const fn port_expected(least: u16) -> &'static str {
    match least {
        0 => "a port, 0 to 65535, or \"auto\"",
        _ => "a port, 1 to 65535, or \"auto\"",
    }
}

/// The constraints beyond those of the schema.
fn check(name: &str, setting: Setting, own: &Own) -> Result<(), String> {
    let Setting::Address(address) = setting else { return Ok(()) };
    match name {
        "multicast_ip" if !address.is_multicast() => {
            Err("a multicast group, 224.0.0.0/4".to_owned())
        }
        // A sender's source and a receiver's interface are addresses of this device; a receiver's source is another's.
        "interface_ip" if !own.interfaces.contains(&address) => Err(one_of(own)),
        "destination_ip" if address.is_unspecified() || address.is_broadcast() => {
            Err("the address of a host or a multicast group".to_owned())
        }
        _ => Ok(()),
    }
}

/// A sender's own addresses; distinguished from a receiver's `source_ip` by the side.
pub(super) fn check_source(
    side: Side,
    changes: &Changes,
    at: &str,
    own: &Own,
) -> Result<(), String> {
    match (side, changes.0[0]) {
        (Side::Sender, Some(Setting::Address(address))) if !own.interfaces.contains(&address) => {
            Err(format!("{at}.source_ip: expected {}, found \"{address}\"", one_of(own)))
        }
        _ => Ok(()),
    }
}

fn one_of(own: &Own) -> String {
    let mut known: Vec<String> = own.interfaces.iter().map(ToString::to_string).collect();
    known.dedup();
    format!("\"auto\" or an address of this device: {}", known.join(", "))
}

/// The constraints of one leg, as `/constraints` lists them.
pub fn constraints(side: Side, own: &Own) -> Value {
    let mut addresses: Vec<String> = own.interfaces.iter().map(ToString::to_string).collect();
    addresses.dedup();
    let ipv4 = json!({ "pattern": "^([0-9]{1,3}\\.){3}[0-9]{1,3}$" });
    let of = |(key, kind): &Parameter| {
        let constraint = match (side, *key, kind) {
            (Side::Sender, "source_ip", _) | (_, "interface_ip", _) => json!({ "enum": addresses }),
            (_, _, Kind::Address | Kind::AddressOrNull) => ipv4.clone(),
            _ => json!({}),
        };
        ((*key).to_owned(), constraint)
    };
    Value::Object(parameters(side).iter().map(of).collect::<Map<_, _>>())
}
