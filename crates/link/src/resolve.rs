//! From what a user wrote to what a link needs: layers merged, traces read, meaning checked.

use std::ops::RangeInclusive;
use std::path::Path;

use suiro_units::{BitRate, Bytes, Duration, Ratio};

use crate::check::{
    BURST, DELAY, FLOWS, MAX_LIST, PIE_BURST, PIE_UPDATE, QUANTUM, QUEUE_PACKETS, RATE, SPAN,
};
use crate::config::{
    CodelConfig, DEFAULT_AQM_PACKETS, DisciplineConfig, FqCodelConfig, GilbertElliott,
    JitterConfig, LimitConfig, LinkConfig, LossConfig, PathConfig, PieConfig, PropagationConfig,
    QueueConfig, ReorderConfig, ServerConfig,
};
use crate::error::ConfigError;
use crate::schedule::{Change, Schedule};
use crate::spec::{
    ChangeSpec, Discipline, JitterSpec, LimitSpec, LinkSpec, LossModel, LossSpec, LossTable,
    PathSpec, QueueSpec, ReorderSpec, ServiceSpec, TraceSpec, TraceTable,
};
use crate::trace::{RateCurve, RateStep, parse_csv, parse_mahimahi};

/// Reads a trace's file: its text, or why it cannot be had.
type ReadTrace<'a> = dyn FnMut(&Path) -> Result<String, String> + 'a;

const MAX_AT: Duration = Duration::from_secs(24 * 3600);
const MAX_CHANGES: usize = 100_000;
const MAX_QUEUE_BYTES: Bytes = Bytes::new(1 << 40);
/// One round trip around the world: the rule of thumb for a buffer (Villamizar and Song, "High
/// performance TCP in ANSNET", 1994).
const DEFAULT_LIMIT: Duration = Duration::from_millis(100);
/// RFC 8290 §5.2.3.
const DEFAULT_FQ_PACKETS: u32 = 10_240;

impl LinkSpec {
    /// Applies the preset, reads the traces through `traces`, and checks what it all means.
    ///
    /// # Errors
    /// A value out of range, keys that contradict one another or lack another, or a trace that
    /// cannot be read; the error names the key.
    pub fn resolve(
        &self,
        traces: &mut dyn FnMut(&Path) -> Result<String, String>,
    ) -> Result<LinkConfig, ConfigError> {
        let preset = self.preset.map(|preset| preset.spec()).unwrap_or_default();
        let path = |name: &'static str, own: fn(&Self) -> &Option<PathSpec>| {
            let mut layers = Layers::default();
            layers.add("preset", preset.both())?;
            layers.add("preset", own(&preset).clone().unwrap_or_default())?;
            layers.add("", self.both())?;
            layers.add(name, own(self).clone().unwrap_or_default())?;
            Ok::<_, ConfigError>(layers)
        };
        let [down, up] = [path("down", |spec| &spec.down)?, path("up", |spec| &spec.up)?];
        let wifi = match (preset.wifi, self.wifi.clone()) {
            (Some(lower), Some(upper)) => Some(upper.over(lower)),
            (lower, upper) => upper.or(lower),
        };
        let wifi = wifi.map(crate::wifi::WifiSpec::resolve).transpose()?;
        let served = if wifi.is_some() { Served::ByWifi } else { Served::ByItself };
        Ok(LinkConfig {
            down: down.resolve(served, traces)?,
            up: up.resolve(served, traces)?,
            wifi,
        })
    }
}

/// Who serves a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Served {
    ByItself,
    ByWifi,
}

/// A value, and the key that it was written at.
#[derive(Debug, Clone)]
struct At<T> {
    key: String,
    value: T,
}

