//! A guest as its host sees it: a session of processes, of which each but the first runs the programs of one address space.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use suiro_units::Duration;

/// Pages of a stack that are read: its end, where the kernel writes arguments and environment.
const PAGES: u64 = 4;
const PAGE_BYTES: u64 = 4096;
/// How much of a command line is shown.
const SHOWN_MAX: usize = 200;

/// CPU time of the processes of a session, by process id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CpuTimes(pub BTreeMap<i32, Duration>);

impl CpuTimes {
    /// What those that are there have used.
    pub(crate) fn of_session(session: i32) -> Self {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
        let times = entries.filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // Linux counts 100 a second for programs, whatever its own tick is.
            Some((pid, Duration::from_millis(ticks_in(&text, session)?.saturating_mul(10))))
        });
        Self(times.collect())
    }

    /// What each has used since `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let used = |(pid, time): (&i32, &Duration)| {
            (*pid, time.saturating_sub(before.0.get(pid).copied().unwrap_or_default()))
        };
        Self(self.0.iter().map(used).collect())
    }

    /// That of all.
    pub(crate) fn total(&self) -> Duration {
        self.0.values().fold(Duration::ZERO, |sum, time| sum + *time)
    }

    /// The process other than `first` with most; none if no other has any.
    pub(crate) fn busiest(&self, first: i32) -> Option<(i32, Duration)> {
        let others = self.0.iter().filter(|(pid, time)| **pid != first && !time.is_zero());
        others.max_by_key(|(_, time)| **time).map(|(pid, time)| (*pid, *time))
    }
}

/// The CPU time in the text of a /proc/PID/stat, in clock ticks, if the process is of this session (proc(5)).
fn ticks_in(text: &str, session: i32) -> Option<u64> {
    // The name is in parentheses and may contain anything.
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace().skip(3);
    let own: i32 = fields.next()?.parse().ok()?;
    let mut times = fields.skip(7);
    let user: u64 = times.next()?.parse().ok()?;
    let system: u64 = times.next()?.parse().ok()?;
    (own == session).then(|| user + system)
}

/// The command line of the program that a process of a guest runs, shortened. The host knows only the stub that executes it;
/// the guest's kernel has written the command line to the end of the program's stack.
pub(crate) fn command_line(pid: i32) -> Option<String> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    // The stack is the last of the program, and few mappings of the stub and the vDSO come after it.
    let mut ends = maps.lines().rev().take(8).filter_map(|line| {
        let (_, rest) = line.split_once('-')?;
        u64::from_str_radix(rest.split(' ').next()?, 16).ok()
    });
    ends.find_map(|end| words(&end_of_stack(&memory, end)))
}

/// The last pages before `end`, as far as they are there.
fn end_of_stack(memory: &File, end: u64) -> Vec<u8> {
    let mut pages = Vec::new();
    for before in 1..=PAGES {
        let mut page = vec![0; PAGE_BYTES as usize];
        let Some(at) = end.checked_sub(before * PAGE_BYTES) else { break };
        if memory.read_exact_at(&mut page, at).is_err() {
            break;
        }
        page.append(&mut pages);
        pages = page;
    }
    pages
}

/// The arguments at the end of a stack: before them is the name of the machine (AT_PLATFORM); after them come the environment,
/// the path of the program, and eight bytes of zeros.
fn words(stack: &[u8]) -> Option<String> {
    const MACHINE: &[u8] = b"x86_64\0";
    let (rest, zeros) = stack.split_at_checked(stack.len().checked_sub(9)?)?;
    let path = rest.rsplit(|byte| *byte == 0).next()?;
    if zeros.iter().any(|byte| *byte != 0) || path.first() != Some(&b'/') {
        return None;
    }
    let at = rest.windows(MACHINE.len()).rposition(|bytes| bytes == MACHINE);
    let strings = rest[at? + MACHINE.len()..].split(|byte| *byte == 0);
    let is_word = |text: &&[u8]| !text.is_empty() && !is_variable(text);
    let arguments: Vec<_> = strings.filter(is_word).map(String::from_utf8_lossy).collect();
    // The last is the path of the program once more.
    let (_, arguments) = arguments.split_last()?;
    let line = arguments.join(" ");
    Some(line.chars().take(SHOWN_MAX).collect())
}

/// `NAME=value`, as environments have it.
fn is_variable(text: &[u8]) -> bool {
    let name = text.split(|byte| *byte == b'=').next().unwrap_or_default();
    name.len() < text.len() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_cpu_time_of_a_process_is_found() {
        let text = "42 (a ) b) S 1 42 7 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 1 0 9 0 0";
        assert_eq!(ticks_in(text, 7), Some(200));
        assert_eq!(ticks_in(text, 42), None, "of another session");
        assert_eq!(ticks_in("42 (x", 42), None);
    }

    #[test]
    fn the_busiest_is_found_apart_from_the_first() {
        let seconds = Duration::from_secs;
        let times = |of: &[(i32, u64)]| {
            CpuTimes(of.iter().map(|(pid, used)| (*pid, seconds(*used))).collect())
        };
        let before = times(&[(1, 10), (2, 100), (3, 5), (5, 70)]);
        // One has ended, one has begun.
        let used = times(&[(1, 90), (2, 101), (3, 35), (4, 2)]).since(&before);
        assert_eq!(used, times(&[(1, 80), (2, 1), (3, 30), (4, 2)]));
        assert_eq!((used.busiest(1), used.total()), (Some((3, seconds(30))), seconds(113)));
        assert_eq!(before.since(&before).busiest(1), None, "none used CPU time");
    }

    #[test]
    fn the_command_line_is_read_from_the_stack() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo; read word", "here", "--of=a file"]);
        command.env_clear().env("NAME", "value").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The kernel has written all of the stack once the program runs.
        child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        let line = command_line(child.id().cast_signed());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(line.as_deref(), Some("/bin/sh -c echo; read word here --of=a file"));
    }

    #[test]
    fn what_is_no_stack_has_no_command_line() {
        assert_eq!(words(b""), None);
        assert_eq!(words(&[0; 64]), None);
        assert_eq!(words(b"\0x86_64\0name\0A=1\0relative\0\0\0\0\0\0\0\0\0"), None);
        let stack = b"\x07\x80\0x86_64\0name\0-a=1\0A=1\0/bin/name\0\0\0\0\0\0\0\0\0";
        assert_eq!(words(stack).as_deref(), Some("name -a=1"));
        assert_eq!(words(b"name\0A=1\0/bin/name\0\0\0\0\0\0\0\0\0"), None, "it is longer");
    }
}
