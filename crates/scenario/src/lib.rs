//! Scenarios: strict TOML, expanded into a plan of trials.
