//! The analysis' tests, of one program.

mod accounts;
mod brief;
mod captures;
mod common;
mod control;
mod flow_series;
mod layers;
mod link;
mod moq;
mod presence;
mod rivals;
mod screen;
mod trial;
mod uncompressed;
mod warm_up;
mod warm_up_flows;
mod why;
mod why_behind;
mod why_blocking;
mod why_http3;
mod why_lies;
mod why_low;
mod why_requests;
mod why_review;
mod why_switches;
