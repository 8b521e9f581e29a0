//! Why a system refuses namespaces, and how to fix it.

use std::io;

use super::SandboxError;
use super::child::PRIVATE_MOUNTS;

/// A setting that denies namespaces to ordinary users.
struct Setting {
    file: &'static str,
    forbids: fn(&str) -> bool,
    reason: &'static str,
    hint: &'static str,
}

const SETTINGS: &[Setting] = &[
    Setting {
        file: "/proc/sys/kernel/unprivileged_userns_clone",
        forbids: |value| value == "0",
        reason: "Debian's kernel.unprivileged_userns_clone=0 forbids user namespaces",
        hint: "run `sudo sysctl -w kernel.unprivileged_userns_clone=1`, or run suiro as root",
    },
    Setting {
        file: "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        forbids: |value| value != "0",
        reason: "Ubuntu's kernel.apparmor_restrict_unprivileged_userns=1 removes all privileges \
                 in user namespaces",
        hint: "run `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, or run suiro \
               as root",
    },
    Setting {
        file: "/proc/sys/user/max_user_namespaces",
        forbids: |value| value == "0",
        reason: "user.max_user_namespaces=0 forbids user namespaces",
        hint: "run `sudo sysctl -w user.max_user_namespaces=15000`, or run suiro as root",
    },
    Setting {
        file: "/proc/sys/user/max_net_namespaces",
        forbids: |value| value == "0",
        reason: "user.max_net_namespaces=0 forbids network namespaces",
        hint: "run `sudo sysctl -w user.max_net_namespaces=15000`",
    },
];

/// Finds the setting behind a refusal, if it is one that we know.
pub(super) fn explain(doing: &str, cause: io::Error) -> SandboxError {
    explain_with(doing, cause, |file| std::fs::read_to_string(file).ok())
}

fn explain_with(
    doing: &str,
    cause: io::Error,
    read: impl Fn(&str) -> Option<String>,
) -> SandboxError {
    let forbidden = |reason: &str, hint: &str| SandboxError::Forbidden {
        doing: doing.to_owned(),
        reason: format!("{cause}: {reason}"),
        hint: hint.to_owned(),
    };
    match cause.raw_os_error() {
        Some(libc::EPERM | libc::EACCES | libc::ENOSPC | libc::EUSERS) => {
            let forbids = |s: &&Setting| read(s.file).is_some_and(|v| (s.forbids)(v.trim()));
            match SETTINGS.iter().find(forbids) {
                Some(setting) => forbidden(setting.reason, setting.hint),
                None if cause.raw_os_error() == Some(libc::ENOSPC) => forbidden(
                    "too many namespaces, or too deeply nested",
                    "end other sandboxes, or raise the limits in /proc/sys/user",
                ),
                None => forbidden(
                    "namespaces are not permitted here, as in most containers and chroots",
                    "run suiro outside the container, or give the container SYS_ADMIN and \
                     NET_ADMIN (docker: --privileged)",
                ),
            }
        }
        Some(libc::EINVAL) if doing == PRIVATE_MOUNTS => forbidden(
            "the root folder is no mount point, as in a chroot",
            "run suiro in a container, or outside the chroot",
        ),
        Some(libc::ENOSYS) => forbidden(
            "clone3 is filtered, as in some containers, or the kernel is older than 5.3",
            "run suiro outside the container, or without its seccomp profile",
        ),
        _ => SandboxError::Os { doing: doing.to_owned(), cause },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(errno: i32, settings: &[(&str, &str)]) -> String {
        let read = |file: &str| {
            let found = settings.iter().find(|(name, _)| file.ends_with(name));
            found.map(|(_, value)| format!("{value}\n"))
        };
        explain_with("making namespaces", io::Error::from_raw_os_error(errno), read).to_string()
    }

    #[test]
    fn each_refusal_names_its_remedy() {
        let debian = say(libc::EPERM, &[("/unprivileged_userns_clone", "0")]);
        assert!(debian.contains("sudo sysctl -w kernel.unprivileged_userns_clone=1"), "{debian}");
        let ubuntu = say(libc::EACCES, &[("/apparmor_restrict_unprivileged_userns", "1")]);
        assert!(ubuntu.contains("apparmor_restrict_unprivileged_userns=0"), "{ubuntu}");
        let none = say(libc::ENOSPC, &[("/max_user_namespaces", "0")]);
        assert!(none.contains("max_user_namespaces=15000"), "{none}");
        let permitted = [
            ("/unprivileged_userns_clone", "1"),
            ("/apparmor_restrict_unprivileged_userns", "0"),
            ("/max_user_namespaces", "96365"),
        ];
        let container = say(libc::EPERM, &permitted);
        assert!(container.contains("container"), "{container}");
        assert!(say(libc::ENOSPC, &permitted).contains("too many namespaces"));
        let cause = io::Error::from_raw_os_error(libc::EINVAL);
        let chroot = explain_with(PRIVATE_MOUNTS, cause, |_| None).to_string();
        assert!(chroot.contains("outside the chroot"), "{chroot}");
        assert!(say(libc::ENOSYS, &[]).contains("seccomp"));
        assert_eq!(
            say(libc::ENOMEM, &[]),
            "making namespaces: Cannot allocate memory (os error 12)"
        );
    }
}
