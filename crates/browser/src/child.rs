//! A program of others: started in a group of its own, heard line by line, and killed with all that it started.

use std::ffi::OsStr;
use std::io;
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};

/// Longest line of a browser or a player that is looked at; the rest of a longer one is dropped.
const LINE_BYTES_MAX: u64 = 16 << 10;
/// The user that a program that refuses root runs as: `nobody`.
const NOBODY: u32 = 65_534;

/// A command in a process group of its own, that is killed when the thread that starts it ends.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    command
}

/// What is done between fork and exec, after which the program cannot outlive us.
pub fn bind(command: &mut Command, as_user: bool) {
    // SAFETY: between fork and exec, only system calls are made, with no memory but the stack's.
    unsafe {
        command.pre_exec(move || {
            if as_user && rustix::process::geteuid().is_root() {
                become_user()?;
            }
            // A change of user clears it: so it comes last.
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            Ok(())
        });
    }
}

/// Gives up root: for `nobody`; and where that user does not exist, as in a user namespace with one
/// user, for a user of a further namespace that is root's other name.
fn become_user() -> io::Result<()> {
    // SAFETY: system calls without memory of ours. Groups may be forbidden to change; then there
    // are none that root was given.
    unsafe {
        libc::setgroups(0, std::ptr::null());
        if libc::setresgid(NOBODY, NOBODY, NOBODY) == 0
            && libc::setresuid(NOBODY, NOBODY, NOBODY) == 0
        {
            return Ok(());
        }
        if libc::unshare(libc::CLONE_NEWUSER) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    write(c"/proc/self/uid_map", b"1000 0 1")?;
    write(c"/proc/self/setgroups", b"deny")?;
    write(c"/proc/self/gid_map", b"1000 0 1")
}

fn write(path: &std::ffi::CStr, text: &[u8]) -> io::Result<()> {
    let file = rustix::fs::open(path, rustix::fs::OFlags::WRONLY, rustix::fs::Mode::empty())?;
    rustix::io::write(&file, text)?;
    Ok(())
}

/// A child whose whole process group is killed when it is dropped.
pub struct Guarded {
    child: Child,
    group: Option<Pid>,
}

impl Guarded {
    /// Starts it.
    ///
    /// # Errors
    /// What the system said.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        let child = command.spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(Self { child, group })
    }

    /// The child, for its streams.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// What the system said.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // Nobody has waited for the group's leader unless it has ended; others of the group may
        // live on then, and its number stays theirs.
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Lines of a stream, each of bounded length.
pub struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    most: u64,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Those of a stream.
    pub fn new(stream: R) -> Self {
        Self::of_at_most(LINE_BYTES_MAX, stream)
    }

    /// Those of a stream, each of at most so many bytes; the rest of a longer one is dropped.
    pub fn of_at_most(most: u64, stream: R) -> Self {
        Self { reader: BufReader::new(stream), line: Vec::new(), most }
    }

    /// The next line without its end; `None` at the end of the stream. To drop the future loses
    /// nothing: what was read is kept for the next call.
    pub async fn next(&mut self) -> Option<String> {
        loop {
            let left = self.most.saturating_sub(self.line.len() as u64);
            if left == 0 {
                self.skip().await;
                return Some(self.take());
            }
            let read = (&mut self.reader).take(left).read_until(b'\n', &mut self.line).await;
            match read {
                Ok(0) | Err(_) if self.line.is_empty() => return None,
                Ok(0) | Err(_) => return Some(self.take()),
                Ok(_) if self.line.ends_with(b"\n") => return Some(self.take()),
                Ok(_) => {}
            }
        }
    }

    /// Drops the rest of a line that is too long.
    async fn skip(&mut self) {
        loop {
            let Ok(piece) = self.reader.fill_buf().await else { return };
            let end = piece.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(piece.len(), |at| at + 1);
            let over = end.is_some() || piece.is_empty();
            self.reader.consume(used);
            if over {
                return;
            }
        }
    }

    fn take(&mut self) -> String {
        let text = String::from_utf8_lossy(&self.line).trim_end().to_owned();
        self.line.clear();
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_have_a_bound_and_none_is_lost() {
        let long = "x".repeat(100_000);
        let text = format!("one\n{long}\ntwo\nrest");
        let mut lines = Lines::new(text.as_bytes());
        assert_eq!(lines.next().await.unwrap(), "one");
        assert_eq!(lines.next().await.unwrap().len() as u64, LINE_BYTES_MAX);
        assert_eq!(lines.next().await.unwrap(), "two");
        assert_eq!(lines.next().await.unwrap(), "rest");
        assert_eq!(lines.next().await, None);
    }

    #[tokio::test]
    async fn a_dropped_child_takes_its_group_along() {
        let mut command = command("sh");
        command.args(["-c", "sleep 1000 & echo $!; wait"]).stdout(Stdio::piped());
        bind(&mut command, false);
        let mut guarded = Guarded::spawn(&mut command).unwrap();
        let mut lines = Lines::new(guarded.child().stdout.take().unwrap());
        let grandchild: i32 = lines.next().await.unwrap().parse().unwrap();
        drop(guarded);
        // Its copy of the pipe closes when the grandchild is dead.
        assert_eq!(lines.next().await, None, "process {grandchild} lives");
    }

    #[tokio::test]
    async fn root_is_given_up() {
        let mut command = command("id");
        command.arg("-u").stdout(Stdio::piped());
        bind(&mut command, true);
        let mut guarded = Guarded::spawn(&mut command).unwrap();
        let mut lines = Lines::new(guarded.child().stdout.take().unwrap());
        assert_ne!(lines.next().await.unwrap(), "0");
        assert!(guarded.wait().await.unwrap().success());
    }
}
