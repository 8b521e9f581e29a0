//! Layered QoS: what each protocol layer of each host lost or delayed.
