//! The endpoint that sends: the loop between source, [`Sender`] and sockets, and the table `rate`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;

use suiro_clock::Clock;
use suiro_endpoint::{Context, Failure, Summary};
use suiro_media::live::FootageSpec;
use suiro_media::quantised::{GROUP, GROUP_DURATION, Set};
use suiro_rate::RateSpec;
use suiro_realtime::{Camera, EncoderLog, Share};
use suiro_record::flows::{FlowLog, Opened};
use suiro_record::tables::RateRow;
use suiro_record::words::FlowRole;
use suiro_record::{Text, Writer};
use suiro_scenario::{
    EndpointSpec, FeedbackFormat, Job, OnBreak, Pace, RoundTrip, RtcpTimes, RtpCodec, RtpSender,
    VersionRate,
};
use suiro_units::{BitRate, Bytes, Duration, Seed, Time};

use crate::EndpointError;
use crate::ecn;
use crate::net::{self, NetError, Pair};
use crate::sender::{Config, Counters, Period, ReportTimes, Sender, Transmit};
use crate::source::{Feed, Frame, Prepared};
use suiro_payload::{Codec, mpeg2};

/// Payload types of our streams: dynamic ones (RFC 3551 §3), and MPEG video's own.
pub const H264_TYPE: u8 = 96;
/// That of retransmissions.
pub const AGAIN_TYPE: u8 = 97;

/// Time within which frames of prepared video are sent: about three frame times. The size of a group is fixed when
/// it begins; if the rate control slows down within the group, its frames must not pile up.
const DRAIN: Duration = Duration::from_millis(100);

/// What a sender needs to know.
#[derive(Debug, Clone, PartialEq)]
pub struct SenderJob {
    /// Its name, for records.
    pub name: String,
    /// The receiver's name, for records.
    pub receiver: String,
    /// Host and RTP port of the receiver.
    pub to: (String, u16),
    /// The RTP port that it sends from.
    pub port: u16,
    /// What is sent.
    pub source: Source,
    /// How it finds its rate.
    pub control: RateSpec,
    /// Largest IP packet.
    pub packet: Bytes,
    /// When it reports.
    pub reports: ReportTimes,
    /// What it does when its circuit breaker is triggered.
    pub on_break: OnBreak,
    /// How the packets of a frame follow one another.
    pub pace: Pace,
    /// Between which moments the round-trip time is measured.
    pub rtt: RoundTrip,
    /// In which format the receiver reports what became of each packet.
    pub feedback: FeedbackFormat,
    /// Folder for records.
    pub dir: PathBuf,
    /// When to begin.
    pub start: Time,
    /// Times from and until which no video is sent, in order.
    pub pauses: Vec<(Time, Time)>,
    /// The seed of its random numbers.
    pub seed: Seed,
}

/// What is sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// What a camera sees, coded as H.264.
    Camera(FootageSpec),
    /// MPEG-2 video, prepared in several versions: the folder of the set, and by which rate they are chosen.
    Prepared(PathBuf, VersionRate),
}

impl SenderJob {
    /// What a trial's job file asks for; `None` if the endpoint is no RTP sender, or its receiver is not
    /// among the peers.
    pub fn from_job(job: &Job) -> Option<Self> {
        let EndpointSpec::RtpSender(spec) = &job.endpoint.spec else { return None };
        let peer = job.peers.get(&spec.to)?;
        Some(Self {
            name: job.endpoint.name.clone(),
            receiver: spec.to.clone(),
            to: (peer.host.clone(), peer.port?),
            port: spec.port,
            source: source(job, spec)?,
            control: spec.control.clone(),
            packet: spec.packet,
            reports: match spec.rtcp {
                RtcpTimes::Study => ReportTimes::Pictures(spec.report_pictures),
                RtcpTimes::Standard => ReportTimes::Standard,
            },
            on_break: spec.circuit_breaker,
            pace: spec.pace,
            rtt: spec.rtt,
            feedback: spec.feedback,
            dir: job.dir.clone(),
            start: Time::ZERO + job.endpoint.start,
            pauses: spec
                .pauses
                .iter()
                .map(|it| (Time::ZERO + it.from, Time::ZERO + it.to))
                .collect(),
            seed: job.seed,
        })
    }

