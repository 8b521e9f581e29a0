//! The endpoint that receives: the loop between sockets and [`Receiver`], and the table `frames`.

use std::net::SocketAddr;
use std::path::PathBuf;

use suiro_clock::Clock;
use suiro_endpoint::{Context, Failure, Pulse, Summary};
use suiro_media::screen;
use suiro_realtime::Log;
use suiro_record::flows::{End, FlowLog};
use suiro_record::words::FlowRole;
use suiro_scenario::{EndpointSpec, Job, RtcpTimes, RtpCodec};
use suiro_units::{Duration, Seed, Time};
use suiro_viewer::Policy;

use crate::EndpointError;
use crate::ecn::{self, Received};
use crate::net::{self, Pair};
use crate::receiver::{Config, Counters, Receiver};
use crate::send::{AGAIN_TYPE, H264_TYPE, rtcp_of};
use suiro_payload::{Codec, mpeg2};

/// Packets that are taken in before anything else is looked at.
const BATCH: usize = 64;

/// What a receiver needs to know.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceiverJob {
    /// Its name, for records.
    pub name: String,
    /// The endpoint that sends to it and records the flows; `None` if it is no endpoint of suiro, and the receiver
    /// records them.
    pub sender: Option<String>,
    /// The RTP port that it receives at.
    pub port: u16,
    /// How the video is coded.
    pub codec: Codec,
    /// Its payload type.
    pub payload_type: u8,
    /// Whether each sender report is answered at once.
    pub answer: bool,
    /// How often congestion control feedback is sent.
    pub feedback: Option<Duration>,
    /// Whether packets are asked for again.
    pub retransmission: bool,
    /// How it plays.
    pub viewer: Policy,
    /// Whether what could be decoded is kept, as `received.NAME.h264` or `.m2v`.
    pub save: bool,
    /// Folder for records.
    pub dir: PathBuf,
    /// The seed of its random numbers.
    pub seed: Seed,
}

impl ReceiverJob {
    /// What a trial's job file asks for; `None` if the endpoint is no RTP receiver.
    pub fn from_job(job: &Job) -> Option<Self> {
        let EndpointSpec::RtpReceiver(spec) = &job.endpoint.spec else { return None };
        let (codec, payload_type) = match spec.codec {
            RtpCodec::H264 => (Codec::H264, H264_TYPE),
            RtpCodec::Mpeg2 => (Codec::Mpeg2, mpeg2::PAYLOAD_TYPE),
        };
        Some(Self {
            name: job.endpoint.name.clone(),
            sender: job.referring().next().map(|(name, _)| name.to_owned()),
            port: spec.port,
            codec,
            payload_type,
            answer: spec.rtcp == RtcpTimes::Study,
            feedback: spec.feedback,
            retransmission: spec.retransmission,
            viewer: spec.viewer,
            save: spec.save,
            dir: job.dir.clone(),
            seed: job.seed,
        })
    }

    fn config(&self, clock: Clock) -> Config {
        Config {
            codec: self.codec,
            payload_type: self.payload_type,
            again_type: self.retransmission.then_some(AGAIN_TYPE),
            cname: format!("{}@suiro", self.name),
            answer: self.answer,
            feedback: self.feedback,
            policy: self.viewer,
            epoch_unix_ns: clock.epoch_unix_ns(),
        }
    }
}

/// Runs a trial's job of an RTP receiver.
///
/// # Errors
/// If it is not one, or as [`run`].
pub fn run_job(job: &Job, context: Context) -> Result<Summary, Failure> {
    let work = ReceiverJob::from_job(job).ok_or("it is not a receiver's job")?;
    let done = context.run(async |pulse, ready, stop| run(&work, pulse, ready, stop).await);
    Ok(Summary::of(&done?))
}

