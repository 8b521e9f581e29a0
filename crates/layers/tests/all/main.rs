//! The tests of agents, matching, accounts and verdicts, as one program. Those on real hosts are next to it.

mod agent;
#[path = "../common/mod.rs"]
mod common;
mod matching;
mod pcapng;
mod text;
mod verdict;