    fn config(&self, clock: Clock) -> Config {
        let (codec, payload_type, drain) = match &self.source {
            Source::Camera(_) => (Codec::H264, H264_TYPE, None),
            Source::Prepared(..) => (Codec::Mpeg2, mpeg2::PAYLOAD_TYPE, Some(DRAIN)),
        };
        let times = match &self.source {
            Source::Camera(camera) => {
                let frame = Duration::from_secs(1) / u64::from(camera.fps.max(1));
                (frame, frame)
            }
            Source::Prepared(..) => (GROUP_DURATION / u64::from(GROUP), GROUP_DURATION),
        };
        Config {
            codec,
            payload_type,
            again_type: Some(AGAIN_TYPE),
            packet_max: self.packet,
            cname: format!("{}@suiro", self.name),
            reports: self.reports,
            drain: match self.pace {
                Pace::Target => drain,
                Pace::None => Some(Duration::ZERO),
            },
            rtt: self.rtt,
            feedback: self.feedback,
            times,
            on_break: self.on_break,
            pauses: self.pauses.clone(),
            epoch_unix_ns: clock.epoch_unix_ns(),
        }
    }
}

fn source(job: &Job, spec: &RtpSender) -> Option<Source> {
    match spec.codec {
        RtpCodec::H264 => spec.camera.clone().map(Source::Camera),
        RtpCodec::Mpeg2 => job.media.clone().map(|folder| Source::Prepared(folder, spec.choose)),
    }
}

/// What can be had before the stream begins.
enum AtHand {
    Camera(Camera, EncoderLog),
    Set(Box<Set>, VersionRate),
}

impl AtHand {
    fn get(job: &SenderJob) -> Result<Self, EndpointError> {
        match &job.source {
            Source::Camera(spec) => {
                let log = EncoderLog::create(&job.dir, &job.name)?;
                Ok(Self::Camera(Camera::prepare(spec)?.with_log(log.clone()), log))
            }
            Source::Prepared(folder, by) => Ok(Self::Set(Box::new(Set::load(folder)?), *by)),
        }
    }

    /// The source, whose first frame is due now.
    fn start(
        self,
        now: Time,
        clock: Clock,
        (target, packet): (BitRate, Bytes),
    ) -> Result<Feed, EndpointError> {
        match self {
            Self::Camera(camera, log) => {
                let rate = Share::default().encoder_rate(target, Bytes::ZERO);
                let feed = camera.start(now, rate, clock.epoch_unix_ns(), move || clock.now())?;
                Ok(Feed::Camera(feed, log))
            }
            Self::Set(set, by) => {
                let prepared = Prepared::new(*set, now, packet, by)?;
                Ok(Feed::Prepared(Box::new(prepared)))
            }
        }
    }
}

/// What woke the loop.
enum Woken {
    Frame(Option<Frame>),
    Rtcp(usize, SocketAddr),
    Due,
    Stopped,
}

/// Runs a trial's job of an RTP sender.
///
/// # Errors
/// If it is not one, or as [`run`].
pub fn run_job(job: &Job, context: Context) -> Result<Summary, Failure> {
    let work = SenderJob::from_job(job).ok_or("a sender's job names its receiver")?;
    let done = context.run(async |pulse, ready, stop| run(&work, pulse.clock(), ready, stop).await);
    Ok(Summary::of(&done?))
}

/// Sends until `stop` is ready. `ready` is called once, when all is at hand and the stream is about to
/// begin.
///
/// # Errors
/// [`EndpointError`].
pub async fn run(
    job: &SenderJob,
    clock: Clock,
    ready: impl FnOnce(),
    stop: impl Future<Output = ()>,
) -> Result<Counters, EndpointError> {
    job.feedback.check(&job.control)?;
    let source = AtHand::get(job)?;
    let pair = Pair::bind(job.port)?;
    let to = SocketAddr::from((net::address(&job.to.0).await?, job.to.1));
    let rates = Writer::create_of(&job.dir, &job.name)?;
    let mut flows = FlowLog::create(&job.dir, &job.name)?;
    let ends = (to.into(), rtcp_of(to).into());
    let opened = net::flows(FlowRole::Sender, job.port, ends, Some(&job.receiver))
        .map(|flow| flows.opened(clock.now(), flow));
    ready();
    let mut stop = std::pin::pin!(stop);
    tokio::select! {
        () = clock.sleep_until(job.start) => {}
        () = &mut stop => {}
    }
    let now = clock.now();
    if let Some(mode) = job.control.ecn {
        let set = ecn::send_with(&pair.rtp, mode.bits());
        set.map_err(|cause| NetError::Io { doing: "setting ECN", cause })?;
    }
    let controller = job.control.build(now).map_err(|refusal| refusal.below("control"))?;
    let feed = source.start(now, clock, (controller.target(), job.packet))?;
    let sender = Sender::new(now, job.config(clock), controller, job.seed.random());
    let name = job.name.as_str().into();
    Endpoint { clock, pair, to, feed, sender, rates, flows, opened, name }.run(stop).await
}