/// Receives until `stop` is ready. `ready` is called once, when packets can come.
///
/// # Errors
/// [`EndpointError`].
pub async fn run(
    job: &ReceiverJob,
    pulse: &Pulse,
    ready: impl FnOnce(),
    stop: impl Future<Output = ()>,
) -> Result<Counters, EndpointError> {
    let clock = pulse.clock();
    let pair = Pair::bind(job.port)?;
    if job.sender.is_none() {
        let flows = net::flows(FlowRole::Receiver, job.port, (End::Any, End::Any), None);
        FlowLog::write(&job.dir, &job.name, clock.now(), flows)?;
    }
    let receiver = Receiver::new(clock.now(), job.config(clock), job.seed.random());
    let coded = match job.codec {
        Codec::H264 => screen::Codec::H264,
        Codec::Mpeg2 => screen::Codec::Mpeg2,
    };
    let save = job.save.then_some(coded);
    let log = Log::create(&job.dir, &job.name, clock.epoch_unix_ns(), save)?;
    let pulse = pulse.clone();
    let mut endpoint = Endpoint { pulse, pair, receiver, log, sender: None };
    ready();
    let mut stop = std::pin::pin!(stop);
    let (mut rtp, mut rtcp) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        endpoint.work().await?;
        let due = endpoint.receiver.next_event();
        tokio::select! {
            biased;
            () = &mut stop => break,
            received = net::receive_marked(&endpoint.pair.rtp, &mut rtp) => {
                endpoint.on_rtp(&mut rtp, received?);
            }
            received = net::receive(&endpoint.pair.rtcp, &mut rtcp) => {
                let (length, from) = received?;
                endpoint.on_rtcp(&rtcp[..length], from);
            }
            () = clock.sleep_until_due(due) => {}
        }
    }
    endpoint.finish().await
}

struct Endpoint {
    pulse: Pulse,
    pair: Pair,
    receiver: Receiver,
    log: Log,
    /// The RTP address of the sender, once its stream is known.
    sender: Option<SocketAddr>,
}

impl Endpoint {
    /// The time. The viewer hears of an interval in which this process did not run before it hears of any later time.
    fn now(&mut self) -> Time {
        self.pulse.now(|absence| self.receiver.on_absence(absence.from, absence.to))
    }

    /// Everything that is there, so that no packet waits for a timer.
    fn on_rtp(&mut self, buffer: &mut [u8], first: Received) {
        let mut received = first;
        for taken in 1.. {
            self.take(&buffer[..received.length], received);
            if taken == BATCH {
                return;
            }
            let Some(next) = ecn::receive_now(&self.pair.rtp, buffer) else { return };
            received = next;
        }
    }

    fn take(&mut self, packet: &[u8], Received { from, ecn, .. }: Received) {
        let now = self.now();
        match self.sender {
            Some(sender) if sender != from => self.receiver.on_stranger_address(),
            _ if self.receiver.on_rtp(now, packet, ecn) => self.sender = Some(from),
            _ => {}
        }
    }

    /// Before the stream is known anybody's report is kept: the first one is sent ahead of it.
    fn on_rtcp(&mut self, bytes: &[u8], from: SocketAddr) {
        let now = self.now();
        match self.sender {
            Some(sender) if rtcp_of(sender) != from => self.receiver.on_stranger_address(),
            _ => self.receiver.on_rtcp(now, bytes),
        }
    }

    async fn work(&mut self) -> Result<(), EndpointError> {
        let poll = |endpoint: &mut Self| {
            let now = endpoint.now();
            endpoint.receiver.poll(now)
        };
        while let Some(bytes) = poll(self) {
            if let Some(sender) = self.sender {
                net::send_to_stranger(&self.pair.rtcp, &bytes, rtcp_of(sender)).await;
            }
        }
        while let Some(seen) = self.receiver.take_seen() {
            self.log.push(&seen)?;
        }
        Ok(())
    }

    async fn finish(mut self) -> Result<Counters, EndpointError> {
        // What has come is looked at.
        let mut buffer = vec![0; 64 << 10];
        while let Some(received) = ecn::receive_now(&self.pair.rtp, &mut buffer) {
            self.on_rtp(&mut buffer, received);
        }
        let now = self.now();
        let bye = self.receiver.finish(now);
        if let Some(sender) = self.sender {
            net::send_to_stranger(&self.pair.rtcp, &bye, rtcp_of(sender)).await;
        }
        while let Some(seen) = self.receiver.take_seen() {
            self.log.push(&seen)?;
        }
        self.log.close()?;
        Ok(self.receiver.counters().clone())
    }
}
