//! From what a user wrote to what a link needs: layers merged, traces read, meaning checked.

use std::path::Path;

use suiro_units::{BitRate, Bytes, Duration, Ratio};

use crate::bounds::DUAL_SPAN;
use crate::config::{
    CodelConfig, DEFAULT_AQM_PACKETS, DisciplineConfig, Dualpi2Config, FqCodelConfig,
    GilbertElliott, JitterConfig, LimitConfig, LinkConfig, LossConfig, PathConfig, PieConfig,
    PropagationConfig, QueueConfig, ReorderConfig, ServerConfig,
};
use crate::medium::cellular::CellularSpec;
use crate::medium::ethernet::EthernetSpec;
use crate::schedule::{Change, Schedule};
use crate::spec::{
    ChangeSpec, Discipline, JitterSpec, LimitSpec, LinkSpec, LossModel, LossSpec, LossTable,
    PathSpec, QueueSpec, ReorderSpec, ServiceSpec, TraceSpec, TraceTable,
};
use crate::trace::{RateCurve, RateStep, parse_csv, parse_mahimahi};
use suiro_strict::{Bounded, Keys, Refusal, Site, TextLine};

/// Reads a trace's file: its text, or why it cannot be had.
type ReadTrace<'a> = dyn FnMut(&Path) -> Result<String, String> + 'a;

/// One round trip around the world: the rule of thumb for a buffer (Villamizar and Song, "High
/// performance TCP in ANSNET", 1994).
const DEFAULT_LIMIT: Duration = Duration::from_millis(100);
/// RFC 8290 §5.2.3.
const DEFAULT_FQ_PACKETS: u32 = 10_240;
/// RFC 9332, appendix A.1; and the default of Linux, where there is no rate.
const DEFAULT_DUAL_LIMIT: Duration = Duration::from_millis(250);
const DEFAULT_DUAL_PACKETS: u32 = 10_000;
/// `IFQ_MAXLEN`, the output queue of an interface in 4.3BSD and what came from it.
const DEFAULT_INTERFACE_PACKETS: u32 = 50;

impl LinkSpec {
    /// Applies the preset, reads the traces through `traces`, and checks what it all means.
    ///
    /// # Errors
    /// A value out of range, keys that contradict one another or lack another, or a trace that
    /// cannot be read; the error names the key.
    pub fn resolve(
        &self,
        traces: &mut dyn FnMut(&Path) -> Result<String, String>,
    ) -> Result<LinkConfig, Refusal> {
        self.check_bounds()?;
        let preset = self.preset.map(|preset| preset.spec()).unwrap_or_default();
        let path = |name: &'static str, own: fn(&Self) -> &Option<PathSpec>| {
            let mut layers = Layers::default();
            layers.add("preset", preset.both())?;
            layers.add("preset", own(&preset).clone().unwrap_or_default())?;
            layers.add("", self.both())?;
            layers.add(name, own(self).clone().unwrap_or_default())?;
            Ok::<_, Refusal>(layers)
        };
        let [down, up] = [path("down", |spec| &spec.down)?, path("up", |spec| &spec.up)?];
        let wifi = match (preset.wifi, self.wifi.clone()) {
            (Some(lower), Some(upper)) => Some(upper.over(lower)),
            (lower, upper) => upper.or(lower),
        };
        let wifi = wifi.map(crate::medium::wifi::WifiSpec::resolve).transpose()?;
        let ethernet = self.ethernet.as_ref().map(EthernetSpec::resolve).transpose()?;
        let cellular = self.cellular.map(CellularSpec::resolve).transpose()?;
        let media = [
            wifi.as_ref().map(|_| ("wifi", ServerConfig::Wifi)),
            ethernet.map(|_| ("ethernet", ServerConfig::Ethernet)),
            cellular.map(|_| ("cellular", ServerConfig::Cellular)),
        ];
        let mut media = media.into_iter().flatten();
        let served = match (media.next(), media.next()) {
            (None, _) => Served::ByItself,
            (Some((key, server)), None) => Served::ByMedium(key, server),
            (Some((first, _)), Some((key, _))) => {
                let error = Refusal::key(key, format!("the link has `{first}` already"));
                let hint = format!("write `{first}` or `{key}`, and no preset of the other");
                return Err(error.hint(hint));
            }
        };
        Ok(LinkConfig {
            down: down.resolve(&served, traces)?,
            up: up.resolve(&served, traces)?,
            wifi,
            ethernet,
            cellular,
        })
    }
}

