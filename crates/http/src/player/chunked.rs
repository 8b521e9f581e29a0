//! The body of a response, taken apart into chunks while it comes; pure.
//!
//! **What the network carries** is measured here too. A segment that is sent while it is captured takes as long as its
//! capture, whatever the network; and between its chunks nothing comes. So only the time in which a chunk was on its way
//! counts, from its first read to its last. Bytes of the first read do not count, because it is not known how long they had
//! been there. All bytes of the last read count, also those of the next chunk: they came in that time. Bytes of the player's
//! other requests came over the same link meanwhile, and count as well: sound and playlists come at the same moments as
//! video, and without them the estimate would be that share too low. (ExoPlayer's `DefaultBandwidthMeter` adds up parallel
//! transfers, too.)
//!
//! Over HTTP/3 the packet in which a chunk ends is read in two pieces if the next chunk begins in it, and what the player has
//! received grows by one after the other. So a chunk that begins right behind another counts from the end of that, with its first
//! read. Without this, the rest of that packet would count for neither, but its time would.
//!
//! A chunk that begins with what the repair of a loss had kept back is not measured (`meter`).
//!
//! Counting from the first read is the idea of dash.js's parsing of `moof` boxes (Lim et al., "When they go high, we go low:
//! low-latency live streaming in dash.js with LoL", MMSys 2020). That rule counts the first bytes too, and so estimates too
//! much for small chunks. The idea is also that of the chunk filter of ACTE (Bentaleb, Timmerer, Begen and Zimmermann,
//! "Bandwidth prediction in low-latency chunked streaming", NOSSDAV 2019).

use std::sync::Arc;

use bytes::{Buf, BytesMut};
use suiro_abr::{Arrival, Sample};
use suiro_media::mp4::{self, Init};
use suiro_units::{Bytes, Duration, Time};

use super::meter::{Burst, Came};

/// The largest chunk, in bytes.
const CHUNK_BYTES_MAX: usize = 16 << 20;
/// The most chunks of one response: a minute of frames at 120 per second.
const CHUNKS_MAX: u32 = 8192;
/// Reads in which a chunk must come to be measured: with two, the time between them is that of a single packet.
const READS_LEAST: u32 = 3;
/// A chunk whose first read is no later than this after the end of the one before came right behind it.
const BEHIND: Duration = Duration::from_millis(1);

/// A chunk that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// When its last byte came.
    pub at: Time,
    /// When its first frame is decoded, in ticks.
    pub decode_time: u64,
    /// How long its frames last, in ticks.
    pub duration: u64,
    /// Ticks per second; never zero.
    pub timescale: u32,
    /// Its size.
    pub bytes: Bytes,
    /// When its first byte came.
    pub begun: Time,
    /// What it says about the network; `None` if it came in too few reads, or a loss had kept it back.
    pub burst: Option<Sample>,
}

impl Chunk {
    /// How it came, for an estimate of the throughput.
    pub fn arrival(&self) -> Arrival {
        let whole = Sample { bytes: self.bytes, requested: self.begun, done: self.at };
        Arrival { burst: self.burst, whole }
    }
}

/// Bytes that were read at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Read<'a> {
    /// They.
    pub data: &'a [u8],
    /// How they came, as measured below; with a burst if the connection hands over whole frames.
    pub came: Came,
    /// Bytes that the player has received so far, on all of its connections, these included.
    pub all: u64,
}

/// The chunk of which the beginning is there.
#[derive(Debug, Clone, Copy)]
struct Begun {
    at: Time,
    /// What the player had received in all, the chunk's first read included.
    all: u64,
    reads: u32,
    /// The repair of a loss had kept back its first read.
    kept_back: bool,
}

/// Takes one body apart.
#[derive(Debug)]
pub(crate) struct Splitter {
    init: Arc<Init>,
    pending: BytesMut,
    begun: Option<Begun>,
    /// When the last chunk ended, and what the player had received by then.
    ended: Option<(Time, u64)>,
    /// What bursts of the chunk under way measured.
    measured: Option<Burst>,
    count: u32,
}

impl Splitter {
    /// For a body of the track that the initialisation segment describes.
    pub fn new(init: Arc<Init>) -> Self {
        Self { init, pending: BytesMut::new(), begun: None, ended: None, measured: None, count: 0 }
    }

