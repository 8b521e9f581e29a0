//! Programs of this machine.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where a command is: in PATH, or where the system's own programs are, which an ordinary user's
/// PATH often does not have.
pub fn find(command: &OsStr) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    among(&path, command).or_else(|| among(OsStr::new("/usr/sbin:/sbin"), command))
}

/// Where a command is in these folders, separated as in PATH.
pub fn among(path: &OsStr, command: &OsStr) -> Option<PathBuf> {
    let mut files = std::env::split_paths(path).map(|folder| folder.join(command));
    files.find(|file| is_executable(file))
}

/// Whether this process can start `program` by that name, or by that path if it holds a `/`, as
/// [`std::process::Command`] does.
pub fn can_start(program: &OsStr) -> bool {
    if program.as_encoded_bytes().contains(&b'/') {
        return is_executable(Path::new(program));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    among(&path, program).is_some()
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_and_others_are_not() {
        assert!(find("sh".as_ref()).is_some_and(|path| path.is_absolute()));
        assert_eq!(find("no-such-program".as_ref()), None);
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("text");
        std::fs::write(&file, "no program").unwrap();
        assert_eq!(find(file.as_os_str()), None, "it cannot be executed");
    }
}
