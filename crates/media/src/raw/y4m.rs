//! YUV4MPEG2, the stream of raw frames that ffmpeg reads and writes: a line of text with size and
//! rate, then `FRAME` and the planes for each frame. As ffmpeg's `yuv4mpegpipe` and mjpegtools'
//! yuv4mpeg(5) have it; only 8 bits and 4:2:0.

use std::io::{self, BufRead, Read as _};

use crate::ParseError;
use crate::stamp::SIDE_MAX;

/// Longest line of text that is read.
const LINE_MAX: u64 = 512;

/// The content of the first line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
    /// Frames per second, as a fraction.
    pub rate: (u32, u32),
}

impl Header {
    /// Bytes of a frame: the luma plane, then two of a quarter of its size, rounded up.
    pub fn bytes(&self) -> usize {
        let (width, height) = (self.width as usize, self.height as usize);
        width * height + 2 * width.div_ceil(2) * height.div_ceil(2)
    }

    /// The first line, with its end.
    pub fn line(&self) -> String {
        let Self { width, height, rate: (pictures, seconds) } = self;
        format!("YUV4MPEG2 W{width} H{height} F{pictures}:{seconds} Ip A1:1 C420mpeg2\n")
    }

    /// The header of what begins with `line`.
    fn parse(line: &[u8]) -> Result<Self, ParseError> {
        let failed = |message: &str| ParseError::new(0, format!("no raw frames: {message}"));
        let text = std::str::from_utf8(line).map_err(|_| failed("no text"))?;
        let mut words = text.strip_suffix('\n').ok_or_else(|| failed("cut header"))?.split(' ');
        if words.next() != Some("YUV4MPEG2") {
            return Err(failed("not YUV4MPEG2"));
        }
        let (mut width, mut height, mut rate) = (None, None, None);
        for word in words.filter_map(|word| word.split_at_checked(1)) {
            match word {
                ("W", side) => width = side.parse().ok(),
                ("H", side) => height = side.parse().ok(),
                ("F", text) => rate = text.split_once(':').and_then(fraction),
                ("C", colour) if !colour.starts_with("420") || colour.starts_with("420p") => {
                    return Err(failed("not 4:2:0 of 8 bits"));
                }
                _ => {}
            }
        }
        let side = |side: Option<u32>| side.filter(|side| (1..=SIDE_MAX).contains(side));
        let width = side(width).ok_or_else(|| failed("no width"))?;
        let height = side(height).ok_or_else(|| failed("no height"))?;
        Ok(Self { width, height, rate: rate.ok_or_else(|| failed("no rate"))? })
    }
}

fn fraction((above, below): (&str, &str)) -> Option<(u32, u32)> {
    let positive = |text: &str| text.parse().ok().filter(|number| *number > 0);
    Some((positive(above)?, positive(below)?))
}

/// Reads the header; `None` if there is not a byte.
pub(crate) fn header(from: &mut impl BufRead) -> io::Result<Option<Header>> {
    let line = line(from)?;
    if line.is_empty() {
        return Ok(None);
    }
    Header::parse(&line).map(Some).map_err(io::Error::other)
}

/// Reads the next frame into `picture`, whose length is that of one; `false` at the end. A
/// frame that is cut is an error.
pub(crate) fn picture(from: &mut impl BufRead, picture: &mut [u8]) -> io::Result<bool> {
    let line = line(from)?;
    if line.is_empty() {
        return Ok(false);
    }
    if !(line.starts_with(b"FRAME") && line.ends_with(b"\n")) {
        return Err(io::Error::other("raw frames: not a frame"));
    }
    from.read_exact(picture)?;
    Ok(true)
}

fn line(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    from.take(LINE_MAX).read_until(b'\n', &mut line)?;
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_round_trips() {
        let wanted = Header { width: 6, height: 5, rate: (24, 1) };
        assert_eq!(wanted.bytes(), 30 + 2 * 9);
        let mut stream = wanted.line().into_bytes();
        for level in [7, 9] {
            stream.extend(b"FRAME\n");
            stream.extend([level; 48]);
        }
        let mut from = &stream[..];
        assert_eq!(header(&mut from).unwrap(), Some(wanted));
        let mut read = [0; 48];
        assert!(picture(&mut from, &mut read).unwrap() && read == [7; 48]);
        assert!(picture(&mut from, &mut read).unwrap() && read == [9; 48]);
        assert!(!picture(&mut from, &mut read).unwrap());
        let mut cut = &stream[..stream.len() - 1];
        header(&mut cut).unwrap();
        picture(&mut cut, &mut read).unwrap();
        assert_eq!(picture(&mut cut, &mut read).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn what_is_not_of_this_kind_is_refused() {
        let ffmpeg = "YUV4MPEG2 W320 H180 F10:1 Ip A1:1 C420jpeg XYSCSS=420JPEG\n";
        let read = |text: &str| header(&mut text.as_bytes());
        assert_eq!(read(ffmpeg).unwrap().unwrap().rate, (10, 1));
        assert_eq!(read("").unwrap(), None);
        for (from, to) in [
            ("W320", "W0"),
            ("H180", "H99999"),
            ("F10:1", "F10:0"),
            ("C420jpeg", "C444"),
            ("C420jpeg", "C420p10"),
            ("YUV4MPEG2", "RIFF"),
            ("\n", ""),
        ] {
            let error = read(&ffmpeg.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains("no raw frames: "), "{to}: {error}");
        }
        assert!(picture(&mut &b"FRAM"[..], &mut []).is_err());
        assert!(header(&mut &[b'x'; 4096][..]).is_err());
    }
}