    /// Bytes were read; the chunks that are whole now are passed to `found`.
    ///
    /// # Errors
    /// Why they are no chunks.
    pub fn push(
        &mut self,
        now: Time,
        read: Read<'_>,
        mut found: impl FnMut(Chunk),
    ) -> Result<(), String> {
        if read.data.is_empty() {
            return Ok(());
        }
        self.pending.extend_from_slice(read.data);
        if let Some((bytes, took)) = read.came.burst {
            let sum = self.measured.unwrap_or_default();
            self.measured = Some((sum.0 + bytes, sum.1 + took));
        }
        match &mut self.begun {
            Some(begun) => begun.reads += 1,
            None => {
                let behind = |(at, _): &(Time, u64)| now.saturating_since(*at) <= BEHIND;
                let (at, all) = self.ended.filter(behind).unwrap_or((now, read.all));
                self.begin(at, all, read.came.kept_back);
            }
        }
        loop {
            let end = mp4::first_end(&self.pending, CHUNK_BYTES_MAX).map_err(|e| e.to_string())?;
            let Some(end) = end else { return Ok(()) };
            found(self.chunk(now, end, read.all)?);
            self.pending.advance(end);
            (self.begun, self.ended) = (None, Some((now, read.all)));
            if !self.pending.is_empty() {
                self.begin(now, read.all, read.came.kept_back);
            }
        }
    }

    /// The body has ended.
    ///
    /// # Errors
    /// If it did so within a chunk.
    pub fn finish(&self) -> Result<(), String> {
        match self.pending.len() {
            0 => Ok(()),
            rest => Err(format!("the body ends within a chunk, of which {rest} bytes came")),
        }
    }

    fn begin(&mut self, at: Time, all: u64, kept_back: bool) {
        self.begun = Some(Begun { at, all, reads: 1, kept_back });
    }

    /// The chunk that ends at `end`, when the player had received `all`.
    fn chunk(&mut self, now: Time, end: usize, all: u64) -> Result<Chunk, String> {
        self.count += 1;
        if self.count > CHUNKS_MAX {
            return Err(format!("more than {CHUNKS_MAX} chunks in one response"));
        }
        let parts = mp4::fragments(&self.pending[..end], &self.init).map_err(|e| e.to_string())?;
        let first = parts.first().ok_or("a chunk without a fragment (`moof`)")?;
        let is_enough = |begun: &Begun| begun.reads >= READS_LEAST && !begun.kept_back;
        let burst = self.begun.filter(is_enough).map(|begun| Sample {
            bytes: Bytes::new(all.saturating_sub(begun.all)),
            requested: begun.at,
            done: now,
        });
        let measured = self.measured.take().map(|(bytes, took)| Sample {
            bytes,
            requested: Time::from_nanos(now.as_nanos().saturating_sub(took.as_nanos())),
            done: now,
        });
        let burst = measured.or(burst);
        Ok(Chunk {
            at: now,
            decode_time: first.decode_time,
            duration: parts.iter().map(mp4::Fragment::duration).sum(),
            timescale: self.init.timescale.max(1),
            bytes: Bytes::new(end as u64),
            begun: self.begun.map_or(now, |begun| begun.at),
            burst,
        })
    }
}

