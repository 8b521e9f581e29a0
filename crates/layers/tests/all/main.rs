//! The tests of agents, matching, accounts and verdicts, of one program. Those on real hosts are beside it.

mod agent;
#[path = "../common/mod.rs"]
mod common;
mod matching;
mod pcapng;
mod text;
mod verdict;
