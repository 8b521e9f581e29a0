//! First in, first out.

use std::collections::VecDeque;

use suiro_units::{Bytes, Time};

use crate::packet::{Backlog, Passage};

/// Packets in the order of their arrival, and how much they are. By itself it is droptail.
#[derive(Debug, Default)]
pub(super) struct Fifo {
    passages: VecDeque<Passage>,
    bytes: u64,
}

impl Fifo {
    pub fn push(&mut self, passage: Passage) {
        self.bytes += passage.size();
        self.passages.push_back(passage);
    }

    pub fn pop(&mut self) -> Option<Passage> {
        let passage = self.passages.pop_front()?;
        self.bytes -= passage.size();
        Some(passage)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn len(&self) -> u32 {
        self.passages.len() as u32
    }

    pub fn is_empty(&self) -> bool {
        self.passages.is_empty()
    }

    /// When the packet that leaves next arrived.
    pub fn head_arrived(&self) -> Option<Time> {
        self.passages.front().map(|passage| passage.arrived)
    }

    pub fn backlog(&self) -> Backlog {
        Backlog { bytes: Bytes::new(self.bytes), packets: self.len() }
    }
}
