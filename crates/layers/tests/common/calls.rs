//! System calls for sending and receiving datagrams, other than those of the standard library.

use std::io::IoSlice;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use io_uring::types::{Fd, RecvMsgOut};
use io_uring::{IoUring, cqueue, opcode, squeue};

/// More than any datagram in these tests has.
const DATAGRAM_BYTES: usize = 2048;

/// Sends all in one call.
pub fn sendmmsg(socket: &UdpSocket, payloads: &[Vec<u8>]) {
    assert_eq!(sends_of(socket, payloads), payloads.len() as i32);
}

/// Tries to send all in one call, of which the last cannot be sent.
pub fn sendmmsg_fails(socket: &UdpSocket, payloads: &[Vec<u8>]) {
    assert_eq!(sends_of(socket, payloads), payloads.len() as i32 - 1);
}

fn sends_of(socket: &UdpSocket, payloads: &[Vec<u8>]) -> i32 {
    let mut slices: Vec<IoSlice<'_>> =
        payloads.iter().map(|payload| IoSlice::new(payload)).collect();
    let mut heads: Vec<libc::mmsghdr> = slices
        .iter_mut()
        .map(|slice| libc::mmsghdr {
            msg_hdr: message(std::ptr::from_mut(slice).cast()),
            msg_len: 0,
        })
        .collect();
    // SAFETY: each head points to one slice, each slice to its payload; all of them live on.
    unsafe {
        libc::sendmmsg(socket.as_raw_fd(), heads.as_mut_ptr(), heads.len() as libc::c_uint, 0)
    }
}

/// What one call returns, at most `most`.
pub fn recvmmsg(socket: &UdpSocket, most: usize) -> Vec<Vec<u8>> {
    let mut buffers = vec![[0u8; DATAGRAM_BYTES]; most];
    let mut slices: Vec<libc::iovec> = buffers
        .iter_mut()
        .map(|buffer| libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() })
        .collect();
    let mut heads: Vec<libc::mmsghdr> = slices
        .iter_mut()
        .map(|slice| libc::mmsghdr { msg_hdr: message(slice), msg_len: 0 })
        .collect();
    // SAFETY: each head points to one slice, each slice to its buffer; all of them live on.
    let count = unsafe {
        let count = heads.len() as libc::c_uint;
        let flags = libc::MSG_WAITFORONE;
        libc::recvmmsg(socket.as_raw_fd(), heads.as_mut_ptr(), count, flags, std::ptr::null_mut())
    };
    let count = usize::try_from(count).expect("recvmmsg gives some");
    let given = heads.iter().zip(&buffers).take(count);
    given.map(|(head, buffer)| buffer[..head.msg_len as usize].to_vec()).collect()
}

/// One datagram from this slice.
fn message(slice: *mut libc::iovec) -> libc::msghdr {
    let mut head = no_message();
    (head.msg_iov, head.msg_iovlen) = (slice, 1);
    head
}

fn no_message() -> libc::msghdr {
    // SAFETY: a head of zeros is one without address, slices and control data.
    unsafe { std::mem::zeroed() }
}

/// Sends each with its own request, in order, with these flags.
pub fn uring_sends(
    ring: &mut IoUring,
    socket: &UdpSocket,
    payloads: &[Vec<u8>],
    flags: squeue::Flags,
) {
    for payload in payloads {
        let length = payload.len() as u32;
        let send = opcode::Send::new(Fd(socket.as_raw_fd()), payload.as_ptr(), length);
        submit(ring, &send.build().flags(flags));
        assert_eq!(completed(ring).result(), payload.len() as i32);
    }
}

/// Requests that all are sent at once, and does not wait. The payloads must live until they have arrived.
pub fn uring_sends_later(ring: &mut IoUring, socket: &UdpSocket, payloads: &[Vec<u8>]) {
    for payload in payloads {
        let length = payload.len() as u32;
        submit(ring, &opcode::Send::new(Fd(socket.as_raw_fd()), payload.as_ptr(), length).build());
    }
    assert_eq!(ring.submit().unwrap(), payloads.len());
}

/// How to request datagrams from io_uring.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Receive {
    /// One buffer for each.
    One,
    /// The same with a message header.
    Message,
    /// One request for all, into buffers that were provided before.
    Multishot,
}

/// Receives `count` datagrams and passes on each. The socket must not be used again: a request may be left.
pub fn uring_receives(
    socket: &UdpSocket,
    how: Receive,
    count: usize,
    mut each: impl FnMut(Vec<u8>),
) {
    let mut ring = IoUring::new(8).unwrap();
    let mut buffers = vec![0u8; DATAGRAM_BYTES * count];
    let socket = Fd(socket.as_raw_fd());
    let head = no_message();
    let all = opcode::RecvMsgMulti::new(socket, &raw const head, 1).build();
    if how == Receive::Multishot {
        let (buffers, length) = (buffers.as_mut_ptr(), DATAGRAM_BYTES as i32);
        submit(
            &mut ring,
            &opcode::ProvideBuffers::new(buffers, length, count as u16, 1, 0).build(),
        );
        assert_eq!(completed(&mut ring).result(), 0);
        submit(&mut ring, &all);
    }
    for at in 0..count {
        let buffer = buffers[at * DATAGRAM_BYTES..].as_mut_ptr();
        let mut slice = libc::iovec { iov_base: buffer.cast(), iov_len: DATAGRAM_BYTES };
        let mut head_of_one = message(&raw mut slice);
        let one = opcode::Recv::new(socket, buffer, DATAGRAM_BYTES as u32).build();
        let message = opcode::RecvMsg::new(socket, &raw mut head_of_one).build();
        match how {
            Receive::One => submit(&mut ring, &one),
            Receive::Message => submit(&mut ring, &message),
            Receive::Multishot => {}
        }
        let done = completed(&mut ring);
        let bytes = usize::try_from(done.result()).unwrap_or_else(|_| panic!("{done:?}"));
        let at = cqueue::buffer_select(done.flags()).map_or(at, usize::from);
        let given = &buffers[at * DATAGRAM_BYTES..][..bytes];
        if how == Receive::Multishot {
            each(RecvMsgOut::parse(given, &head).unwrap().payload_data().to_vec());
            // It ends when its completions find no room.
            if !cqueue::more(done.flags()) {
                submit(&mut ring, &all);
            }
        } else {
            each(given.to_vec());
        }
    }
}

fn submit(ring: &mut IoUring, request: &squeue::Entry) {
    // SAFETY: the caller keeps buffers and headers until the request has completed.
    unsafe { ring.submission().push(request) }.expect("the ring has room");
}

fn completed(ring: &mut IoUring) -> cqueue::Entry {
    loop {
        if let Some(done) = ring.completion().next() {
            return done;
        }
        ring.submit_and_wait(1).unwrap();
    }
}
