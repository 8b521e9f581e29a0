//! Endpoints: as `lab` starts them (`suiro endpoint`), and by hand (`suiro serve`, `suiro play`).

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::de::DeserializeOwned;
use suiro_abr::{Algorithm, CatchUp, ChunkEstimator};
use suiro_analysis::why::wording::count;
use suiro_endpoint::{Failure, Pulse, Stop};
use suiro_http::origin::{self, ChunkSpec, OriginJob, Secure};
use suiro_http::player::{self, PlayerJob, Summary};
use suiro_http::{Clock, Url, UrlError};
use suiro_media::spec::Source;
use suiro_media::{MediaSpec, Package};
use suiro_players::{PlayJob, Served, Settings};
use suiro_scenario::{
    Conference, Declares, Download, Edge, HlsRungs, HttpVersion, Job, Mode, MoqPublisher, MoqRelay,
    MoqViewer, MulticastReceiver, MulticastSender, Origin, Player, Program, Protocol,
    QuicCongestion, RtpReceiver, RtpSender, Spray, UncompressedController, UncompressedNode,
    UncompressedReceiver, UncompressedRegistry, UncompressedSender, WebClients, WebServer,
    WebrtcPublisher, WebrtcViewer,
};
use suiro_units::{BitRate, Duration, Time};

use crate::args::within;
use crate::outputs::{self, Existing};
use crate::webrtc::{self, Serving, host_name};
use crate::{Outcome, Usage, media};

/// Connections that one address may have with `serve`: browsers open six, and several players may
/// share an address.
const PER_ADDRESS: usize = 64;

/// Where `serve` leaves its certificate and `play` looks for it.
const CERTIFICATE: &str = "certificate.suiro.der";

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The media: `bbb`, `synthetic`, a video file, or the folder of a prepared package.
    #[arg(default_value = "bbb")]
    media: String,
    /// Port to listen at: of UDP with --http 3, of TCP otherwise.
    #[arg(long, value_name = "N", default_value_t = 8080, value_parser = within(suiro_scenario::PORT))]
    port: u16,
    /// Address to listen at. Other machines reach 0.0.0.0 or :: (every address of this host): there
    /// is no password, so open it only in networks that you trust.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    bind: IpAddr,
    /// Segments appear as time passes; otherwise all are available from the start.
    #[arg(long)]
    live: bool,
    /// Live: how much of the past can be fetched.
    #[arg(long, value_name = "TIME", default_value = "30 s")]
    window: Duration,
    /// Live: low latency. Segments are sent while they are captured, in chunks of at most this length, and HLS lists parts.
    #[arg(long, value_name = "TIME", requires = "live", value_parser = within(suiro_scenario::CHUNK))]
    chunk: Option<Duration>,
    /// With --chunk: the longest part of HLS [default: 500 ms].
    #[arg(long, value_name = "TIME", requires = "chunk", value_parser = within(suiro_scenario::PART))]
    part: Option<Duration>,
    /// On demand: how long the stream is; the source is repeated.
    #[arg(long, value_name = "TIME", default_value = "10 min")]
    duration: Duration,
    /// TCP congestion control of the connections [default: the kernel's].
    #[arg(long, value_name = "NAME")]
    tcp: Option<String>,
    /// Version of HTTP: 1.1, 2 or 3. With 2 and 3, URLs begin with `https`, and a certificate is made for this run.
    #[arg(long, value_name = "VERSION", default_value = "1.1", value_parser = word::<HttpVersion>, conflicts_with = "whep")]
    http: HttpVersion,
    /// With --http 2 or 3: where the certificate is written, in DER. Players take it with `play --certificate`.
    #[arg(long, value_name = "FILE", default_value = CERTIFICATE)]
    certificate: PathBuf,
    /// With --http 3: congestion control of QUIC: new-reno, cubic, bbr or copa.
    #[arg(long, value_name = "NAME", default_value = "cubic", value_parser = word::<QuicCongestion>)]
    quic: QuicCongestion,
    /// Serve the source as a live camera over WebRTC instead, at http://HOST:PORT/whep.
    #[arg(long, conflicts_with_all = ["live", "window", "duration", "tcp"])]
    whep: bool,
    /// With --whep: the bearer token that viewers must have; others are refused. Other users of this machine see it in the
    /// list of processes.
    #[arg(long, value_name = "TOKEN", requires = "whep")]
    token: Option<String>,
    #[command(flatten)]
    camera: webrtc::CameraArgs,
    /// With --whep: the most that is sent of each lower quality, such as "900 kbit/s,300 kbit/s", up to three. A viewer is sent
    /// what its own link carries, or asks for one: http://HOST:PORT/whep?quality=high, middle or low.
    #[arg(long, value_name = "RATE,…", value_delimiter = ',', num_args = 1, requires = "whep", value_parser = within(suiro_scenario::WEBRTC_RATES))]
    qualities: Vec<BitRate>,
    /// With --whep: folder for the records webrtc, webrtc_sessions and flows, each `TABLE.publisher.parquet`.
    #[arg(long, value_name = "DIR", default_value = ".", requires = "whep")]
    out: PathBuf,
    /// With --whep: replace the records that an earlier one left in --out.
    #[arg(long, requires = "whep")]
    replace: bool,
}

