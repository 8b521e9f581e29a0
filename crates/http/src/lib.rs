//! DASH and HLS over HTTP: origin and headless players.
