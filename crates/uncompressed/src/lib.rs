//! The uncompressed 8K stream server: frame stores, paced senders, verifying receivers.
