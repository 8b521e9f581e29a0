//! Hosts, links and endpoint processes; runs a plan.
