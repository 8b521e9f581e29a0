"""Version and tables of the program. Generated: SUIRO_REGENERATE=1 cargo test -p suiro docs."""

from typing import Literal

VERSION = "0.1.0"

TableName = Literal[
    "link",
    "flows",
    "lateness",
    "tcp",
    "layers",
    "layer_accounts",
    "hops",
    "requests",
    "rungs",
    "player",
    "frames",
    "rate",
    "webrtc",
    "webrtc_sessions",
    "quic",
    "moq_sessions",
    "conference",
    "quality",
    "access",
    "pages",
    "uncompressed_ring",
    "uncompressed_frames",
    "uncompressed_sent",
    "uncompressed_received",
]

TABLES: tuple[str, ...] = (
    "link",
    "flows",
    "lateness",
    "tcp",
    "layers",
    "layer_accounts",
    "hops",
    "requests",
    "rungs",
    "player",
    "frames",
    "rate",
    "webrtc",
    "webrtc_sessions",
    "quic",
    "moq_sessions",
    "conference",
    "quality",
    "access",
    "pages",
    "uncompressed_ring",
    "uncompressed_frames",
    "uncompressed_sent",
    "uncompressed_received",
)
