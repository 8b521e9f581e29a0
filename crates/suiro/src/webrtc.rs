//! WebRTC by hand: `suiro publish`, `suiro serve --whep` and `suiro play` of a WHEP resource.

use std::hash::{BuildHasher, Hasher};
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use suiro_endpoint::{Pulse, Stop};
use suiro_http::{Clock, Url};
use suiro_media::live::FootageSpec;
use suiro_record::words::Signalling;
use suiro_units::{BitRate, Duration, Seed, Time};
use suiro_webrtc::endpoint::{Common, Meeting, Summary};
use suiro_webrtc::publish::{self, PublisherJob};
use suiro_webrtc::signalling::client::Server;
use suiro_webrtc::view::{self, ViewerJob};

use crate::args::within;
use crate::outputs::{self, Existing};
use crate::{Outcome, Usage};

/// The estimate to begin with, as libwebrtc.
const START: BitRate = BitRate::from_kbps(300);

pub const PUBLISH_EXAMPLES: &str = "Examples:
  suiro publish http://localhost:8889/camera/whip          Big Buck Bunny to MediaMTX or another
  suiro publish http://192.0.2.1:8080/whip --token s3cret --duration \"1 min\"";

/// What the camera sees, and what of it is sent.
#[derive(Debug, Args)]
pub struct CameraArgs {
    /// Width and height of the camera's frames, even.
    #[arg(long, value_name = "WxH", default_value = "1280x720", value_parser = size)]
    size: (u32, u32),
    /// Frames per second of the camera.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=120))]
    fps: u32,
    /// The most that is sent; less where congestion control estimates less.
    #[arg(long, value_name = "RATE", default_value = "2.5 Mbit/s", value_parser = within(suiro_scenario::WEBRTC_RATES))]
    max_rate: BitRate,
    /// Sound next to the video: Opus at this bit rate, which counts in --max-rate.
    #[arg(long, value_name = "RATE", value_parser = within(suiro_media::sound::RATES))]
    audio: Option<BitRate>,
}

/// Arguments of `publish`.
#[derive(Debug, Args)]
pub struct PublishArgs {
    /// The resource that takes offers: http://HOST[:PORT]/PATH.
    url: String,
    /// The camera's video: `bbb`, `synthetic` or a video file, which is repeated.
    #[arg(long, value_name = "SOURCE", default_value = "bbb")]
    source: String,
    #[command(flatten)]
    camera: CameraArgs,
    /// The bearer token that the server requires. Other users of this machine see it in the list of processes.
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Stop after this long [default: on Ctrl-C].
    #[arg(long, value_name = "TIME")]
    duration: Option<Duration>,
    /// Folder for the records: webrtc, webrtc_sessions and flows, each `TABLE.publisher.parquet`.
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Replace the records that an earlier one left in --out.
    #[arg(long)]
    replace: bool,
}

/// What `serve --whep` serves, and to whom.
#[derive(Debug)]
pub struct Serving<'a> {
    /// The source of the camera.
    pub source: &'a str,
    /// The address to listen at.
    pub bind: IpAddr,
    /// The TCP port.
    pub port: u16,
    /// The bearer token that viewers must have.
    pub token: Option<String>,
    /// The most that is sent of each lower quality.
    pub qualities: &'a [BitRate],
    /// Folder for records.
    pub out: &'a Path,
}

fn size(text: &str) -> Result<(u32, u32), String> {
    let sides = text.split_once('x');
    let size = sides.and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
    size.ok_or_else(|| "expected WIDTHxHEIGHT such as 1280x720".to_owned())
}

impl CameraArgs {
    fn footage(&self, source: &str) -> Result<FootageSpec> {
        let (width, height) = self.size;
        let spec = FootageSpec::new(source.into());
        let spec = FootageSpec { width, height, fps: self.fps, ..spec };
        spec.validate().map_err(|refusal| Usage(refusal.to_string()))?;
        Ok(spec)
    }

    fn job(&self, common: Common, camera: FootageSpec, qualities: Vec<BitRate>) -> PublisherJob {
        let (rates, audio) = ((START.min(self.max_rate), self.max_rate), self.audio);
        let common = Common { sound: audio.is_some(), ..common };
        PublisherJob {
            common,
            camera,
            rates,
            qualities,
            key_every: None,
            audio,
            pauses: Vec::new(),
        }
    }
}

