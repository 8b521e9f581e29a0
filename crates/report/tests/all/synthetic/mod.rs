//! A results folder of synthetic trials.

pub mod folder;
pub mod model;
