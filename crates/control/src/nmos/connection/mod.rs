//! One sender or receiver of the Connection API (IS-05 v1.1): what is staged, what is active, and activations at once or
//! at a time. Pure: the time is an argument, and what the streams do is behind [`Media`].

mod params;
mod patch;
#[cfg(test)]
mod tests;

use std::str::FromStr;

use serde_json::{Value, json};
use suiro_uncompressed::sdp::Description;
use suiro_units::Duration;

pub use params::{Leg, Own};
pub use patch::{Asked, Patch, Refused, SDP};

use self::params::Settings;
use super::{Ask, Id, Reply, Tai, door};

/// How far ahead an activation may be scheduled (IS-05 v1.1, Scheduled Activations: not far in the future).
pub const AHEAD_MAX: Duration = Duration::from_secs(3600);

/// Which end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// It sends.
    Sender,
    /// It receives.
    Receiver,
}

impl Side {
    /// Its name.
    pub const fn singular(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }

    /// Its name in paths.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Sender => "senders",
            Self::Receiver => "receivers",
        }
    }

    /// The key of the other end.
    const fn peer(self) -> &'static str {
        match self {
            Self::Sender => "receiver_id",
            Self::Receiver => "sender_id",
        }
    }
}

/// What a sender or receiver shall do from a time on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Whether it sends or receives (`master_enable`).
    pub enabled: bool,
    /// Its legs, in the order of ST 2022-7.
    pub legs: Vec<Leg>,
    /// The description of the stream that a receiver was given.
    pub description: Option<Description>,
}

/// The streams of a node: what activations act on.
pub trait Media {
    /// Brings a sender or receiver to a state at a time, or at once. Preparations that take time (sockets, rings) are made
    /// now. Returns the time at which the state changes, a frame boundary.
    ///
    /// # Errors
    /// Why it cannot, in words; then nothing has changed.
    fn activate(
        &mut self,
        id: &Id,
        wanted: &Wanted,
        now: Tai,
        at: Option<Tai>,
    ) -> Result<Tai, String>;

    /// Forgets a change that was scheduled: a sender or receiver stays in the state that is active.
    ///
    /// # Errors
    /// Why it cannot, in words; then the change comes to pass.
    fn cancel(&mut self, id: &Id, active: Option<&Wanted>) -> Result<(), String>;

    /// Whether a receiver can take a stream that is described so.
    ///
    /// # Errors
    /// Why not, in words.
    fn fits(&self, id: &Id, description: &Description) -> Result<(), String>;

    /// The session description of a sender that has been in this state since a time, its version; `None` if its packets have
    /// none.
    fn description(&self, id: &Id, wanted: &Wanted, since: Tai) -> Option<String>;
}

/// An activation that was asked for, and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Activation {
    asked: Asked,
    at: Tai,
}

/// A set of parameters: what is staged, or what is active.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Params {
    peer: Option<Id>,
    enabled: bool,
    file: Option<String>,
    legs: Vec<Settings>,
}

/// A sender or receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    id: Id,
    side: Side,
    own: Own,
    staged: Params,
    /// The activation that is scheduled: until then, what is staged is locked.
    pending: Option<(Activation, Params, Wanted)>,
    active: Params,
    activation: Option<Activation>,
    wanted: Option<Wanted>,
    changed: Tai,
}

impl Connection {
    /// One that does nothing yet.
    pub fn new(id: Id, side: Side, own: Own, now: Tai) -> Self {
        let legs = vec![Settings::initial(side); own.interfaces.len()];
        let params = Params { peer: None, enabled: false, file: None, legs };
        let (staged, active) = (params.clone(), params);
        let (pending, activation, wanted) = (None, None, None);
        let mut made =
            Self { id, side, own, staged, pending, active, activation, wanted, changed: now };
        // IS-05 v1.1, Behaviour: what is active never says `auto`. A sender without a default has nothing to say yet.
        if let Ok((active, wanted)) = made.resolved() {
            (made.active, made.wanted) = (active, Some(wanted));
        }
        made
    }

    /// Its identifier.
    pub const fn id(&self) -> &Id {
        &self.id
    }

    /// Which end it is.
    pub const fn side(&self) -> Side {
        self.side
    }

    /// How many legs it has.
    pub const fn legs(&self) -> usize {
        self.own.interfaces.len()
    }

    /// Whether it is active.
    pub const fn is_active(&self) -> bool {
        self.active.enabled
    }