/// Who serves a direction.
#[derive(Debug)]
enum Served {
    ByItself,
    /// By a medium that stations share: its key, and the server that stands for it.
    ByMedium(&'static str, ServerConfig),
}

/// A value, and the key that it was written at.
#[derive(Debug, Clone)]
struct At<T> {
    key: String,
    value: T,
}

impl<T> At<T> {
    fn error(&self, message: impl Into<String>) -> Refusal {
        Refusal::key(&self.key, message)
    }

    fn below(&self, inner: &str) -> String {
        format!("{}.{inner}", self.key)
    }
}

/// One direction's keys, later layers over earlier ones.
#[derive(Debug, Default)]
struct Layers {
    rate: Option<At<BitRate>>,
    burst: Option<At<Bytes>>,
    service: Option<At<ServiceSpec>>,
    trace: Option<At<TraceSpec>>,
    loss: Option<At<LossSpec>>,
    queue: Option<At<QueueSpec>>,
    delay: Option<At<Duration>>,
    jitter: Option<At<JitterSpec>>,
    reorder: Option<At<ReorderSpec>>,
    duplicate: Option<At<Ratio>>,
    corrupt: Option<At<Ratio>>,
    changes: Option<At<Vec<ChangeSpec>>>,
}

impl Layers {
    fn add(&mut self, layer: &str, spec: PathSpec) -> Result<(), Refusal> {
        let key = |name: &str| match layer {
            "" => name.to_owned(),
            // A preset has no keys that a user could fix.
            "preset" => layer.to_owned(),
            _ => format!("{layer}.{name}"),
        };
        if spec.rate.is_some() && spec.trace.is_some() {
            let error = Refusal::key(&key("trace"), "a trace replaces `rate`");
            return Err(error.hint("write one of the two"));
        }
        // A trace says all about the rate, and a rate replaces a trace.
        if spec.trace.is_some() {
            (self.rate, self.service, self.burst) = (None, None, None);
        }
        if spec.rate.is_some() {
            self.trace = None;
        }
        if let Some(queue) = spec.queue {
            let merged = match self.queue.take() {
                Some(lower) => merge_queue(lower.value, queue),
                None => queue,
            };
            self.queue = Some(At { key: key("queue"), value: merged });
        }
        put(&mut self.rate, key("rate"), spec.rate);
        put(&mut self.burst, key("burst"), spec.burst);
        put(&mut self.service, key("service"), spec.service);
        put(&mut self.trace, key("trace"), spec.trace);
        put(&mut self.loss, key("loss"), spec.loss);
        put(&mut self.delay, key("delay"), spec.delay);
        put(&mut self.jitter, key("jitter"), spec.jitter);
        put(&mut self.reorder, key("reorder"), spec.reorder);
        put(&mut self.duplicate, key("duplicate"), spec.duplicate);
        put(&mut self.corrupt, key("corrupt"), spec.corrupt);
        put(&mut self.changes, key("changes"), spec.changes);
        Ok(())
    }

    fn resolve(self, served: &Served, traces: &mut ReadTrace<'_>) -> Result<PathConfig, Refusal> {
        self.check_changes()?;
        let server = match served {
            Served::ByItself => self.server(traces)?,
            Served::ByMedium(key, server) => self.shared_server(key, server)?,
        };
        Ok(PathConfig {
            loss: self.loss()?,
            queue: queue(self.queue.as_ref(), &server)?,
            server,
            propagation: self.propagation()?,
        })
    }

    /// Times in order, and no rate where there is none to change.
    fn check_changes(&self) -> Result<(), Refusal> {
        let Some(changes) = &self.changes else { return Ok(()) };
        let mut before: Option<Duration> = None;
        for (index, change) in changes.value.iter().enumerate() {
            let at = changes.below(&format!("{index}.at"));
            if let Some(before) = before.filter(|before| change.at <= *before) {
                return Err(out_of_order(&at, change.at, &before.to_string()));
            }
            let key = |name: &str| changes.below(&format!("{index}.{name}"));
            if change.rate.is_some() && self.rate.is_none() {
                let error = Refusal::key(&key("rate"), "the link has no rate to change");
                return Err(match &self.trace {
                    Some(_) => error
                        .hint("remove `rate` from `changes`: the trace determines the whole rate"),
                    None => {
                        error.hint("write `rate` for this direction too: its value at the start")
                    }
                });
            }
            before = Some(change.at);
        }
        Ok(())
    }