/// Takes a body apart that comes in pieces of these sizes, the last of which is the rest. Of each chunk: when its first
/// frame is decoded and how long its frames last, in ticks.
///
/// # Errors
/// Why it does not consist of chunks.
pub fn check_chunks(
    init: Init,
    body: &[u8],
    sizes: impl IntoIterator<Item = usize>,
) -> Result<Vec<(u64, u64)>, String> {
    let mut splitter = Splitter::new(Arc::new(init));
    let (mut found, mut rest, mut all) = (Vec::new(), body, 0);
    for size in sizes.into_iter().chain([body.len()]) {
        let (data, after) = rest.split_at(size.min(rest.len()));
        (rest, all) = (after, all + data.len() as u64);
        let read = Read { data, came: Came::default(), all };
        splitter.push(Time::ZERO, read, |chunk| found.push((chunk.decode_time, chunk.duration)))?;
    }
    splitter.finish()?;
    Ok(found)
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use suiro_units::BitRate;

    use super::*;

    /// An initialisation segment of 48 kHz AAC, as ffmpeg writes it without the boxes that nobody needs.
    pub(crate) fn init() -> Arc<Init> {
        let boxed = |kind: &[u8; 4], content: &[u8]| {
            let size = (content.len() as u32 + 8).to_be_bytes();
            [&size[..], &kind[..], content].concat()
        };
        let mdhd =
            boxed(b"mdhd", &[[0; 12].as_slice(), &48_000u32.to_be_bytes(), &[0; 8]].concat());
        // ES descriptor, decoder configuration, decoder specific info: AAC-LC, 48 kHz, stereo.
        let esds =
            [&[0, 0, 0, 0, 3, 22, 0, 0, 0, 4, 17][..], &[0; 13], &[5, 2, 0x11, 0x90]].concat();
        let mp4a = boxed(b"mp4a", &[&[0; 28][..], &boxed(b"esds", &esds)].concat());
        let stsd = boxed(b"stsd", &[&[0, 0, 0, 0, 0, 0, 0, 1][..], &mp4a].concat());
        let minf = boxed(b"minf", &boxed(b"stbl", &stsd));
        let trak = boxed(b"trak", &boxed(b"mdia", &[mdhd, minf].concat()));
        let trex = boxed(b"trex", &[&[0; 4][..], &1u32.to_be_bytes(), &[0; 16]].concat());
        let mvex = boxed(b"mvex", &trex);
        let moov = boxed(b"moov", &[trak, mvex].concat());
        Arc::new(mp4::init(&moov).expect("an initialisation segment"))
    }

    /// A chunk of one frame of 1024 ticks with this much data.
    fn chunk(decode_time: u64, data: usize) -> Vec<u8> {
        let boxed = |kind: &[u8; 4], content: &[u8]| {
            let size = (content.len() as u32 + 8).to_be_bytes();
            [&size[..], &kind[..], content].concat()
        };
        let words = |words: &[u32]| words.iter().flat_map(|w| w.to_be_bytes()).collect::<Vec<_>>();
        let mfhd = boxed(b"mfhd", &words(&[0, 1]));
        let tfhd = boxed(b"tfhd", &words(&[0x02_0008, 1, 1024]));
        let tfdt =
            boxed(b"tfdt", &[words(&[0x0100_0000]), decode_time.to_be_bytes().to_vec()].concat());
        // The data begins after the header of the `mdat`: 16 + 20 + 20 + 24 bytes and three headers further.
        let offset = 8 + 16 + 8 + 20 + 20 + 24 + 8;
        let trun = boxed(b"trun", &words(&[0x201, 1, offset, data as u32]));
        let traf = boxed(b"traf", &[tfhd, tfdt, trun].concat());
        [boxed(b"moof", &[mfhd, traf].concat()), boxed(b"mdat", &vec![7; data])].concat()
    }

    fn read(data: &[u8], all: u64) -> Read<'_> {
        Read { data, came: Came::default(), all }
    }

    /// Chunks of 10 kB over a link of 10 Mbit/s in packets of 1250 bytes, one a millisecond; a chunk every 100 ms.
    #[test]
    fn pauses_of_the_encoder_do_not_count() {
        let mut splitter = Splitter::new(init());
        let (mut found, mut all) = (Vec::new(), 0);
        for number in 0..5u64 {
            let bytes = chunk(number * 1024, 9800);
            let packets = bytes.chunks(1250).zip(0..);
            for (packet, ms) in packets {
                let now = Time::from_millis(100 * number + ms);
                all += packet.len() as u64;
                splitter.push(now, read(packet, all), |chunk| found.push(chunk)).unwrap();
            }
        }
        splitter.finish().unwrap();
        assert_eq!(found.len(), 5);
        for (chunk, number) in found.iter().zip(0..) {
            assert_eq!((chunk.decode_time, chunk.duration), (number * 1024, 1024));
            let burst = chunk.burst.expect("eight reads");
            let rate = burst.bytes / burst.took();
            // The last packet is not full.
            let whole = BitRate::from_mbps(10);
            assert!(rate > whole.mul_f64(0.93) && rate <= whole, "{rate}");
            assert_eq!(burst.done, chunk.at);
        }
    }

    /// The same with sound on another connection: every fourth packet is one of it.
    #[test]
    fn what_else_came_meanwhile_counts() {
        let mut splitter = Splitter::new(init());
        let (mut found, mut all, mut ms) = (Vec::new(), 0, 0);
        for packet in chunk(0, 12_300).chunks(1250) {
            all += packet.len() as u64;
            splitter.push(Time::from_millis(ms), read(packet, all), |c| found.push(c)).unwrap();
            ms += 1;
            if ms % 4 == 3 {
                (all, ms) = (all + 1250, ms + 1);
            }
        }
        let burst = found[0].burst.expect("ten reads");
        let (rate, whole) = (burst.bytes / burst.took(), BitRate::from_mbps(10));
        assert!(rate > whole.mul_f64(0.93) && rate <= whole, "{rate}");
    }

    /// The parts of HLS come as fast as the link carries them: the last packet of a chunk is the first of the next.
    #[test]
    fn chunks_without_a_pause_between_them_are_as_fast_as_the_link() {
        let mut splitter = Splitter::new(init());
        // 104 bytes of boxes: five packets and a half each.
        let bytes: Vec<u8> = (0..4).flat_map(|number| chunk(number * 1024, 6771)).collect();
        assert_eq!(bytes.len(), 22 * 1250);
        let (mut found, mut all) = (Vec::new(), 0);
        for (packet, ms) in bytes.chunks(1250).zip(0..) {
            all += packet.len() as u64;
            splitter.push(Time::from_millis(ms), read(packet, all), |c| found.push(c)).unwrap();
        }
        let bursts = found.iter().map(|chunk| chunk.burst.expect("six reads"));
        let rates: Vec<BitRate> = bursts.map(|burst| burst.bytes / burst.took()).collect();
        assert_eq!(rates, [BitRate::from_mbps(10); 4]);
    }

    /// The same over HTTP/3: the packet is read in two pieces, and what has come of other requests is nothing.
    #[test]
    fn a_packet_of_two_chunks_that_is_read_in_two_pieces_counts_once() {
        let mut splitter = Splitter::new(init());
        let ends: Vec<usize> = (1..=4).map(|number| number * (6771 + 104)).collect();
        let bytes: Vec<u8> = (0..4).flat_map(|number| chunk(number * 1024, 6771)).collect();
        let (mut found, mut all) = (Vec::new(), 0);
        for (packet, ms) in bytes.chunks(1250).zip(0..) {
            let from = all as usize;
            let cut = ends.iter().map(|end| end.saturating_sub(from)).find(|cut| *cut > 0);
            let (one, two) = packet.split_at(cut.unwrap_or(0).min(packet.len()));
            for piece in [one, two].into_iter().filter(|piece| !piece.is_empty()) {
                all += piece.len() as u64;
                let now = Time::from_millis(ms);
                splitter.push(now, read(piece, all), |c| found.push(c)).unwrap();
            }
        }
        let bursts: Vec<Sample> = found.iter().map(|chunk| chunk.burst.expect("reads")).collect();
        let bytes: Bytes = bursts.iter().map(|burst| burst.bytes).sum();
        let took = Duration::from_nanos(bursts.iter().map(|burst| burst.took().as_nanos()).sum());
        assert_eq!(bytes / took, BitRate::from_mbps(10));
    }

    /// Two chunks of 10,000 bytes, each in eight reads within 7 ms, the first of which were kept back.
    #[test]
    fn what_a_loss_had_kept_back_is_not_measured() {
        let mut splitter = Splitter::new(init());
        let (mut found, mut all) = (Vec::new(), 0);
        for number in 0..2u64 {
            for (packet, ms) in chunk(number * 1024, 9896).chunks(1250).zip(0..) {
                let now = Time::from_millis(100 * number + ms);
                all += packet.len() as u64;
                let came = Came { burst: None, kept_back: number == 0 && ms == 0 };
                let read = Read { data: packet, came, all };
                splitter.push(now, read, |chunk| found.push(chunk)).unwrap();
            }
        }
        let rate = |chunk: &Chunk| chunk.burst.map(|burst| burst.bytes / burst.took());
        let rates: Vec<Option<BitRate>> = found.iter().map(rate).collect();
        assert_eq!(rates, [None, Some(BitRate::from_mbps(10))]);
    }

    #[test]
    fn what_came_in_one_read_is_not_measured() {
        let mut splitter = Splitter::new(init());
        let bytes = [chunk(0, 100), chunk(1024, 100), chunk(2048, 100)].concat();
        let (one, two) = bytes.split_at(bytes.len() - 10);
        let mut found = Vec::new();
        splitter.push(Time::from_millis(1), read(one, 500), |chunk| found.push(chunk)).unwrap();
        assert_eq!(found.len(), 2);
        let error = splitter.finish().unwrap_err();
        assert!(error.contains("ends within a chunk"), "{error}");
        splitter.push(Time::from_millis(9), read(two, 510), |chunk| found.push(chunk)).unwrap();
        assert!(found.iter().all(|chunk| chunk.burst.is_none()) && found.len() == 3);
        splitter.finish().unwrap();
    }

    proptest! {
        /// However it is cut, the same chunks come; and no bytes panic.
        #[test]
        fn any_cut_is_put_together(sizes in prop::collection::vec(0usize..300, 1..6), cut in 1usize..400, junk in prop::collection::vec(any::<u8>(), 0..200)) {
            let bytes: Vec<u8> = sizes.iter().zip(0..).flat_map(|(size, n)| chunk(n * 1024, *size)).collect();
            let mut splitter = Splitter::new(init());
            let mut times = Vec::new();
            for piece in bytes.chunks(cut) {
                splitter.push(Time::ZERO + Duration::from_millis(1), read(piece, 0), |chunk| times.push(chunk.decode_time)).unwrap();
            }
            prop_assert_eq!(times, (0..sizes.len() as u64).map(|n| n * 1024).collect::<Vec<_>>());
            for piece in junk.chunks(cut) {
                if splitter.push(Time::ZERO, read(piece, 0), |_| {}).is_err() {
                    break;
                }
            }
        }
    }
}