    /// The other end, as the last activation named it.
    pub const fn peer(&self) -> Option<&Id> {
        self.active.peer.as_ref()
    }

    /// When its active parameters changed last.
    pub const fn changed(&self) -> Tai {
        self.changed
    }

    /// What it does, or would do; `None` for one that has no destination yet.
    pub const fn wanted(&self) -> Option<&Wanted> {
        self.wanted.as_ref()
    }

    /// The time of the activation that is scheduled.
    pub fn scheduled(&self) -> Option<Tai> {
        self.pending.as_ref().map(|(activation, ..)| activation.at)
    }

    /// What it will do then.
    pub fn scheduled_state(&self) -> Option<&Wanted> {
        self.pending.as_ref().map(|(_, _, wanted)| wanted)
    }

    /// Completes the activation that is scheduled, if its time has come. True if something has changed.
    pub fn advance(&mut self, now: Tai) -> bool {
        match self.pending.take_if(|(activation, ..)| activation.at <= now) {
            Some((activation, params, wanted)) => {
                self.apply(activation, params, wanted);
                true
            }
            None => false,
        }
    }

    /// The stream ended by itself: the active parameters show it (IS-05 v1.1, Scheduled Activations). True if something
    /// has changed.
    pub fn ended(&mut self, now: Tai) -> bool {
        if !self.active.enabled {
            return false;
        }
        self.active.enabled = false;
        if let Some(wanted) = &mut self.wanted {
            wanted.enabled = false;
        }
        self.changed = now;
        true
    }

    fn apply(&mut self, activation: Activation, params: Params, wanted: Wanted) {
        self.active = params;
        self.changed = self.changed.after(Duration::from_nanos(1)).max(activation.at);
        (self.activation, self.wanted) = (Some(activation), Some(wanted));
    }

    /// Answers a request to one of its resources: the path below its identifier.
    pub fn answer(&mut self, now: Tai, rest: &[&str], ask: &Ask, media: &mut dyn Media) -> Reply {
        match (rest, ask.method.as_str()) {
            (["staged"], "PATCH") => match ask.body() {
                Ok(body) => self.patch(now, &body, media),
                Err(reply) => reply,
            },
            (["staged"], "GET" | "HEAD") => Reply::json(200, &self.staged(None)),
            (["staged"], _) => door::not_allowed(ask, "GET, HEAD, PATCH"),
            _ => match door::reads(ask) {
                Ok(()) => self.read(rest, &ask.path, media),
                Err(reply) => reply,
            },
        }
    }

    fn read(&self, rest: &[&str], path: &str, media: &dyn Media) -> Reply {
        match (rest, self.side) {
            ([], Side::Sender) => door::listing(&[
                "constraints/",
                "staged/",
                "active/",
                "transportfile/",
                "transporttype/",
            ]),
            ([], Side::Receiver) => {
                door::listing(&["constraints/", "staged/", "active/", "transporttype/"])
            }
            (["constraints"], _) => {
                let leg = params::constraints(self.side, &self.own);
                Reply::json(200, &json!(vec![leg; self.own.interfaces.len()]))
            }
            (["active"], _) => Reply::json(200, &self.active()),
            (["transporttype"], _) => Reply::json(200, &json!("urn:x-nmos:transport:rtp")),
            (["transportfile"], Side::Sender) => self.transport_file(media),
            _ => door::missing(path),
        }
    }

    fn transport_file(&self, media: &dyn Media) -> Reply {
        let described = |wanted| media.description(&self.id, wanted, self.changed);
        let text = self.wanted.as_ref().and_then(described);
        match text {
            // IS-05 v1.1, Transport Files & Caching.
            Some(text) => Reply::text(SDP, text).with("cache-control", "no-cache"),
            None => Reply::refusal(
                404,
                "transportfile: this sender was never activated, or its packets have none",
            ),
        }
    }

