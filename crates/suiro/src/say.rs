//! Messages to people while something runs. A message that cannot be printed is lost, and nothing
//! else is: a reader that left (EPIPE), a terminal that went away (EIO) or a full disk ends no run.

use std::io::{self, ErrorKind, StdoutLock, Write};

use suiro_outside::printable;

/// Prints a line on standard error, as `eprintln!` does, which panics where it cannot.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::say::line(&format!($($text)*))
    };
}

/// Prints a line on standard error, without terminal escapes.
pub fn line(text: &str) {
    let line = format!("{}\n", printable(text));
    // Nobody is left to read it.
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Standard output for what work that is done has come to. A reader that has left has seen enough:
/// what was measured is on the disk, and the exit code is the verdict's.
pub fn results() -> Results {
    Results(std::io::stdout().lock())
}

/// Where results are printed.
pub struct Results(StdoutLock<'static>);

impl Write for Results {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        unless_gone(self.0.write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        unless_gone(self.0.flush(), ())
    }
}

fn unless_gone<T>(printed: io::Result<T>, otherwise: T) -> io::Result<T> {
    match printed {
        Err(error) if is_gone(&error) => Ok(otherwise),
        printed => printed,
    }
}

/// Whether the reader of the output is gone: a pipe without a reader, a terminal that was closed.
pub fn is_gone(error: &io::Error) -> bool {
    // `ErrorKind` has no name for EIO.
    error.kind() == ErrorKind::BrokenPipe || error.raw_os_error() == Some(libc::EIO)
}
