//! Explicit Congestion Notification of UDP packets (RFC 3168, RFC 6679): what is sent, and what has arrived.

use std::io;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::AsRawFd;

use tokio::io::Interest;
use tokio::net::UdpSocket;

/// The bits of the field (RFC 3168 §5).
const MASK: u8 = 0b11;

/// A packet that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Its length.
    pub length: usize,
    /// Who sent it.
    pub from: SocketAddr,
    /// The two bits of ECN in its IP header.
    pub ecn: u8,
}

/// Sends with these bits of ECN from now on.
///
/// # Errors
/// From the kernel.
pub fn send_with(socket: &UdpSocket, ecn: u8) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_ip_tos(socket, ecn & MASK)?)
}

/// Asks the kernel for the bits of what arrives; without that, [`receive`] returns 0.
///
/// # Errors
/// From the kernel.
pub fn watch(socket: &UdpSocket) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_ip_recvtos(socket, true)?)
}

/// Waits for a packet.
///
/// # Errors
/// From the kernel: also what an earlier packet caused.
pub async fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Received> {
    socket.async_io(Interest::READABLE, || take(socket, buffer)).await
}

/// A packet that is there already; `None` if none is.
pub fn receive_now(socket: &UdpSocket, buffer: &mut [u8]) -> Option<Received> {
    socket.try_io(Interest::READABLE, || take(socket, buffer)).ok()
}

/// Takes the next packet, without waiting.
fn take(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Received> {
    let mut name = MaybeUninit::<libc::sockaddr_in>::zeroed();
    let mut control = [0_u64; 8];
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: plain data; all zeros is a message without address and data.
    let mut message = unsafe { std::mem::zeroed::<libc::msghdr>() };
    message.msg_name = name.as_mut_ptr().cast();
    message.msg_namelen = size_of::<libc::sockaddr_in>() as _;
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the kernel writes to `name`, `buffer` and `control` only, whose lengths are set, and they outlive the call.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: all zeros is an address too, if the kernel wrote none.
    let name = unsafe { name.assume_init() };
    let address = Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr));
    let from = SocketAddrV4::new(address, u16::from_be(name.sin_port)).into();
    Ok(Received { length, from, ecn: bits(&message) })
}

/// The bits of ECN among a message's control data.
fn bits(message: &libc::msghdr) -> u8 {
    // SAFETY: the kernel filled in the control data, and `message` holds its length.
    let mut at = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: the macros return a complete control header within the data, or null.
    while let Some(control) = unsafe { at.as_ref() } {
        if (control.cmsg_level, control.cmsg_type) == (libc::IPPROTO_IP, libc::IP_TOS) {
            // SAFETY: IP_TOS is one byte (ip(7)).
            return unsafe { libc::CMSG_DATA(at).read() } & MASK;
        }
        // SAFETY: `at` is a header of `message`.
        at = unsafe { libc::CMSG_NXTHDR(message, at) };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a test of sockets")]
    async fn socket() -> UdpSocket {
        UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap()
    }

    #[tokio::test]
    async fn what_is_sent_with_bits_arrives_with_them() {
        let (ours, theirs) = (socket().await, socket().await);
        watch(&theirs).unwrap();
        let to = theirs.local_addr().unwrap();
        let mut buffer = [0; 100];
        assert_eq!(receive_now(&theirs, &mut buffer), None);
        for ecn in [0b10, 0b01, 0b11, 0b00] {
            send_with(&ours, ecn).unwrap();
            ours.send_to(&[ecn, 7], to).await.unwrap();
            let received = receive(&theirs, &mut buffer).await.unwrap();
            let expected = Received { length: 2, from: ours.local_addr().unwrap(), ecn };
            assert_eq!(received, expected);
            assert_eq!(buffer[..2], [ecn, 7]);
        }
        let unwatched = socket().await;
        ours.send_to(&[1], unwatched.local_addr().unwrap()).await.unwrap();
        assert_eq!(receive(&unwatched, &mut buffer).await.unwrap().ecn, 0);
    }
}
