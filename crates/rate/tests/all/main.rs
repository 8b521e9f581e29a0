//! The rate controls' tests, of one program.

mod common;
mod gcc;
mod nada;
mod properties;
mod scream;
mod tfrc;
mod tfrcp;