    /// The value from the start with its changes, each with its key.
    fn schedule<T, U>(
        &self,
        first: U,
        name: &str,
        pick: impl Fn(&ChangeSpec) -> Option<&T>,
        mut check: impl FnMut(&At<T>) -> Result<U, Refusal>,
    ) -> Result<Schedule<U>, Refusal>
    where
        T: Clone,
    {
        let mut schedule = Schedule::constant(first);
        let Some(changes) = &self.changes else { return Ok(schedule) };
        for (index, change) in changes.value.iter().enumerate() {
            if let Some(value) = pick(change) {
                let key = changes.below(&format!("{index}.{name}"));
                let value = check(&At { key, value: value.clone() })?;
                schedule.changes.push(Change { at: change.at, value });
            }
        }
        Ok(schedule)
    }

    fn server(&self, traces: &mut ReadTrace<'_>) -> Result<ServerConfig, Refusal> {
        let curve = match (&self.trace, &self.rate) {
            (Some(trace), _) => match read_trace(trace, traces)? {
                Trace::Curve(curve) => Some(curve),
                Trace::Opportunities(server) => {
                    self.check_no_service("a trace in Mahimahi's format")?;
                    return Ok(server);
                }
            },
            (None, Some(rate)) => Some(self.curve(rate)?),
            (None, None) => None,
        };
        let Some(curve) = curve else {
            self.check_no_service("a link without `rate`")?;
            return Ok(ServerConfig::Unlimited);
        };
        let poisson = self.service.as_ref().filter(|at| at.value == ServiceSpec::Poisson);
        match (&self.burst, poisson) {
            (Some(burst), Some(_)) => {
                let error = burst.error(
                    "a token bucket cannot be combined with service \
                \"poisson\"",
                );
                Err(error.hint("write one of the two"))
            }
            (Some(burst), None) => Ok(ServerConfig::Bucket { rate: curve, burst: burst.value }),
            (None, Some(_)) => Ok(ServerConfig::Poisson(curve)),
            (None, None) => Ok(ServerConfig::Steady(curve)),
        }
    }

    /// The medium says all about the rate.
    fn shared_server(&self, medium: &str, server: &ServerConfig) -> Result<ServerConfig, Refusal> {
        let refused = (self.rate.as_ref().map(|at| &at.key))
            .or(self.trace.as_ref().map(|at| &at.key))
            .or(self.burst.as_ref().map(|at| &at.key))
            .or(self.service.as_ref().map(|at| &at.key));
        match refused {
            None => Ok(server.clone()),
            Some(key) => {
                let error = Refusal::key(key, format!("`{medium}` replaces it"));
                Err(error.hint("write one of the two"))
            }
        }
    }

    fn check_no_service(&self, what: &str) -> Result<(), Refusal> {
        let refuse = |key: &str, name| {
            let error = Refusal::key(key, format!("{what} has no `{name}`"));
            Err(error.hint("if it is for one direction only, write it below `down` or `up`"))
        };
        match (&self.burst, &self.service) {
            (Some(burst), _) => refuse(&burst.key, "burst"),
            (None, Some(service)) if service.value == ServiceSpec::Poisson => {
                refuse(&service.key, "service")
            }
            _ => Ok(()),
        }
    }

    fn curve(&self, rate: &At<BitRate>) -> Result<RateCurve, Refusal> {
        let schedule = self.schedule(rate.value, "rate", |c| c.rate.as_ref(), |at| Ok(at.value))?;
        let steps = schedule.steps().map(|(at, &rate)| RateStep { at, rate }).collect();
        let curve = RateCurve { steps, period: None };
        if !curve.carries() {
            let error = rate.error("a rate of 0 that never changes carries no packets");
            return Err(error.hint("end the outage with an entry in `changes`, or write loss = 1"));
        }
        Ok(curve)
    }

    fn loss(&self) -> Result<Schedule<LossConfig>, Refusal> {
        let first = self.loss.as_ref().map(loss).transpose()?.unwrap_or(LossConfig::None);
        self.schedule(first, "loss", |change| change.loss.as_ref(), loss)
    }

