//! The tests of the program, in one program. Those with a `main` of their own are next to it.

mod absence;
mod browser;
mod camera;
mod captures;
#[path = "../common/mod.rs"]
mod common;
mod control;
mod diff;
mod doctor;
mod guide;
mod hostile_files;
mod hostile_streams;
mod install;
mod kill;
mod layers;
mod layers_command;
mod limits;
mod link;
mod merge;
mod multicast;
mod players;
mod printing;
mod proofs;
mod recording;
mod retries;
mod run;
mod screens;
mod sources;
mod stream;
mod tidy;
mod uncompressed;
mod uncompressed_send;
mod uncompressed_streams;
mod usage;
mod virtual_time;
mod words;