    /// A request to change what is staged, and to activate it.
    pub fn patch(&mut self, now: Tai, body: &Value, media: &mut dyn Media) -> Reply {
        let patch = match Patch::read(self.side, body, &self.own) {
            Ok(patch) => patch,
            Err(Refused::Request(reason)) => return Reply::refusal(400, reason),
            Err(Refused::File(reason)) => return Reply::refusal(500, reason),
        };
        if let Some(description) = &patch.description
            && let Err(reason) = media.fits(&self.id, description)
        {
            return Reply::refusal(400, format!("transport_file.data: {reason}"));
        }
        if let Some(at) = self.scheduled().filter(|_| patch.activation != Some(Asked::Cancel)) {
            let error =
                format!("an activation is scheduled for {at}; cancel it with activation.mode null");
            return Reply::refusal(423, error);
        }
        if patch.activation == Some(Asked::Cancel) && self.pending.is_some() {
            if let Err(reason) = media.cancel(&self.id, self.wanted.as_ref()) {
                let error =
                    format!("the activation that is scheduled cannot be cancelled: {reason}");
                return Reply::refusal(500, error);
            }
            self.pending = None;
        }
        let at = match patch.activation {
            None | Some(Asked::Cancel) => {
                self.stage(&patch);
                return Reply::json(200, &self.staged(None));
            }
            Some(Asked::Immediate) => None,
            Some(Asked::At(time)) => Some(time),
            Some(Asked::After(span)) => Some(now.after(span)),
        };
        if let Some(at) = at
            && (at < now || at.since(now) > AHEAD_MAX)
        {
            let found = at.to_string();
            let error = format!(
                "activation.requested_time: expected from {now} on, one hour at most, found {found}"
            );
            return Reply::refusal(400, error);
        }
        let asked = patch.activation.unwrap_or(Asked::Immediate);
        let before = self.staged.clone();
        self.stage(&patch);
        self.activate(now, asked, at, media).unwrap_or_else(|reason| {
            self.staged = before;
            Reply::refusal(500, reason)
        })
    }

    fn stage(&mut self, patch: &Patch) {
        let staged = &mut self.staged;
        if let Some(peer) = &patch.peer {
            staged.peer.clone_from(peer);
        }
        staged.enabled = patch.enabled.unwrap_or(staged.enabled);
        if let Some(file) = &patch.file {
            staged.file.clone_from(file);
        }
        for (leg, changes) in staged.legs.iter_mut().zip(&patch.legs) {
            *leg = leg.with(changes);
        }
    }

    fn activate(
        &mut self,
        now: Tai,
        asked: Asked,
        at: Option<Tai>,
        media: &mut dyn Media,
    ) -> Result<Reply, String> {
        let (params, wanted) = self.resolved()?;
        let at = media.activate(&self.id, &wanted, now, at)?;
        let activation = Activation { asked, at };
        let reply = self.staged(Some(activation));
        match asked {
            Asked::Immediate => {
                self.apply(activation, params, wanted);
                Ok(Reply::json(200, &reply))
            }
            _ => {
                self.pending = Some((activation, params, wanted));
                Ok(Reply::json(202, &reply))
            }
        }
    }

    /// What is staged with every `auto` resolved.
    fn resolved(&self) -> Result<(Params, Wanted), String> {
        let legs = self.staged.legs.iter().enumerate();
        let legs: Vec<_> = legs
            .map(|(at, leg)| leg.resolved(self.side, at, &self.own))
            .collect::<Result<_, _>>()?;
        let (settings, legs) = legs.into_iter().unzip();
        let description = self.staged.file.as_deref().map(Description::from_str).transpose();
        let description = description.map_err(|error| format!("transport_file.data: {error}"))?;
        let wanted = Wanted { enabled: self.staged.enabled, legs, description };
        Ok((Params { legs: settings, ..self.staged.clone() }, wanted))
    }

    /// What is staged, with the activation that a request has just asked for, or with the one that is scheduled.
    fn staged(&self, activation: Option<Activation>) -> Value {
        let pending = self.pending.as_ref().map(|(activation, ..)| *activation);
        self.value(&self.staged, activation.or(pending))
    }

    fn active(&self) -> Value {
        self.value(&self.active, self.activation)
    }

    fn value(&self, params: &Params, activation: Option<Activation>) -> Value {
        let legs: Vec<Value> = params.legs.iter().map(|leg| leg.value(self.side)).collect();
        let text = |time: Option<Tai>| time.map(|time| time.to_string());
        let asked = activation.map(|activation| activation.asked);
        let mut value = json!({
            self.side.peer(): params.peer.as_ref().map(Id::as_str),
            "master_enable": params.enabled,
            "activation": {
                "mode": asked.and_then(Asked::mode),
                "requested_time": text(asked.and_then(Asked::requested)),
                "activation_time": text(activation.map(|activation| activation.at)),
            },
            "transport_params": legs,
        });
        if self.side == Side::Receiver {
            let kind = params.file.as_ref().map(|_| SDP);
            value["transport_file"] = json!({ "data": params.file, "type": kind });
        }
        value
    }
}