    fn propagation(&self) -> Result<PropagationConfig, Refusal> {
        let first = self.delay.as_ref().map_or(Duration::ZERO, |at| at.value);
        let ratio = |ratio: &Option<At<Ratio>>| ratio.as_ref().map_or(Ratio::ZERO, |at| at.value);
        Ok(PropagationConfig {
            delay: self.schedule(
                first,
                "delay",
                |change| change.delay.as_ref(),
                |at| Ok(at.value),
            )?,
            jitter: self.jitter.as_ref().and_then(jitter),
            reorder: self.reorder.as_ref().map(reorder),
            duplicate: ratio(&self.duplicate),
            corrupt: ratio(&self.corrupt),
        })
    }
}

fn put<T>(slot: &mut Option<At<T>>, key: String, value: Option<T>) {
    if let Some(value) = value {
        *slot = Some(At { key, value });
    }
}

/// Key by key; but parameters of another discipline do not come along.
fn merge_queue(lower: QueueSpec, upper: QueueSpec) -> QueueSpec {
    let other = upper.discipline.is_some() && upper.discipline != lower.discipline;
    let lower =
        if other { QueueSpec { limit: lower.limit, ..QueueSpec::default() } } else { lower };
    QueueSpec {
        limit: upper.limit.or(lower.limit),
        discipline: upper.discipline.or(lower.discipline),
        target: upper.target.or(lower.target),
        interval: upper.interval.or(lower.interval),
        update: upper.update.or(lower.update),
        burst: upper.burst.or(lower.burst),
        ecn: upper.ecn.or(lower.ecn),
        ce_threshold: upper.ce_threshold.or(lower.ce_threshold),
        flows: upper.flows.or(lower.flows),
        quantum: upper.quantum.or(lower.quantum),
    }
}

fn out_of_order(key: &str, found: impl std::fmt::Display, before: &str) -> Refusal {
    Refusal::key(key, format!("{found} is out of order")).expected(format!("more than {before}"))
}

enum Trace {
    Curve(RateCurve),
    Opportunities(ServerConfig),
}

fn read_trace(at: &At<TraceSpec>, traces: &mut ReadTrace<'_>) -> Result<Trace, Refusal> {
    let (file, repeat) = match &at.value {
        TraceSpec::File(file) => (file, None),
        TraceSpec::Table(TraceTable { file, repeat }) => (file, *repeat),
    };
    let text = traces(file)
        .map_err(|why| at.error(why).hint("a relative path begins at the scenario's folder"))?;
    let is_csv = file.extension().is_some_and(|end| end.eq_ignore_ascii_case("csv"));
    if is_csv {
        let curve = parse_csv(&text, repeat.unwrap_or(false));
        return curve.map(Trace::Curve).map_err(|fault| in_trace(at, file, fault));
    }
    let mut trace = parse_mahimahi(&text).map_err(|error| {
        in_trace(at, file, error).hint(
            "a CSV trace must have a name that ends in .csv; other traces are read as \
        Mahimahi's format",
        )
    })?;
    trace.repeat = repeat.unwrap_or(true);
    Ok(Trace::Opportunities(ServerConfig::Trace(trace)))
}

/// What is wrong with a line of a trace, at the key that names the file.
fn in_trace(at: &At<TraceSpec>, file: &Path, fault: Refusal<TextLine>) -> Refusal {
    let found = format!("{} {}: {}", file.display(), fault.place.name(), fault.found);
    Refusal { found, ..fault.at(|_| Keys::of(&at.key)) }
}

fn loss(at: &At<LossSpec>) -> Result<LossConfig, Refusal> {
    let table = match &at.value {
        LossSpec::Ratio(ratio) => return Ok(bernoulli(*ratio)),
        LossSpec::Table(table) => table,
    };
    check_loss_keys(at, table)?;
    let required = |name: &str, value: Option<Ratio>| {
        let missing = || missing(at, name);
        value.ok_or_else(missing)
    };
    match table.model {
        LossModel::None => Ok(LossConfig::None),
        LossModel::Bernoulli => Ok(bernoulli(required("ratio", table.ratio)?)),
        LossModel::GilbertElliott => Ok(LossConfig::GilbertElliott(GilbertElliott {
            good_to_bad: required("good_to_bad", table.good_to_bad)?,
            bad_to_good: required("bad_to_good", table.bad_to_good)?,
            loss_good: table.loss_good.unwrap_or(Ratio::ZERO),
            loss_bad: table.loss_bad.unwrap_or(Ratio::new(1.0).expect("1 is a ratio")),
        })),
        LossModel::List => {
            let Some(packets) = &table.packets else {
                return Err(missing(at, "packets"));
            };
            if let Some(pair) = packets.windows(2).find(|pair| pair[1] <= pair[0]) {
                return Err(out_of_order(&at.below("packets"), pair[1], &pair[0].to_string()));
            }
            Ok(LossConfig::List(packets.clone()))
        }
    }
}

fn missing(at: &At<LossSpec>, name: &str) -> Refusal {
    let hint = format!("add `{name} = …`");
    at.error(format!("the key `{name}` is missing")).hint(hint)
}

fn bernoulli(ratio: Ratio) -> LossConfig {
    if ratio == Ratio::ZERO { LossConfig::None } else { LossConfig::Bernoulli(ratio) }
}

/// Refuses keys of another model.
fn check_loss_keys(at: &At<LossSpec>, table: &LossTable) -> Result<(), Refusal> {
    use LossModel::{Bernoulli, GilbertElliott, List};
    let keys = [
        ("ratio", table.ratio.is_some(), Bernoulli),
        ("good_to_bad", table.good_to_bad.is_some(), GilbertElliott),
        ("bad_to_good", table.bad_to_good.is_some(), GilbertElliott),
        ("loss_good", table.loss_good.is_some(), GilbertElliott),
        ("loss_bad", table.loss_bad.is_some(), GilbertElliott),
        ("packets", table.packets.is_some(), List),
    ];
    match keys.iter().find(|(_, present, model)| *present && *model != table.model) {
        None => Ok(()),
        Some((name, ..)) => {
            let found = format!("`{name}` is not a key of this loss model");
            Err(Refusal::key(&at.below(name), found).hint("remove it, or choose its model"))
        }
    }
}

fn jitter(at: &At<JitterSpec>) -> Option<JitterConfig> {
    let JitterSpec { distribution, sd, order } = at.value;
    (!sd.is_zero()).then_some(JitterConfig { distribution, sd, order })
}

fn reorder(at: &At<ReorderSpec>) -> ReorderConfig {
    let ReorderSpec { chance, by } = at.value;
    ReorderConfig { chance, by }
}

fn queue(at: Option<&At<QueueSpec>>, server: &ServerConfig) -> Result<QueueConfig, Refusal> {
    let nothing = At { key: "queue".to_owned(), value: QueueSpec::default() };
    let at = at.unwrap_or(&nothing);
    let discipline = discipline(at)?;
    let default = match (&discipline, server) {
        (DisciplineConfig::Droptail, ServerConfig::Ethernet) => {
            LimitSpec::Packets(DEFAULT_INTERFACE_PACKETS)
        }
        (
            DisciplineConfig::Droptail,
            ServerConfig::Unlimited | ServerConfig::Wifi | ServerConfig::Cellular,
        ) => LimitSpec::Packets(DEFAULT_AQM_PACKETS),
        (DisciplineConfig::Droptail, _) => LimitSpec::Time(DEFAULT_LIMIT),
        (DisciplineConfig::FqCodel(_), _) => LimitSpec::Packets(DEFAULT_FQ_PACKETS),
        (DisciplineConfig::Dualpi2(_), server) if server.is_shared() => {
            LimitSpec::Packets(DEFAULT_DUAL_PACKETS)
        }
        (DisciplineConfig::Dualpi2(_), _) => LimitSpec::Time(DEFAULT_DUAL_LIMIT),
        (DisciplineConfig::Codel(_) | DisciplineConfig::Pie(_), _) => {
            LimitSpec::Packets(DEFAULT_AQM_PACKETS)
        }
    };
    let limit = At { key: at.below("limit"), value: at.value.limit.unwrap_or(default) };
    Ok(QueueConfig { limit: resolve_limit(&limit, server)?, discipline })
}

fn resolve_limit(at: &At<LimitSpec>, server: &ServerConfig) -> Result<LimitConfig, Refusal> {
    match at.value {
        LimitSpec::Packets(packets) => Ok(LimitConfig::Packets(packets)),
        LimitSpec::Size(size) => Ok(LimitConfig::Bytes(Schedule::constant(size))),
        LimitSpec::Time(time) => {
            if server.is_shared() {
                let error = at.error(
                    "a limit as a time needs a rate; a shared medium has none for one station",
                );
                return Err(error.hint("write packets \"256p\" or a size \"300 kB\""));
            }
            // Where nothing limits the rate nothing ever waits: any limit does.
            let Some(bytes) = bytes_in(time, server) else {
                return Ok(LimitConfig::Packets(DEFAULT_AQM_PACKETS));
            };
            Ok(LimitConfig::Bytes(bytes))
        }
    }
}

/// What the rate in force carries in this time; in an outage, what the rate before it did.
fn bytes_in(time: Duration, server: &ServerConfig) -> Option<Schedule<Bytes>> {
    let curve = match server {
        ServerConfig::Unlimited
        | ServerConfig::Wifi
        | ServerConfig::Ethernet
        | ServerConfig::Cellular => return None,
        ServerConfig::Trace(trace) => return Some(Schedule::constant(trace.mean() * time)),
        ServerConfig::Steady(curve)
        | ServerConfig::Bucket { rate: curve, .. }
        | ServerConfig::Poisson(curve) => curve,
    };
    if curve.period.is_some() {
        return Some(Schedule::constant(curve.mean() * time));
    }
    let mut flowing = curve.steps.iter().filter(|step| !step.rate.is_zero());
    let first = flowing.next()?;
    let changes = flowing.map(|step| Change { at: step.at, value: step.rate * time }).collect();
    Some(Schedule { first: first.rate * time, changes })
}

fn discipline(at: &At<QueueSpec>) -> Result<DisciplineConfig, Refusal> {
    let spec = &at.value;
    let discipline = spec.discipline.unwrap_or_default();
    check_queue_keys(at, discipline)?;
    let default = CodelConfig::default();
    let codel = CodelConfig {
        target: spec.target.unwrap_or(default.target),
        interval: spec.interval.unwrap_or(default.interval),
        ecn: spec.ecn.unwrap_or(default.ecn),
        ce_threshold: spec.ce_threshold,
    };
    Ok(match discipline {
        Discipline::Droptail => DisciplineConfig::Droptail,
        Discipline::Codel => DisciplineConfig::Codel(codel),
        Discipline::Pie => {
            let default = PieConfig::default();
            DisciplineConfig::Pie(PieConfig {
                target: spec.target.unwrap_or(default.target),
                update: spec.update.unwrap_or(default.update),
                burst: spec.burst.unwrap_or(default.burst),
                ecn: spec.ecn.unwrap_or(default.ecn),
            })
        }
        Discipline::FqCodel => {
            let default = FqCodelConfig::default();
            let flows = spec.flows.unwrap_or(default.flows);
            let quantum = spec.quantum.unwrap_or(default.quantum);
            DisciplineConfig::FqCodel(FqCodelConfig { codel, flows, quantum })
        }
        Discipline::Dualpi2 => {
            let default = Dualpi2Config::default();
            let within = |name: &str, time| -> Result<Duration, Refusal> {
                DUAL_SPAN.check(Keys::of(&at.below(name)), time)
            };
            DisciplineConfig::Dualpi2(Dualpi2Config {
                target: within("target", spec.target.unwrap_or(default.target))?,
                interval: within("interval", spec.interval.unwrap_or(default.interval))?,
                ce_threshold: spec.ce_threshold.unwrap_or(default.ce_threshold),
            })
        }
    })
}

/// Refuses keys of another discipline.
fn check_queue_keys(at: &At<QueueSpec>, discipline: Discipline) -> Result<(), Refusal> {
    use Discipline::{Codel, Dualpi2, FqCodel, Pie};
    let spec = &at.value;
    let keys: [(&str, bool, &[Discipline]); 8] = [
        ("target", spec.target.is_some(), &[Codel, Pie, FqCodel, Dualpi2]),
        ("interval", spec.interval.is_some(), &[Codel, FqCodel, Dualpi2]),
        ("update", spec.update.is_some(), &[Pie]),
        ("burst", spec.burst.is_some(), &[Pie]),
        ("ecn", spec.ecn.is_some(), &[Codel, Pie, FqCodel]),
        ("ce_threshold", spec.ce_threshold.is_some(), &[Codel, FqCodel, Dualpi2]),
        ("flows", spec.flows.is_some(), &[FqCodel]),
        ("quantum", spec.quantum.is_some(), &[FqCodel]),
    ];
    match keys.iter().find(|(_, present, of)| *present && !of.contains(&discipline)) {
        None => Ok(()),
        Some((name, ..)) => {
            let found = format!("`{name}` is not a key of this discipline");
            let hint = match spec.discipline {
                Some(_) => "remove it, or choose its discipline",
                None => "write `discipline`; without it a queue is droptail",
            };
            Err(Refusal::key(&at.below(name), found).hint(hint))
        }
    }
}
