//! Which CPU a guest runs on, agreed on by all guests of the machine, whoever starts them.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use rustix::thread::CpuSet;

/// Most seats at one CPU.
const GUESTS_MAX: usize = 64;

/// A CPU for one guest. A guest is one running thread at a time, and handing over between its processes costs five times as
/// much from one CPU to another, so it is bound to one.
///
/// The seat is taken as long as this lives: it is a socket with a name, of which the kernel allows one, and takes away with
/// the process.
#[derive(Debug)]
pub struct Seat {
    cpu: usize,
    _taken: UnixListener,
}

impl Seat {
    /// A seat at one of the CPUs that the fewest guests run on. `None` if this process may not know which CPUs it has, or none
    /// has room: a guest then runs on any.
    pub fn take() -> Option<Self> {
        let allowed = rustix::thread::sched_getaffinity(None).ok()?;
        let cpus = || (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
        let mut seats = (0..GUESTS_MAX).flat_map(|guest| cpus().map(move |cpu| (guest, cpu)));
        seats.find_map(|(guest, cpu)| Self::at(guest, cpu))
    }

    /// This seat, if it is free.
    fn at(guest: usize, cpu: usize) -> Option<Self> {
        let name = format!("suiro guest {guest} of CPU {cpu}");
        let address = SocketAddr::from_abstract_name(name).ok()?;
        Some(Self { cpu, _taken: UnixListener::bind_addr(&address).ok()? })
    }

    /// The CPU's number.
    pub const fn cpu(&self) -> usize {
        self.cpu
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_is_taken_once_and_free_again_afterwards() {
        // One that no guest of this machine takes.
        let guest = GUESTS_MAX + std::process::id() as usize;
        let seat = Seat::at(guest, 3).unwrap();
        assert_eq!(seat.cpu(), 3);
        assert!(Seat::at(guest, 3).is_none());
        assert!(Seat::at(guest, 4).is_some());
        drop(seat);
        assert!(Seat::at(guest, 3).is_some());
    }
}