/// Arguments of `play`.
#[derive(Debug, Args)]
pub struct PlayArgs {
    /// The manifest: http://HOST[:PORT]/PATH (or https) of an MPD (.mpd) or a playlist (.m3u8); or a WHEP resource, whose path ends
    /// with `whep`.
    url: String,
    /// The program that plays: suiro, vlc, gstreamer, dashjs, dashjs-4.5, hlsjs, hlsjs-1.0 or shaka.
    #[arg(long, value_name = "NAME", default_value = "suiro", value_parser = word::<Program>)]
    player: Program,
    /// How rungs are chosen by suiro's player: throughput, bola, dynamic, mpc, l2a or lolp.
    #[arg(long, value_name = "NAME", default_value = "dynamic", value_parser = word::<Algorithm>)]
    abr: Algorithm,
    /// Limit on the media buffered ahead of the playhead.
    #[arg(long, value_name = "TIME", default_value = "12 s")]
    buffer: Duration,
    /// How segments are downloaded: `segment`, or `stream`, which reads only as fast as the buffer
    /// has room
    #[arg(long, value_name = "HOW", default_value = "segment", value_parser = word::<Download>)]
    download: Download,
    /// Live: how far behind the live edge to play [default: as the manifest says].
    #[arg(long, value_name = "TIME")]
    target_latency: Option<Duration>,
    /// Stop after this long [default: at the end, or on Ctrl-C].
    #[arg(long, value_name = "TIME")]
    duration: Option<Duration>,
    /// Version of HTTP for a URL that begins with `https`: 2 or 3.
    #[arg(long, value_name = "VERSION", default_value = "2", value_parser = word::<HttpVersion>)]
    http: HttpVersion,
    /// The only certificate that is trusted, in DER, for a URL that begins with `https`.
    #[arg(long, value_name = "FILE", default_value = CERTIFICATE)]
    certificate: PathBuf,
    /// WHEP: the bearer token that the server requires. Other users of this machine see it in the list of processes.
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Also save the played media, as files in the folder of --out.
    #[arg(long)]
    save: bool,
    /// Replace the records and files that an earlier one left in --out.
    #[arg(long)]
    replace: bool,
    /// Folder for the records: requests, player, frames and lateness, each
    /// `TABLE.player.parquet`.
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
}

fn word<T: DeserializeOwned>(name: &str) -> Result<T, String> {
    let value = serde_json::Value::String(name.to_owned());
    serde_json::from_value(value).map_err(|e| e.to_string())
}

/// `suiro endpoint JOB.json`.
pub fn run_job(file: &Path) -> Result<Outcome> {
    let text = suiro_outside::file::read_text(file, crate::run::JOB_BYTES_MAX)
        .with_context(|| format!("reading the job {}", file.display()))?;
    let job: Job = serde_json::from_str(&text)
        .with_context(|| format!("{}: not a job of this version", file.display()))?;
    let name = job.endpoint.spec.name();
    let (_, run) = RUNNERS
        .iter()
        .find(|(kind, _)| *kind == name)
        .with_context(|| format!("an endpoint of the kind `{name}` is no process of suiro's"))?;
    let clock = Clock::new(job.epoch_monotonic_ns, job.epoch_realtime_ns);
    let pulse = Pulse::new(clock);
    let log: fn(&str) = |line| say!("{line}");
    let context = suiro_endpoint::Context::new(pulse.clone(), Stop::default(), log, ready);
    let summary = run(&job, context).map_err(anyhow::Error::from_boxed)?;
    pulse.write(&job.dir, &job.endpoint.name)?;
    say!("{summary}");
    Ok(Outcome::Done)
}

