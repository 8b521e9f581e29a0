//! Why send calls fail: names of errors, as causes next to the kernel's reasons for drops.

use suiro_record::Text;

use crate::event::DropCause;

/// The cause of error number 0. The kernel's own reasons have lower numbers, the highest one included.
const FIRST: u16 = 0xf000;
/// Highest number of an error (linux/errno.h).
const LAST: u16 = 133;

/// Those that `send`, UDP and IP document (send(2), udp(7), ip(7)).
const NAMES: [(i32, &str); 22] = [
    (libc::EPERM, "EPERM"),
    (libc::EINTR, "EINTR"),
    (libc::EIO, "EIO"),
    (libc::EAGAIN, "EAGAIN"),
    (libc::ENOMEM, "ENOMEM"),
    (libc::EACCES, "EACCES"),
    (libc::EFAULT, "EFAULT"),
    (libc::EINVAL, "EINVAL"),
    (libc::EPIPE, "EPIPE"),
    (libc::EDESTADDRREQ, "EDESTADDRREQ"),
    (libc::EMSGSIZE, "EMSGSIZE"),
    (libc::EOPNOTSUPP, "EOPNOTSUPP"),
    (libc::EAFNOSUPPORT, "EAFNOSUPPORT"),
    (libc::EADDRNOTAVAIL, "EADDRNOTAVAIL"),
    (libc::ENETDOWN, "ENETDOWN"),
    (libc::ENETUNREACH, "ENETUNREACH"),
    (libc::ECONNRESET, "ECONNRESET"),
    (libc::ENOBUFS, "ENOBUFS"),
    (libc::ENOTCONN, "ENOTCONN"),
    (libc::ECONNREFUSED, "ECONNREFUSED"),
    (libc::EHOSTDOWN, "EHOSTDOWN"),
    (libc::EHOSTUNREACH, "EHOSTUNREACH"),
];

/// The cause of a failed call.
pub fn cause(number: u16) -> DropCause {
    DropCause(FIRST + number.min(LAST))
}

/// The names of all such causes.
pub fn causes() -> impl Iterator<Item = (u16, Text)> {
    (1..=LAST).map(|number| (FIRST + number, Text::from(name(number))))
}

fn name(number: u16) -> String {
    let known = NAMES.iter().find(|(known, _)| *known == i32::from(number));
    known.map_or_else(|| format!("ERRNO_{number}"), |(_, name)| (*name).into())
}

/// What an error of a send call means, in words; `None` if the cause is no such error.
pub fn words(name: &str) -> Option<&'static str> {
    if !name.starts_with("ERRNO_") && !NAMES.iter().any(|(_, known)| *known == name) {
        return None;
    }
    Some(match name {
        "EAGAIN" => "the socket's send buffer has no room",
        "ENOBUFS" | "ENOMEM" => "the kernel has no memory for it",
        "EMSGSIZE" => "the datagram is larger than the socket or the path allows",
        "ECONNREFUSED" => "an earlier datagram found no socket at the other host",
        "ENETUNREACH" | "EHOSTUNREACH" | "EHOSTDOWN" | "ENETDOWN" => {
            "there is no route to the host"
        }
        "EPERM" | "EACCES" => "it is not permitted",
        _ => "the send call failed",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_names_and_words_that_drop_reasons_do_not_have() {
        let name_of = |wanted: DropCause| {
            causes().find(|(number, _)| *number == wanted.0).map(|(_, name)| name.to_string())
        };
        assert_eq!(name_of(cause(libc::EAGAIN as u16)).as_deref(), Some("EAGAIN"));
        assert_eq!(name_of(cause(77)).as_deref(), Some("ERRNO_77"));
        assert_eq!(name_of(cause(u16::MAX)).as_deref(), Some("ERRNO_133"));
        assert!(words("EMSGSIZE").is_some_and(|words| words.contains("larger")));
        assert_eq!(words("ERRNO_77"), Some("the send call failed"));
        assert_eq!((words("SOCKET_RCVBUFF"), words("NO_SOCKET")), (None, None));
    }
}