/// `suiro publish URL`.
pub fn publish(args: &PublishArgs) -> Result<Outcome> {
    let camera = args.camera.footage(&args.source)?;
    let url = Url::parse(&args.url).map_err(|e| Usage(format!("{}: {e}", args.url)))?;
    outputs::make_room(&args.out, "publisher", Existing::of(args.replace))?;
    let meeting = Meeting::Offers(server(&url, Signalling::Whip, args.token.clone()));
    let pulse = Pulse::new(Clock::from_now());
    let summary = pulse.block_on::<_, anyhow::Error>(async {
        let addresses = vec![towards(&url).await?];
        let common = common("publisher", meeting, (addresses, &args.out));
        let job = args.camera.job(common, camera, Vec::new());
        let stop = Stop::after(args.duration).requested()?;
        let tell = || say!("publishing to {url}; press Ctrl-C to stop");
        Ok(publish::run(&job, pulse.clock(), tell, stop).await?)
    })?;
    tell(&summary, "sent", summary.sent_bytes)
}

/// `suiro serve SOURCE --whep`.
pub fn serve(args: &Serving<'_>, camera: &CameraArgs) -> Result<Outcome> {
    let footage = camera.footage(args.source)?;
    let rates = [&[camera.max_rate], args.qualities].concat();
    if rates.len() > 4 || !rates.is_sorted_by(|higher, lower| higher > lower) {
        let found = rates.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let expected =
            "expected up to three --qualities, each below the one before and below --max-rate";
        bail!(Usage(format!("{expected}, found {found}")));
    }
    let (bind, port) = (args.bind, args.port);
    let addresses = match bind.is_unspecified() {
        true => suiro_webrtc::net::addresses()?,
        false => vec![bind],
    };
    let meeting = Meeting::Waits { address: Some(bind), port, token: args.token.clone() };
    let common = common("publisher", meeting, (addresses, args.out));
    let job = camera.job(common, footage, args.qualities.to_vec());
    let host = host_name(bind);
    let pulse = Pulse::new(Clock::from_now());
    let summary = pulse.block_on::<_, anyhow::Error>(async {
        let stop = Stop::default().requested()?;
        let tell = || {
            say!("WHEP  http://{host}:{port}/whep");
            say!("press Ctrl-C to stop");
        };
        Ok(publish::run(&job, pulse.clock(), tell, stop).await?)
    })?;
    tell(&summary, "sent", summary.sent_bytes)
}

/// `suiro play URL` of a WHEP resource.
pub fn play(
    url: &Url,
    token: Option<String>,
    (duration, save, out): (Option<Duration>, bool, &Path),
) -> Result<Outcome> {
    let meeting = Meeting::Offers(server(url, Signalling::Whep, token));
    let pulse = Pulse::new(Clock::from_now());
    let summary = pulse.block_on::<_, anyhow::Error>(async {
        let addresses = vec![towards(url).await?];
        let common = Common { sound: true, ..common("player", meeting, (addresses, out)) };
        let job = ViewerJob { common, viewer: Default::default(), lip_sync: true, save };
        let stop = Stop::after(duration).requested()?;
        Ok(view::run(&job, &pulse, || pulse.begin(), stop).await?)
    })?;
    pulse.write(out, "player")?;
    if summary.connections == 0 {
        bail!("{url}: the offer was answered, but no connection came about");
    }
    tell(&summary, "received", summary.received_bytes)
}

fn server(url: &Url, signalling: Signalling, token: Option<String>) -> Server {
    let (host, port) = (url.host().to_owned(), url.port());
    Server { host, port, signalling, path: Some(url.target().to_owned()), token }
}

async fn towards(url: &Url) -> Result<IpAddr> {
    let found = suiro_webrtc::net::towards(url.host(), url.port()).await;
    found.with_context(|| format!("finding the route to {}", url.host()))
}

fn common(name: &str, meeting: Meeting, (addresses, out): (Vec<IpAddr>, &Path)) -> Common {
    Common {
        name: name.to_owned(),
        meeting,
        peer: None,
        addresses,
        dir: out.to_owned(),
        start: Time::ZERO,
        seed: seed(),
        plain: false,
        sound: false,
    }
}

/// The first numbers of RTP packets must not be guessed (RFC 3550 §5.1): from the system's randomness, by which the standard library seeds its maps.
#[expect(clippy::disallowed_types, reason = "no order depends on it, only its randomness counts")]
fn seed() -> Seed {
    Seed(std::hash::RandomState::new().build_hasher().finish())
}

fn tell(summary: &Summary, what: &str, bytes: u64) -> Result<Outcome> {
    let mut out = crate::say::results();
    let connections = match summary.connections {
        1 => "1 connection".to_owned(),
        many => format!("{many} connections"),
    };
    writeln!(out, "{connections}; {bytes} bytes {what}")?;
    Ok(Outcome::Done)
}

/// What to call the address that a server listens at.
pub fn host_name(bind: IpAddr) -> String {
    match bind {
        // On every address of this host it is reached by this name too.
        _ if bind.is_loopback() || bind.is_unspecified() => "localhost".to_owned(),
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}