/// Runs the job of one kind until it is asked to stop.
type Runner = fn(&Job, suiro_endpoint::Context) -> Result<suiro_endpoint::Summary, Failure>;

/// What runs each kind of endpoint. The kind `command` is missing: the lab starts the program itself.
const RUNNERS: &[(&str, Runner)] = &[
    (Origin::NAME, suiro_http::origin::run_job),
    (Edge::NAME, suiro_http::edge::run_job),
    (Player::NAME, suiro_players::run_job),
    (RtpSender::NAME, suiro_rtp::send::run_job),
    (RtpReceiver::NAME, suiro_rtp::receive::run_job),
    (WebrtcPublisher::NAME, suiro_webrtc::ends::run_publisher),
    (WebrtcViewer::NAME, suiro_webrtc::ends::run_viewer),
    (MoqPublisher::NAME, suiro_moq::chromium::run_publisher),
    (MoqRelay::NAME, suiro_moq::relay::run_job),
    (MoqViewer::NAME, suiro_moq::chromium::run_viewer),
    (UncompressedSender::NAME, suiro_uncompressed::job::run_sender),
    (UncompressedReceiver::NAME, suiro_uncompressed::job::run_receiver),
    (MulticastSender::NAME, suiro_traffic::multicast::run_sender),
    (MulticastReceiver::NAME, suiro_traffic::multicast::run_receiver),
    (UncompressedNode::NAME, suiro_control::job::run_node),
    (UncompressedRegistry::NAME, suiro_control::job::run_registry),
    (UncompressedController::NAME, suiro_control::job::run_controller),
    (WebServer::NAME, suiro_http::web::server::run_job),
    (WebClients::NAME, suiro_http::web::clients::run_job),
    (Conference::NAME, suiro_conference::run_job),
    (Spray::NAME, suiro_traffic::spray::run_job),
];

/// `suiro serve MEDIA`.
pub fn serve(args: &ServeArgs) -> Result<Outcome> {
    check_media(&args.media)?;
    if args.whep {
        let (source, token, out) = (args.media.as_str(), args.token.clone(), args.out.as_path());
        let (bind, port, qualities) = (args.bind, args.port, &args.qualities);
        outputs::make_room(out, "publisher", Existing::of(args.replace))?;
        let serving = Serving { source, bind, port, token, qualities, out };
        return webrtc::serve(&serving, &args.camera);
    }
    let folder = package(&args.media)?;
    let job = OriginJob {
        package: folder,
        mode: if args.live { Mode::Live } else { Mode::Vod },
        listen: SocketAddr::new(args.bind, args.port),
        congestion: args.tcp.clone(),
        secure: args.http.is_secure().then(|| Secure {
            http: args.http,
            names: vec![host_name(args.bind).trim_matches(['[', ']']).to_owned()],
            certificate: args.certificate.clone(),
            congestion: args.quic,
        }),
        window: args.window,
        length: args.duration,
        hls_rungs: HlsRungs::All,
        declares: Declares::Peak,
        top: None,
        chunks: args.chunk.map(|chunk| ChunkSpec::new(chunk, args.part)),
        cmsd: None,
        records: None,
        per_address: Some(PER_ADDRESS),
    };
    let host = host_name(args.bind);
    let port = args.port;
    let scheme = if args.http.is_secure() { "https" } else { "http" };
    let tell = move |_| {
        say!("DASH  {scheme}://{host}:{port}{}", origin::MPD_PATH);
        say!("HLS   {scheme}://{host}:{port}{}", origin::MULTIVARIANT_PATH);
        say!("press Ctrl-C to stop");
    };
    let pulse = Pulse::new(Clock::from_now());
    pulse.block_on::<_, anyhow::Error>(async {
        origin::run(&job, pulse.clock(), tell, Stop::default().requested()?).await?;
        Ok(Outcome::Done)
    })
}

