//! A sock_diag socket: requests out, samples in. It belongs to the network namespace of the thread
//! that opened it, whichever thread uses it.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

use crate::diag::{self, Body, Family, Message, Sample, SocketId};
use crate::sampling::SamplerError;

/// The kernel fills at most this much per datagram of a dump (NLMSG_GOODSIZE's bound).
const DATAGRAM_BYTES_MAX: usize = 32 * 1024;

/// Requests per system call. The answers wait in the receive buffer (default 208 KiB, about 2.3 kB
/// of kernel memory each), so this many always fit.
const QUESTIONS_MAX: usize = 32;

pub(crate) struct Diagnostics {
    socket: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
    questions: Vec<u8>,
}

/// The result of a request for one socket.
#[expect(clippy::large_enum_variant, reason = "handed over one at a time, never kept")]
pub(crate) enum Answer<'a> {
    Sample(Sample<'a>),
    /// The kernel no longer knows the socket.
    Gone,
}

impl Diagnostics {
    /// Opens the socket in the calling thread's network namespace.
    pub(crate) fn open() -> Result<Self, SamplerError> {
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        );
        let socket = socket.map_err(|errno| SamplerError::netlink("open a socket for", errno))?;
        let (buffer, questions) = (vec![0; DATAGRAM_BYTES_MAX], Vec::new());
        Ok(Self { socket, sequence: 0, buffer, questions })
    }

    /// Every TCP socket of the namespace in one of `states`.
    pub(crate) fn all(
        &mut self,
        states: u32,
        mut each: impl FnMut(Sample<'_>) -> Result<(), SamplerError>,
    ) -> Result<(), SamplerError> {
        for family in [Family::V4, Family::V6] {
            self.sequence = self.sequence.wrapping_add(1);
            let sequence = self.sequence;
            self.send(&diag::request_all(family, states, sequence))?;
            let mut done = false;
            while !done {
                // The kernel fills the next part of a dump while this one is read, so it is never
                // empty.
                let Some(length) = self.receive()? else { break };
                for message in diag::messages(&self.buffer[..length]) {
                    match message? {
                        Message { sequence: other, .. } if other != sequence => {}
                        Message { body: Body::Socket(sample), .. } => each(sample)?,
                        Message { body: Body::Error(errno), .. } if errno != 0 => {
                            let errno = Errno::from_raw_os_error(errno);
                            return Err(SamplerError::netlink("list the sockets from", errno));
                        }
                        Message { body: Body::Done | Body::Error(_), .. } => done = true,
                        Message { body: Body::Nothing, .. } => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// Requests the sockets `ids`; `each` is called with the index into `ids`. An index for which
    /// it is not called went unanswered.
    pub(crate) fn each(
        &mut self,
        ids: &[SocketId],
        mut each: impl FnMut(usize, Answer<'_>) -> Result<(), SamplerError>,
    ) -> Result<(), SamplerError> {
        for (batch, ids) in ids.chunks(QUESTIONS_MAX).enumerate() {
            let first = self.sequence.wrapping_add(1);
            self.questions.clear();
            for id in ids {
                self.sequence = self.sequence.wrapping_add(1);
                diag::request_one(&mut self.questions, id, self.sequence);
            }
            let questions = std::mem::take(&mut self.questions);
            let sent = self.send(&questions);
            self.questions = questions;
            sent?;
            // The kernel answers within the call that sends the requests, so all answers have
            // arrived.
            let mut answered = 0;
            while answered < ids.len() {
                let Some(length) = self.receive()? else { break };
                for message in diag::messages(&self.buffer[..length]) {
                    let message = message?;
                    let index = message.sequence.wrapping_sub(first) as usize;
                    if index >= ids.len() {
                        continue;
                    }
                    answered += 1;
                    let answer = match message.body {
                        Body::Socket(sample) => Answer::Sample(sample),
                        Body::Error(errno) => {
                            refused(errno)?;
                            Answer::Gone
                        }
                        Body::Done | Body::Nothing => continue,
                    };
                    each(batch * QUESTIONS_MAX + index, answer)?;
                }
            }
        }
        Ok(())
    }

    fn send(&self, request: &[u8]) -> Result<(), SamplerError> {
        let sent = rustix::io::retry_on_intr(|| {
            rustix::net::send(&self.socket, request, SendFlags::empty())
        });
        sent.map(drop).map_err(|errno| SamplerError::netlink("send a request to", errno))
    }

    /// Length of the next datagram, in the buffer; `None` if none is waiting, or if some were lost
    /// because the receive buffer was full.
    fn receive(&mut self) -> Result<Option<usize>, SamplerError> {
        let received = rustix::io::retry_on_intr(|| {
            rustix::net::recv(&self.socket, &mut self.buffer[..], RecvFlags::DONTWAIT)
        });
        match received {
            Ok((length, _)) => Ok(Some(length)),
            Err(Errno::AGAIN | Errno::NOBUFS) => Ok(None),
            Err(errno) => Err(SamplerError::netlink("read an answer from", errno)),
        }
    }
}

/// ENOENT and ESTALE mean that the socket is gone; anything else is an error.
fn refused(errno: i32) -> Result<(), SamplerError> {
    match Errno::from_raw_os_error(errno) {
        Errno::NOENT | Errno::STALE => Ok(()),
        errno => Err(SamplerError::netlink("request a socket from", errno)),
    }
}

impl SamplerError {
    fn netlink(doing: &'static str, errno: Errno) -> Self {
        Self::Netlink { doing, cause: io::Error::from(errno) }
    }
}
