//! ffmpeg as a source and as a sink of raw frames.

use std::ffi::OsString;
use std::io::{BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::thread::JoinHandle;

use super::y4m::{self, Header};
use crate::ffmpeg::Running;
use crate::{Ffmpeg, MediaError};

/// Bytes that wait between ffmpeg and us.
const BUFFER: usize = 1 << 18;

/// What is decoded, piece by piece.
pub(crate) type Pieces = Box<dyn Iterator<Item = Result<Vec<u8>, MediaError>> + Send>;

/// An ffmpeg that decodes.
pub(crate) struct Decoder {
    running: Running,
    from: BufReader<ChildStdout>,
    feeder: Option<JoinHandle<Result<(), MediaError>>>,
    /// Size and rate of the frames.
    pub header: Header,
}

impl Decoder {
    /// Starts ffmpeg with arguments that name its inputs, maps and filters; the output is added.
    /// `pieces` are its standard input. `None` if it gives not a frame and does not complain.
    pub fn start(
        ffmpeg: &Ffmpeg,
        arguments: &[OsString],
        pieces: Option<Pieces>,
    ) -> Result<Option<Self>, MediaError> {
        let output = ["-pix_fmt", "yuv420p", "-strict", "-1", "-f", "yuv4mpegpipe", "pipe:1"];
        let arguments: Vec<_> =
            arguments.iter().cloned().chain(output.into_iter().map(OsString::from)).collect();
        let input = if pieces.is_some() { Stdio::piped() } else { Stdio::null() };
        let mut running = ffmpeg.start(&arguments, Path::new("/"), input, Stdio::piped())?;
        let feeder = pieces.map(|pieces| {
            let into = running.stdin().expect("stdin is piped");
            std::thread::spawn(move || feed(pieces, into))
        });
        let stdout = running.stdout().expect("stdout is piped");
        let mut from = BufReader::with_capacity(BUFFER, stdout);
        match y4m::header(&mut from) {
            Ok(Some(header)) => Ok(Some(Self { running, from, feeder, header })),
            Ok(None) => finish(running, feeder).map(|()| None),
            Err(error) => Err(MediaError::io("reading frames of", ffmpeg.path())(error)),
        }
    }

    /// Reads the next frame; `false` at the end, after which there is nothing more.
    ///
    /// # Errors
    /// Those of ffmpeg, of the pieces it was given, and a cut frame.
    pub fn next(&mut self, picture: &mut Vec<u8>) -> Result<bool, MediaError> {
        picture.resize(self.header.bytes(), 0);
        match y4m::picture(&mut self.from, picture) {
            Ok(true) => Ok(true),
            Ok(false) => {
                fed(self.feeder.take())?;
                self.running.wait()?;
                Ok(false)
            }
            Err(error) => {
                if error.kind() == ErrorKind::UnexpectedEof {
                    // It ended; its own error message says more than this one.
                    self.running.wait()?;
                }
                Err(MediaError::io("reading frames of", Path::new("ffmpeg"))(error))
            }
        }
    }
}

fn finish(
    mut running: Running,
    feeder: Option<JoinHandle<Result<(), MediaError>>>,
) -> Result<(), MediaError> {
    fed(feeder)?;
    running.wait()
}

fn fed(feeder: Option<JoinHandle<Result<(), MediaError>>>) -> Result<(), MediaError> {
    feeder.map_or(Ok(()), |feeder| feeder.join().expect("feeding ffmpeg does not panic"))
}

/// Writes the pieces as fast as ffmpeg takes them. If ffmpeg ends before it took them all, that is
/// not an error here: it reports its own, or was stopped.
fn feed(pieces: Pieces, mut into: ChildStdin) -> Result<(), MediaError> {
    for piece in pieces {
        if into.write_all(&piece?).is_err() {
            break;
        }
    }
    Ok(())
}

/// An ffmpeg that takes raw frames, as its first input.
pub(crate) struct Encoder {
    running: Running,
    into: BufWriter<ChildStdin>,
}

impl Encoder {
    /// Starts ffmpeg in `folder`; the frames are its input 0, `arguments` name what else there is
    /// and the outputs.
    pub fn start(
        ffmpeg: &Ffmpeg,
        header: &Header,
        arguments: &[OsString],
        folder: &Path,
    ) -> Result<Self, MediaError> {
        Self::with_output(ffmpeg, header, arguments, folder, Stdio::null())
    }

    /// [`Self::start`], for [`Self::finish_telling`]. It must write to its standard output only at
    /// its end: nothing reads it before.
    pub fn start_telling(
        ffmpeg: &Ffmpeg,
        header: &Header,
        arguments: &[OsString],
        folder: &Path,
    ) -> Result<Self, MediaError> {
        Self::with_output(ffmpeg, header, arguments, folder, Stdio::piped())
    }

    fn with_output(
        ffmpeg: &Ffmpeg,
        header: &Header,
        arguments: &[OsString],
        folder: &Path,
        stdout: Stdio,
    ) -> Result<Self, MediaError> {
        let input = ["-f", "yuv4mpegpipe", "-i", "pipe:0"].into_iter().map(OsString::from);
        let arguments: Vec<_> = input.chain(arguments.iter().cloned()).collect();
        let mut running = ffmpeg.start(&arguments, folder, Stdio::piped(), stdout)?;
        let stdin = running.stdin().expect("stdin is piped");
        let mut encoder = Self { running, into: BufWriter::with_capacity(BUFFER, stdin) };
        encoder.write(header.line().as_bytes(), &[])?;
        Ok(encoder)
    }

    /// Hands over a frame, which may lie in several parts.
    ///
    /// # Errors
    /// Why ffmpeg takes no more.
    pub fn picture(&mut self, parts: &[&[u8]]) -> Result<(), MediaError> {
        self.write(b"FRAME\n", parts)
    }

    /// Waits until ffmpeg has made what it was asked for.
    ///
    /// # Errors
    /// Those of ffmpeg, a full disk among them.
    pub fn finish(self) -> Result<(), MediaError> {
        self.finish_telling(0).map(|_| ())
    }

    /// [`Self::finish`], and what ffmpeg wrote to its standard output, up to `most` bytes.
    pub fn finish_telling(mut self, most: u64) -> Result<Vec<u8>, MediaError> {
        let flushed = self.into.flush();
        drop(self.into);
        let mut told = Vec::new();
        if let Some(stdout) = self.running.stdout() {
            let read = stdout.take(most).read_to_end(&mut told);
            read.map_err(MediaError::io("reading the output of", Path::new("ffmpeg")))?;
        }
        self.running.wait()?;
        flushed.map_err(MediaError::io("writing frames to", Path::new("ffmpeg")))?;
        Ok(told)
    }

    fn write(&mut self, line: &[u8], parts: &[&[u8]]) -> Result<(), MediaError> {
        let mut all = std::iter::once(line).chain(parts.iter().copied());
        if let Err(error) = all.try_for_each(|part| self.into.write_all(part)) {
            // It ended: its own error message says why.
            self.running.wait()?;
            return Err(MediaError::io("writing frames to", Path::new("ffmpeg"))(error));
        }
        Ok(())
    }
}