/// `suiro play URL`.
pub fn play(args: &PlayArgs) -> Result<Outcome> {
    let secure = args.url.trim_start().to_ascii_lowercase().starts_with("https:");
    let url = if secure { Url::parse_secure(&args.url) } else { Url::parse(&args.url) };
    // Each names the URL.
    let url = url.map_err(|error| match error {
        UrlError::Scheme(url) => Usage(format!("`{url}`: only http and https URLs are played")),
        error => Usage(error.to_string()),
    })?;
    // A query may hold anything.
    let path = args.url.split(['?', '#']).next().unwrap_or_default();
    let protocol = match () {
        () if path.ends_with(".mpd") => Protocol::Dash,
        () if path.ends_with(".m3u8") => Protocol::Hls,
        () if path.ends_with("whep") => return play_webrtc(args, &url),
        () => {
            let expected = "neither an MPD (.mpd), a playlist (.m3u8) nor a WHEP resource (whep)";
            bail!(Usage(format!("{}: {expected}", args.url)))
        }
    };
    check_player(args, protocol, secure)?;
    outputs::make_room(&args.out, "player", Existing::of(args.replace))?;
    if args.player != Program::Suiro {
        return play_by_another(args, url, protocol);
    }
    let job = PlayerJob {
        name: "player".to_owned(),
        url,
        server: None,
        protocol,
        http: if secure { args.http } else { HttpVersion::Http1 },
        certificate: args.certificate.clone(),
        algorithm: args.abr,
        chunks: ChunkEstimator::Bursts,
        buffer: args.buffer,
        download: args.download,
        receive_buffer: None,
        target_latency: args.target_latency,
        catch_up: CatchUp::Steps,
        speed_change: None,
        max_drift: None,
        abandon: true,
        early_data: false,
        cmcd: None,
        save: args.save,
        dir: args.out.clone(),
        start: Time::ZERO,
        leave_at_end: true,
    };
    let pulse = Pulse::new(Clock::from_now());
    let summary = pulse.block_on::<_, anyhow::Error>(async {
        let stop = Stop::after(args.duration).requested()?;
        Ok(player::run(&job, &pulse, || pulse.begin(), stop).await?)
    })?;
    pulse.write(&args.out, "player")?;
    tell(&summary)?;
    if let Some(why) = &summary.no_manifest {
        bail!("{}: there was no manifest: {why}", job.url);
    }
    if summary.totals.is_none_or(|totals| totals.playing == Duration::ZERO) {
        bail!(nothing_shown(&job.url, summary.no_media));
    }
    Ok(if summary.failure.is_some() { Outcome::Failed } else { Outcome::Done })
}

/// Whether the player can do what is asked of it.
fn check_player(args: &PlayArgs, protocol: Protocol, secure: bool) -> Result<()> {
    if !args.player.plays(protocol) {
        let name = args.player.name();
        bail!(Usage(format!("{}: the player {name} does not play this protocol", args.url)));
    }
    let knows = args.player == Program::Suiro || args.player.is_in_browser();
    if secure && (!knows || args.http == HttpVersion::Http1) {
        let what =
            "over TLS only suiro's own player, dash.js and hls.js play, over HTTP/2 or HTTP/3";
        bail!(Usage(format!("{}: {what}", args.url)));
    }
    if args.player != Program::Suiro && args.save {
        bail!(Usage("--save: only suiro's own player saves the played media".to_owned()));
    }
    Ok(())
}

/// What is said of a player to which no frame came, with the reason if it is known.
fn nothing_shown(url: &impl std::fmt::Display, why: Option<String>) -> String {
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    format!("{url}: not a single frame was shown{why}")
}

/// The same of a live camera over WebRTC.
fn play_webrtc(args: &PlayArgs, url: &Url) -> Result<Outcome> {
    if args.player != Program::Suiro {
        let name = args.player.name();
        bail!(Usage(format!("{}: the player {name} does not play this protocol", args.url)));
    }
    outputs::make_room(&args.out, "player", Existing::of(args.replace))?;
    webrtc::play(url, args.token.clone(), (args.duration, args.save, &args.out))
}

