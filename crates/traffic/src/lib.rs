//! Traffic that is no media, as endpoints of a trial: numbered packets to multicast groups ([`multicast`]), and a flood
//! of small packets that takes a CPU away from its host ([`spray`]).

pub mod multicast;
pub mod spray;
