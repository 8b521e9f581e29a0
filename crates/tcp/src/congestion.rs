//! Congestion control by name: what the kernel has, who may use it, and how to select it.

use std::fs;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::sockopt;

/// Longest name of a congestion control, in bytes (the kernel's `TCP_CA_NAME_MAX` minus its NUL).
pub const NAME_BYTES_MAX: usize = 15;

/// The congestion control that [`crate::vegas`] adds.
pub const VEGAS: &str = "vegas";

/// The congestion controls of this network namespace. A list is `None` if the kernel does not show
/// it here: some settings are visible only in the initial namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controls {
    /// Built in or loaded, in the kernel's order.
    pub available: Option<Vec<String>>,
    /// Allowed for everybody; the others need CAP_NET_ADMIN over the network namespace.
    pub allowed: Option<Vec<String>>,
    /// What a socket gets that does not select one.
    pub default: Option<String>,
}

impl Controls {
    /// Reads them for the calling thread's network namespace.
    pub fn read() -> Self {
        Self {
            available: setting("tcp_available_congestion_control").map(|text| words(&text)),
            allowed: setting("tcp_allowed_congestion_control").map(|text| words(&text)),
            default: setting("tcp_congestion_control"),
        }
    }
}

impl Controls {
    /// Why no socket on this machine can have the congestion control `name`; `None` if one can, or
    /// if the kernel does not show in this namespace what it has.
    pub fn lacking(&self, name: &str) -> Option<CongestionError> {
        let available = self.available.as_ref()?;
        (!available.iter().any(|known| known == name)).then(|| CongestionError::Unknown {
            name: name.to_owned(),
            available: available.join(" "),
        })
    }
}

/// The command that adds the congestion control `name` to this kernel, if there is one.
pub fn remedy(name: &str) -> String {
    match name {
        VEGAS => "sudo suiro tcp load vegas".to_owned(),
        other => format!("sudo modprobe tcp_{other}"),
    }
}

fn setting(name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok()?;
    Some(text.trim().to_owned())
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Why a socket did not get the requested congestion control.
#[derive(Debug, thiserror::Error)]
pub enum CongestionError {
    /// It cannot be the name of a congestion control.
    #[error(
        "`{name}` is not the name of a congestion control: expected 1 to 15 letters, digits, `_` or `-`\n\
         hint: suiro tcp list"
    )]
    Name {
        /// The requested name.
        name: String,
    },
    /// The kernel has no congestion control of that name.
    #[error(
        "this kernel has no congestion control `{name}` (it has: {available})\n\
         hint: {remedy}, or use one of those",
        remedy = remedy(name)
    )]
    Unknown {
        /// The requested name.
        name: String,
        /// The names that the kernel has.
        available: String,
    },
    /// The kernel has it, but does not allow it to this process.
    #[error(
        "congestion control `{name}` is not allowed for this user (allowed: {allowed})\n\
         hint: sudo sysctl -w net.ipv4.tcp_allowed_congestion_control=\"{wanted}\""
    )]
    NotAllowed {
        /// The requested name.
        name: String,
        /// The names that are allowed for everybody.
        allowed: String,
        /// The value that the setting should have.
        wanted: String,
    },
    /// The socket took another one than requested, or refused for another reason.
    #[error("congestion control `{name}`: {cause}")]
    Socket {
        /// The requested name.
        name: String,
        /// The system's error.
        cause: std::io::Error,
    },
}

/// Selects the congestion control `name` for a TCP socket. A listening socket passes it on to the
/// connections that it accepts.
///
/// # Errors
/// [`CongestionError`] says whether the name is invalid, the kernel does not have it, or this
/// process may not use it, and how to fix it.
pub fn set_congestion(socket: impl AsFd, name: &str) -> Result<(), CongestionError> {
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(valid) {
        return Err(CongestionError::Name { name: name.into() });
    }
    sockopt::set_tcp_congestion(socket, name).map_err(|errno| explain(name, errno))
}

fn explain(name: &str, errno: Errno) -> CongestionError {
    let controls = Controls::read();
    let list = |names: Option<Vec<String>>| {
        names.map_or_else(|| "not shown in this namespace".to_owned(), |names| names.join(" "))
    };
    match errno {
        Errno::NOENT => {
            CongestionError::Unknown { name: name.into(), available: list(controls.available) }
        }
        Errno::PERM => {
            let mut wanted = controls.allowed.clone().unwrap_or_default();
            wanted.push(name.into());
            let allowed = list(controls.allowed);
            CongestionError::NotAllowed { name: name.into(), allowed, wanted: wanted.join(" ") }
        }
        other => CongestionError::Socket { name: name.into(), cause: other.into() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket() -> std::os::fd::OwnedFd {
        use rustix::net::{AddressFamily, SocketType, socket};
        socket(AddressFamily::INET, SocketType::STREAM, None).unwrap()
    }

    #[test]
    fn reno_is_everywhere() {
        let socket = socket();
        set_congestion(&socket, "reno").unwrap();
        assert_eq!(sockopt::tcp_congestion(&socket).unwrap(), "reno");
    }

    #[test]
    fn an_unknown_name_is_reported_with_the_known_ones() {
        let error = set_congestion(socket(), "renoo").unwrap_err().to_string();
        assert!(error.contains("has no congestion control `renoo`"), "{error}");
        assert!(
            error.contains("reno") && error.contains("hint: sudo modprobe tcp_renoo"),
            "{error}"
        );
    }

    #[test]
    fn the_hint_for_vegas_is_suiro_itself() {
        let controls =
            Controls { available: Some(vec!["reno".into()]), allowed: None, default: None };
        let error = controls.lacking("vegas").unwrap().to_string();
        assert!(error.contains("hint: sudo suiro tcp load vegas"), "{error}");
        assert!(controls.lacking("reno").is_none());
    }

    #[test]
    fn an_invalid_name_never_reaches_the_kernel() {
        for name in ["", "a_name_of_16_byt", "re no", "réno", "reno\0"] {
            let error = set_congestion(socket(), name).unwrap_err();
            assert!(matches!(error, CongestionError::Name { .. }), "{error}");
        }
    }

    #[test]
    fn a_disallowed_name_is_reported_with_the_setting_that_allows_it() {
        let error = explain("cubic", Errno::PERM).to_string();
        assert!(error.contains("`cubic` is not allowed for this user"), "{error}");
        assert!(error.contains("tcp_allowed_congestion_control=\""), "{error}");
        assert!(error.ends_with("cubic\""), "{error}");
    }
}