struct Endpoint {
    clock: Clock,
    pair: Pair,
    to: SocketAddr,
    feed: Feed,
    sender: Sender,
    rates: Writer<RateRow>,
    flows: FlowLog,
    opened: [Opened; 2],
    name: Text,
}

impl Endpoint {
    async fn run(
        mut self,
        mut stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Counters, EndpointError> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            self.work().await?;
            let target = self.sender.target();
            let woken = tokio::select! {
                biased;
                () = &mut stop => Woken::Stopped,
                received = net::receive(&self.pair.rtcp, &mut buffer) => {
                    let (length, from) = received?;
                    Woken::Rtcp(length, from)
                }
                frame = self.feed.next(self.clock, target) => Woken::Frame(frame?),
                () = self.clock.sleep_until_due(self.sender.next_event()) => Woken::Due,
            };
            match woken {
                Woken::Rtcp(length, from) => self.on_rtcp(&buffer[..length], from),
                Woken::Frame(Some(frame)) => {
                    self.sender.on_frame(self.clock.now(), &frame.as_source())?;
                }
                Woken::Due => {}
                Woken::Frame(None) => {
                    let now = self.clock.now();
                    self.opened.iter().for_each(|flow| self.flows.closed(now, *flow));
                    return self.finish().await;
                }
                Woken::Stopped => return self.finish().await,
            }
        }
    }

    /// Sends what is due, and follows the rate control.
    async fn work(&mut self) -> Result<(), EndpointError> {
        while let Some(transmit) = self.sender.poll(self.clock.now()) {
            match transmit {
                Transmit::Rtp(bytes) => net::send(&self.pair.rtp, &bytes, self.to).await?,
                Transmit::Rtcp(bytes) => {
                    net::send(&self.pair.rtcp, &bytes, rtcp_of(self.to)).await?;
                }
            }
        }
        self.feed.set_target(self.sender.target(), self.sender.queued());
        if self.sender.take_key_frame_request() {
            self.feed.request_key_frame();
        }
        while let Some(period) = self.sender.take_period() {
            self.rates.push(row(&self.name, &period))?;
        }
        Ok(())
    }

    /// Only the receiver's host is listened to, at the port that it has.
    fn on_rtcp(&mut self, bytes: &[u8], from: SocketAddr) {
        let now = self.clock.now();
        if from == rtcp_of(self.to) {
            self.sender.on_rtcp(now, bytes);
        } else {
            self.sender.on_stranger();
        }
    }

    async fn finish(mut self) -> Result<Counters, EndpointError> {
        self.sender.finish(self.clock.now());
        self.work().await?;
        self.feed.stop()?;
        self.rates.close()?;
        self.flows.close()?;
        Ok(self.sender.counters().clone())
    }
}

/// Where the RTCP of that RTP address is.
pub(crate) fn rtcp_of(rtp: SocketAddr) -> SocketAddr {
    SocketAddr::new(rtp.ip(), rtp.port().saturating_add(1))
}

fn row(endpoint: &Text, period: &Period) -> RateRow {
    let integer = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    RateRow {
        t_ns: integer(period.end.as_nanos()),
        endpoint: endpoint.clone(),
        period_ns: integer(period.length.as_nanos()),
        target_bps: integer(period.target.as_bps()),
        send_bps: integer(period.sent.as_bps()),
        media_bps: integer(period.media.as_bps()),
        loss_ratio: period.loss.map(|loss| loss.get()),
        rtt_ns: period.rtt.map(|rtt| integer(rtt.as_nanos())),
        recv_bps: period.received.map(|rate| integer(rate.as_bps())),
        quantiser: period.quantiser,
        encoder_bps: period.encoder.map(|rate| integer(rate.as_bps())),
        queue_bytes: integer(period.queued.get()),
        broken: period.broken.map(|cause| cause.to_string().into()),
        jitter_ns: period.jitter,
    }
}
