//! The tests of sources, packages, codecs, screens and scores, of one program.

mod common;
mod live_codec;
mod live_over_link;
mod live_source;
mod opus;
mod prepare;
mod quality;
mod quantised;
mod screen;
mod stamp;
mod stream;