/// The same by a player that is not ours.
fn play_by_another(args: &PlayArgs, url: Url, protocol: Protocol) -> Result<Outcome> {
    let job = PlayJob {
        name: "player".to_owned(),
        program: args.player,
        served: Served {
            http: if url.is_secure() { args.http } else { HttpVersion::Http1 },
            certificate: args.certificate.clone(),
        },
        url,
        protocol,
        buffer: args.buffer,
        target_latency: args.target_latency,
        settings: Settings::default(),
        dir: args.out.clone(),
        start: Time::ZERO,
    };
    let tell = |versions: &BTreeMap<String, String>| {
        let texts: Vec<String> = versions.iter().map(|(k, v)| format!("{k} {v}")).collect();
        say!("{}", texts.join(", "));
    };
    let pulse = Pulse::new(Clock::from_now());
    let summary = pulse.block_on::<_, anyhow::Error>(async {
        let stop = Stop::after(args.duration).requested()?;
        Ok(suiro_players::run(&job, pulse.clock(), tell, stop).await?)
    })?;
    let mut out = crate::say::results();
    writeln!(
        out,
        "{}; {}",
        counted(summary.stalls, "stall"),
        counted(summary.requests, "request")
    )?;
    if let Some(dropped) = summary.dropped {
        writeln!(out, "{dropped} frames dropped")?;
    }
    if let Some(failure) = &summary.failure {
        writeln!(out, "broke off: {failure}")?;
    }
    if !summary.played {
        bail!(nothing_shown(&job.url, None));
    }
    Ok(if summary.failure.is_some() { Outcome::Failed } else { Outcome::Done })
}

fn counted(number: u64, what: &str) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), what)
}

fn tell(summary: &Summary) -> Result<()> {
    let mut out = crate::say::results();
    if let Some(totals) = &summary.totals {
        writeln!(
            out,
            "played {:.1} s; start-up {:.2} s; {}, {:.2} s",
            totals.playing.as_secs_f64(),
            totals.starting.as_secs_f64(),
            counted(totals.stalls, "stall"),
            totals.stalled.as_secs_f64()
        )?;
    }
    writeln!(out, "{}, {} bytes", counted(summary.requests, "request"), summary.body_bytes)?;
    for file in &summary.saved {
        writeln!(out, "saved {}", file.display())?;
    }
    if let Some(why) = summary.no_frames.filter(|_| summary.no_manifest.is_none()) {
        writeln!(out, "no table of frames: {why}")?;
    }
    if let Some(failure) = &summary.failure {
        writeln!(out, "broke off: {failure}")?;
    }
    Ok(())
}

/// Refuses the name of a file that is not there.
fn check_media(media: &str) -> Result<()> {
    let is_file = matches!(Source::from(media), Source::File(_));
    if is_file && matches!(Path::new(media).try_exists(), Ok(false)) {
        let hint = "hint: give the path of a video; suiro serve bbb needs none";
        bail!(Usage(format!("{media}: there is no such file\n{hint}")));
    }
    Ok(())
}

/// The package in that folder, or one made from that source.
fn package(media: &str) -> Result<PathBuf> {
    let folder = Path::new(media);
    if folder.join("package.json").exists() {
        Package::load(folder)?;
        return Ok(folder.to_owned());
    }
    let spec = MediaSpec::new(media.into());
    media::prepare(media, &spec, &mut BTreeMap::new())
}

/// Reports to the lab that this endpoint serves or plays.
fn ready(versions: &BTreeMap<String, String>) {
    let line = serde_json::json!({ "ready": true, "versions": versions });
    // Without a reader, do not wait.
    let _ = writeln!(std::io::stdout(), "{line}");
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use suiro_scenario::{Command, kinds};

    use super::*;

    #[test]
    fn every_kind_has_one_runner() {
        let names: BTreeSet<&str> = RUNNERS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), RUNNERS.len(), "a kind has two runners");
        let kinds: BTreeSet<&str> = kinds().filter(|kind| *kind != Command::NAME).collect();
        assert_eq!(names, kinds, "hint: add a line to RUNNERS");
    }
}