impl<T> At<T> {
    fn error(&self, message: impl Into<String>) -> ConfigError {
        ConfigError::new(&self.key, message)
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
    fn add(&mut self, layer: &str, spec: PathSpec) -> Result<(), ConfigError> {
        let key = |name: &str| match layer {
            "" => name.to_owned(),
            // A preset has no keys that a user could mend.
            "preset" => layer.to_owned(),
            _ => format!("{layer}.{name}"),
        };
        if spec.rate.is_some() && spec.trace.is_some() {
            let error = ConfigError::new(&key("trace"), "a trace replaces `rate`");
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

    fn resolve(
        self,
        served: Served,
        traces: &mut ReadTrace<'_>,
    ) -> Result<PathConfig, ConfigError> {
        self.check_changes()?;
        let server = match served {
            Served::ByItself => self.server(traces)?,
            Served::ByWifi => self.wifi_server()?,
        };
        Ok(PathConfig {
            loss: self.loss()?,
            queue: queue(self.queue.as_ref(), &server)?,
            server,
            propagation: self.propagation()?,
        })
    }

    /// Times in order, and no rate where there is none to change.
    fn check_changes(&self) -> Result<(), ConfigError> {
        let Some(changes) = &self.changes else { return Ok(()) };
        if changes.value.len() > MAX_CHANGES {
            return Err(changes.error(format!("at most {MAX_CHANGES} changes")));
        }
        let mut before: Option<Duration> = None;
        for (index, change) in changes.value.iter().enumerate() {
            let at = changes.below(&format!("{index}.at"));
            if before.is_some_and(|before| change.at <= before) {
                return Err(ConfigError::new(&at, "times of changes must increase"));
            }
            if change.at.is_zero() || change.at > MAX_AT {
                let hint = "write values from the start on as the link's own keys";
                let error = ConfigError::new(&at, format!("must be above 0, up to {MAX_AT}"));
                return Err(if change.at.is_zero() { error.hint(hint) } else { error });
            }
            let key = |name: &str| changes.below(&format!("{index}.{name}"));
            if change.rate.is_some() && self.rate.is_none() {
                let error = ConfigError::new(&key("rate"), "the link has no rate to change");
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
        mut check: impl FnMut(&At<T>) -> Result<U, ConfigError>,
    ) -> Result<Schedule<U>, ConfigError>
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

    fn server(&self, traces: &mut ReadTrace<'_>) -> Result<ServerConfig, ConfigError> {
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
            (Some(burst), None) => {
                check_range(burst, &BURST)?;
                Ok(ServerConfig::Bucket { rate: curve, burst: burst.value })
            }
            (None, Some(_)) => Ok(ServerConfig::Poisson(curve)),
            (None, None) => Ok(ServerConfig::Steady(curve)),
        }
    }

    /// Wi-Fi says all about the rate.
    fn wifi_server(&self) -> Result<ServerConfig, ConfigError> {
        let refused = (self.rate.as_ref().map(|at| &at.key))
            .or(self.trace.as_ref().map(|at| &at.key))
            .or(self.burst.as_ref().map(|at| &at.key))
            .or(self.service.as_ref().map(|at| &at.key));
        match refused {
            None => Ok(ServerConfig::Wifi),
            Some(key) => {
                Err(ConfigError::new(key, "`wifi` replaces it").hint("write one of the two"))
            }
        }
    }

    fn check_no_service(&self, what: &str) -> Result<(), ConfigError> {
        let refuse = |key: &str, name| {
            let error = ConfigError::new(key, format!("{what} has no `{name}`"));
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

    fn curve(&self, rate: &At<BitRate>) -> Result<RateCurve, ConfigError> {
        let check = |rate: &At<BitRate>| {
            check_range(rate, &RATE)?;
            Ok(rate.value)
        };
        let schedule = self.schedule(check(rate)?, "rate", |c| c.rate.as_ref(), check)?;
        let steps = schedule.steps().map(|(at, &rate)| RateStep { at, rate }).collect();
        let curve = RateCurve { steps, period: None };
        if !curve.carries() {
            let error = rate.error("a rate of 0 that never changes carries no packets");
            return Err(error.hint("end the outage with an entry in `changes`, or write loss = 1"));
        }
        Ok(curve)
    }

    fn loss(&self) -> Result<Schedule<LossConfig>, ConfigError> {
        let first = self.loss.as_ref().map(loss).transpose()?.unwrap_or(LossConfig::None);
        self.schedule(first, "loss", |change| change.loss.as_ref(), loss)
    }

    fn propagation(&self) -> Result<PropagationConfig, ConfigError> {
        let check = |delay: &At<Duration>| {
            check_range(delay, &DELAY)?;
            Ok(delay.value)
        };
        let first = self.delay.as_ref().map(check).transpose()?.unwrap_or_default();
        let ratio = |ratio: &Option<At<Ratio>>| ratio.as_ref().map_or(Ratio::ZERO, |at| at.value);
        Ok(PropagationConfig {
            delay: self.schedule(first, "delay", |change| change.delay.as_ref(), check)?,
            jitter: self.jitter.as_ref().map(jitter).transpose()?,
            reorder: self.reorder.as_ref().map(reorder).transpose()?,
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
        flows: upper.flows.or(lower.flows),
        quantum: upper.quantum.or(lower.quantum),
    }
}

fn check_range<T>(at: &At<T>, range: &RangeInclusive<T>) -> Result<(), ConfigError>
where
    T: PartialOrd + std::fmt::Display,
{
    if range.contains(&at.value) {
        return Ok(());
    }
    let (least, most) = (range.start(), range.end());
    Err(at.error(format!("{} is out of range: {least} to {most}", at.value)))
}

enum Trace {
    Curve(RateCurve),
    Opportunities(ServerConfig),
}

fn read_trace(at: &At<TraceSpec>, traces: &mut ReadTrace<'_>) -> Result<Trace, ConfigError> {
    let (file, repeat) = match &at.value {
        TraceSpec::File(file) => (file, None),
        TraceSpec::Table(TraceTable { file, repeat }) => (file, *repeat),
    };
    let text = traces(file).map_err(|why| at.error(why))?;
    let is_csv = file.extension().is_some_and(|end| end.eq_ignore_ascii_case("csv"));
    if is_csv {
        let curve = parse_csv(&text, repeat.unwrap_or(false));
        return curve
            .map(Trace::Curve)
            .map_err(|error| at.error(format!("{} {error}", file.display())));
    }
    let mut trace = parse_mahimahi(&text).map_err(|error| {
        let error = at.error(format!("{} {error}", file.display()));
        error.hint(
            "a CSV trace must have a name that ends in .csv; other traces are read as \
        Mahimahi's format",
        )
    })?;
    trace.repeat = repeat.unwrap_or(true);
    Ok(Trace::Opportunities(ServerConfig::Trace(trace)))
}

fn loss(at: &At<LossSpec>) -> Result<LossConfig, ConfigError> {
    let table = match &at.value {
        LossSpec::Ratio(ratio) => return Ok(bernoulli(*ratio)),
        LossSpec::Table(table) => table,
    };
    check_loss_keys(at, table)?;
    let required = |name: &str, value: Option<Ratio>| {
        let missing = || at.error(format!("the key `{name}` is missing"));
        value.ok_or_else(missing)
    };
    let above_zero = |name: &str, value: Option<Ratio>| match required(name, value)? {
        Ratio::ZERO => Err(ConfigError::new(&at.below(name), "must be above 0")),
        ratio => Ok(ratio),
    };
    match table.model {
        LossModel::None => Ok(LossConfig::None),
        LossModel::Bernoulli => Ok(bernoulli(required("ratio", table.ratio)?)),
        LossModel::GilbertElliott => Ok(LossConfig::GilbertElliott(GilbertElliott {
            good_to_bad: above_zero("good_to_bad", table.good_to_bad)?,
            bad_to_good: above_zero("bad_to_good", table.bad_to_good)?,
            loss_good: table.loss_good.unwrap_or(Ratio::ZERO),
            loss_bad: table.loss_bad.unwrap_or(Ratio::new(1.0).expect("1 is a ratio")),
        })),
        LossModel::List => {
            let Some(packets) = &table.packets else {
                return Err(at.error("the key `packets` is missing"));
            };
            if !packets.is_sorted_by(|a, b| a < b) {
                let key = at.below("packets");
                return Err(ConfigError::new(&key, "numbers of packets must increase"));
            }
            if packets.len() > MAX_LIST {
                let key = at.below("packets");
                return Err(ConfigError::new(&key, format!("at most {MAX_LIST} packets")));
            }
            Ok(LossConfig::List(packets.clone()))
        }
    }
}

fn bernoulli(ratio: Ratio) -> LossConfig {
    if ratio == Ratio::ZERO { LossConfig::None } else { LossConfig::Bernoulli(ratio) }
}

/// Refuses keys of another model.
fn check_loss_keys(at: &At<LossSpec>, table: &LossTable) -> Result<(), ConfigError> {
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
            Err(ConfigError::new(&at.below(name), "is not a key of this loss model"))
        }
    }
}

fn jitter(at: &At<JitterSpec>) -> Result<JitterConfig, ConfigError> {
    let JitterSpec { distribution, sd, order } = at.value;
    check_range(&At { key: at.below("sd"), value: sd }, &SPAN)?;
    Ok(JitterConfig { distribution, sd, order })
}

fn reorder(at: &At<ReorderSpec>) -> Result<ReorderConfig, ConfigError> {
    let ReorderSpec { chance, by } = at.value;
    check_range(&At { key: at.below("by"), value: by }, &SPAN)?;
    Ok(ReorderConfig { chance, by })
}

fn queue(at: Option<&At<QueueSpec>>, server: &ServerConfig) -> Result<QueueConfig, ConfigError> {
    let nothing = At { key: "queue".to_owned(), value: QueueSpec::default() };
    let at = at.unwrap_or(&nothing);
    let discipline = discipline(at)?;
    let default = match (&discipline, server) {
        (DisciplineConfig::Droptail, ServerConfig::Unlimited | ServerConfig::Wifi) => {
            LimitSpec::Packets(DEFAULT_AQM_PACKETS)
        }
        (DisciplineConfig::Droptail, _) => LimitSpec::Time(DEFAULT_LIMIT),
        (DisciplineConfig::FqCodel(_), _) => LimitSpec::Packets(DEFAULT_FQ_PACKETS),
        (DisciplineConfig::Codel(_) | DisciplineConfig::Pie(_), _) => {
            LimitSpec::Packets(DEFAULT_AQM_PACKETS)
        }
    };
    let limit = At { key: at.below("limit"), value: at.value.limit.unwrap_or(default) };
    Ok(QueueConfig { limit: resolve_limit(&limit, server)?, discipline })
}

fn resolve_limit(at: &At<LimitSpec>, server: &ServerConfig) -> Result<LimitConfig, ConfigError> {
    let ranged = |ok: bool, range: &str| {
        if ok { Ok(()) } else { Err(at.error(format!("{} is out of range: {range}", at.value))) }
    };
    match at.value {
        LimitSpec::Packets(packets) => {
            let (least, most) = (QUEUE_PACKETS.start(), QUEUE_PACKETS.end());
            ranged(QUEUE_PACKETS.contains(&packets), &format!("{least}p to {most}p"))?;
            Ok(LimitConfig::Packets(packets))
        }
        LimitSpec::Size(size) => {
            let ok = size > Bytes::ZERO && size <= MAX_QUEUE_BYTES;
            ranged(ok, &format!("1 B to {MAX_QUEUE_BYTES}"))?;
            Ok(LimitConfig::Bytes(Schedule::constant(size)))
        }
        LimitSpec::Time(time) => {
            let ok = !time.is_zero() && DELAY.contains(&time);
            ranged(ok, &format!("1 ns to {}", DELAY.end()))?;
            if matches!(server, ServerConfig::Wifi) {
                let error =
                    at.error("a limit as a time needs a rate, which a Wi-Fi link does not have");
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
        ServerConfig::Unlimited | ServerConfig::Wifi => return None,
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

fn discipline(at: &At<QueueSpec>) -> Result<DisciplineConfig, ConfigError> {
    let spec = &at.value;
    let discipline = spec.discipline.unwrap_or_default();
    check_queue_keys(at, discipline)?;
    let positive = |name: &str, value: Option<Duration>, default: Duration| {
        let value = At { key: at.below(name), value: value.unwrap_or(default) };
        check_range(&value, &SPAN).map(|()| value.value)
    };
    let codel = || {
        let default = CodelConfig::default();
        Ok::<_, ConfigError>(CodelConfig {
            target: positive("target", spec.target, default.target)?,
            interval: positive("interval", spec.interval, default.interval)?,
            ecn: spec.ecn.unwrap_or(default.ecn),
        })
    };
    Ok(match discipline {
        Discipline::Droptail => DisciplineConfig::Droptail,
        Discipline::Codel => DisciplineConfig::Codel(codel()?),
        Discipline::Pie => DisciplineConfig::Pie(pie(at, positive)?),
        Discipline::FqCodel => {
            let default = FqCodelConfig::default();
            let flows = At { key: at.below("flows"), value: spec.flows.unwrap_or(default.flows) };
            check_range(&flows, &FLOWS)?;
            let quantum = spec.quantum.unwrap_or(default.quantum);
            let quantum = At { key: at.below("quantum"), value: quantum };
            check_range(&quantum, &QUANTUM)?;
            let (flows, quantum) = (flows.value, quantum.value);
            DisciplineConfig::FqCodel(FqCodelConfig { codel: codel()?, flows, quantum })
        }
    })
}

fn pie(
    at: &At<QueueSpec>,
    positive: impl Fn(&str, Option<Duration>, Duration) -> Result<Duration, ConfigError>,
) -> Result<PieConfig, ConfigError> {
    let (spec, default) = (&at.value, PieConfig::default());
    let update = At { key: at.below("update"), value: spec.update.unwrap_or(default.update) };
    check_range(&update, &PIE_UPDATE)?;
    let burst = At { key: at.below("burst"), value: spec.burst.unwrap_or(default.burst) };
    check_range(&burst, &PIE_BURST)?;
    Ok(PieConfig {
        target: positive("target", spec.target, default.target)?,
        update: update.value,
        burst: burst.value,
        ecn: spec.ecn.unwrap_or(default.ecn),
    })
}

/// Refuses keys of another discipline.
fn check_queue_keys(at: &At<QueueSpec>, discipline: Discipline) -> Result<(), ConfigError> {
    use Discipline::{Codel, FqCodel, Pie};
    let spec = &at.value;
    let keys: [(&str, bool, &[Discipline]); 7] = [
        ("target", spec.target.is_some(), &[Codel, Pie, FqCodel]),
        ("interval", spec.interval.is_some(), &[Codel, FqCodel]),
        ("update", spec.update.is_some(), &[Pie]),
        ("burst", spec.burst.is_some(), &[Pie]),
        ("ecn", spec.ecn.is_some(), &[Codel, Pie, FqCodel]),
        ("flows", spec.flows.is_some(), &[FqCodel]),
        ("quantum", spec.quantum.is_some(), &[FqCodel]),
    ];
    match keys.iter().find(|(_, present, of)| *present && !of.contains(&discipline)) {
        None => Ok(()),
        Some((name, ..)) => {
            let error = ConfigError::new(&at.below(name), "is not a key of this discipline");
            Err(match spec.discipline {
                Some(_) => error,
                None => error.hint("write `discipline`; without it a queue is droptail"),
            })
        }
    }
}
