//! The programs that a command starts, found behind programs that only start another: `taskset -c 0 iperf3 …`.

use std::path::Path;

/// A program that starts the command in its arguments.
struct Wrapper {
    name: &'static str,
    /// Its options that take the next argument as their value.
    valued: &'static [&'static str],
    /// How many of its own arguments stand before the command.
    own: usize,
}

const WRAPPERS: [Wrapper; 9] = [
    Wrapper { name: "taskset", valued: &[], own: 1 },
    Wrapper { name: "nice", valued: &["-n"], own: 0 },
    Wrapper { name: "ionice", valued: &["-c", "-n"], own: 0 },
    Wrapper { name: "chrt", valued: &["-T", "-P", "-D"], own: 1 },
    Wrapper { name: "timeout", valued: &["-k", "-s"], own: 1 },
    Wrapper { name: "env", valued: &["-u", "-C"], own: 0 },
    Wrapper { name: "stdbuf", valued: &["-i", "-o", "-e"], own: 0 },
    Wrapper { name: "setsid", valued: &[], own: 0 },
    Wrapper { name: "nohup", valued: &[], own: 0 },
];

const SHELLS: [&str; 3] = ["sh", "bash", "dash"];

/// Words that begin a line of shell and are no programs (POSIX.1-2024, Shell Command Language 2.4 and 2.15).
const SHELL_WORDS: [&str; 34] = [
    ".", ":", "alias", "bg", "break", "case", "cd", "command", "continue", "eval", "exit",
    "export", "false", "fg", "for", "function", "getopts", "hash", "if", "jobs", "read",
    "readonly", "return", "set", "shift", "source", "times", "trap", "type", "ulimit", "umask",
    "unset", "until", "while",
];

/// The programs that must be there for `command` to run: its own, and the one that a wrapper or a simple line of
/// shell starts. A line of shell with any syntax is not looked into.
pub(super) fn programs(command: &[String]) -> Vec<&str> {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let mut found = Vec::new();
    follow(&words, &mut found);
    found
}

fn follow<'c>(command: &[&'c str], found: &mut Vec<&'c str>) {
    let Some((&program, arguments)) = command.split_first() else { return };
    found.push(program);
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program);
    if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == name) {
        follow(wrapper.inner(arguments).unwrap_or_default(), found);
    } else if SHELLS.contains(&name)
        && let ["-c", script, ..] = arguments
    {
        follow(&simple(script).unwrap_or_default(), found);
    }
}

impl Wrapper {
    /// The command in its arguments; `None` if there is none, or it cannot be found in them.
    fn inner<'a, 'c>(&self, arguments: &'a [&'c str]) -> Option<&'a [&'c str]> {
        let mut rest = arguments;
        let mut own = self.own;
        loop {
            let (&first, after) = rest.split_first()?;
            // `-p` is about a process that runs already.
            if first == "-p" && self.own > 0 {
                return None;
            }
            rest = match first {
                option if self.valued.contains(&option) => after.get(1..)?,
                option if option.starts_with('-') => after,
                assignment if self.name == "env" && assignment.contains('=') => after,
                _ if own > 0 => {
                    own -= 1;
                    after
                }
                _ => return Some(rest),
            };
        }
    }
}

/// The words of a line of shell that is one simple command without expansions, quotes or redirections.
fn simple(script: &str) -> Option<Vec<&str>> {
    let plain = |c: char| c.is_ascii_alphanumeric() || " _./:@%+,=-".contains(c);
    if !script.chars().all(plain) {
        return None;
    }
    let mut words: Vec<&str> = script.split(' ').filter(|word| !word.is_empty()).collect();
    if words.first() == Some(&"exec") {
        words.remove(0);
    }
    let first = words.first()?;
    (!SHELL_WORDS.contains(first) && !first.contains('=')).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Vec<String> {
        let command: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        programs(&command).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn wrappers_are_looked_through() {
        assert_eq!(of(&["iperf3", "--server"]), ["iperf3"]);
        assert_eq!(
            of(&["taskset", "-c", "0", "gst-launch-1.0", "-q"]),
            ["taskset", "gst-launch-1.0"]
        );
        assert_eq!(of(&["/usr/bin/nice", "-n", "5", "x"]), ["/usr/bin/nice", "x"]);
        assert_eq!(of(&["chrt", "--rr", "9", "nice", "-n5", "x"]), ["chrt", "nice", "x"]);
        assert_eq!(
            of(&["env", "-i", "A=b", "timeout", "-k", "1", "5", "x"]),
            ["env", "timeout", "x"]
        );
    }

    #[test]
    fn a_simple_line_of_shell_is_looked_into_and_no_other() {
        assert_eq!(of(&["sh", "-c", "exec ping -c 3 server"]), ["sh", "ping"]);
        assert_eq!(of(&["taskset", "1", "bash", "-c", "iperf3 -s"]), ["taskset", "bash", "iperf3"]);
        for script in
            ["seq 4 | xargs x", "while true", "A=b x", "$x", "cd /tmp", "'x y'", "exec", ""]
        {
            assert_eq!(of(&["sh", "-c", script]), ["sh"], "{script}");
        }
        assert_eq!(of(&["sh", "script.sh"]), ["sh"]);
    }

    #[test]
    fn what_cannot_be_told_is_not_guessed() {
        assert_eq!(of(&["taskset", "-p", "1", "7"]), ["taskset"]);
        assert_eq!(of(&["nice"]), ["nice"]);
        assert_eq!(of(&["nice", "-n"]), ["nice"]);
        assert!(of(&[]).is_empty());
    }
}
