//! The machine as its /proc and /sys show it, and what ethtool says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Longest file that is read.
const BYTES_MAX: u64 = 1 << 20;

/// Asks ethtool; what it printed, or why it did not.
type Ethtool = Box<dyn Fn(&[&str]) -> Result<String, String>>;

/// A machine.
pub struct Machine {
    root: PathBuf,
    ethtool: Ethtool,
}

impl Machine {
    /// This one.
    pub fn this() -> Self {
        Self { root: PathBuf::from("/"), ethtool: Box::new(ethtool) }
    }

    /// Another one, whose files are below `root`.
    #[cfg(test)]
    pub fn at(root: &Path, ethtool: Ethtool) -> Self {
        Self { root: root.to_owned(), ethtool }
    }

    fn below_root(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// What a file says, without white space around it; `None` if it cannot be read. Of a file that
    /// lists choices, the chosen one, which is in brackets.
    pub fn read(&self, path: impl AsRef<Path>) -> Option<String> {
        let path = self.below_root(path.as_ref());
        let mut text = String::new();
        let file = fs::File::open(path).ok()?;
        std::io::Read::read_to_string(&mut std::io::Read::take(file, BYTES_MAX), &mut text).ok()?;
        let text = text.trim();
        let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        let choices = chosen.is_some() && !text.contains('\n');
        Some(chosen.filter(|_| choices).map_or(text, |(chosen, _)| chosen).to_owned())
    }

    /// The number that a file says.
    pub fn number(&self, path: impl AsRef<Path>) -> Option<u64> {
        self.read(path)?.parse().ok()
    }

    /// Writes a file of /proc or /sys.
    pub fn write(&self, path: &Path, value: &str) -> std::io::Result<()> {
        fs::write(self.below_root(path), value)
    }

    /// The names in a folder, sorted; none if there is no such folder.
    pub fn names(&self, folder: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.below_root(folder.as_ref())).into_iter().flatten();
        let mut names: Vec<_> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Interfaces with a device that are up.
    pub fn interfaces(&self) -> Vec<String> {
        let mut names = self.names("/sys/class/net");
        names.retain(|name| {
            let folder = Path::new("/sys/class/net").join(name);
            let has_device = self.below_root(&folder.join("device")).exists();
            has_device && self.read(folder.join("operstate")).as_deref() == Some("up")
        });
        names
    }

    /// Asks ethtool.
    pub fn ethtool(&self, arguments: &[&str]) -> Result<String, String> {
        (self.ethtool)(arguments)
    }

    /// CPUs that are on line.
    pub fn cpus(&self) -> Vec<u32> {
        cpu_list(&self.read("/sys/devices/system/cpu/online").unwrap_or_default())
    }
}

/// The CPUs of a list such as `0-3,8`; those of a malformed one that can be understood, at most 4096.
pub fn cpu_list(text: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse::<u32>().ok()?)
    };
    text.split(',').filter_map(range).flatten().take(4096).collect()
}

fn ethtool(arguments: &[&str]) -> Result<String, String> {
    let path = ["/usr/sbin/ethtool", "/sbin/ethtool", "/usr/bin/ethtool"];
    let program = path.into_iter().find(|path| Path::new(path).exists()).unwrap_or("ethtool");
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("ethtool: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let error = String::from_utf8_lossy(&output.stderr);
    Err(error.lines().next().unwrap_or("ethtool failed").to_owned())
}
