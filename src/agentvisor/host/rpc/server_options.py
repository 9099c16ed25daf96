"""How a host's gRPC servers treat who speaks to them: what is taken, and when a peer counts as gone."""

from __future__ import annotations


def server_options(*, most_bytes: int, most_streams: int) -> list[tuple[str, int]]:
    """Options of a server that takes messages of so many bytes, and so many calls at a time on one connection."""
    return [
        ("grpc.max_receive_message_length", most_bytes),
        ("grpc.max_send_message_length", most_bytes),
        # Finds a peer that is frozen, or gone without a word, in 5 seconds. (In these releases `ping_timeout_ms` does
        # it, not `keepalive_timeout_ms`.)
        ("grpc.keepalive_time_ms", 2000),
        ("grpc.http2.ping_timeout_ms", 3000),
        ("grpc.keepalive_permit_without_calls", 1),
        # Without these, a peer that pings is taken for an attacker and a healthy connection is ended.
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 500),
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.server_handshake_timeout_ms", 2000),
        # Identity only: nothing that comes in is decompressed, so nothing can be a bomb.
        ("grpc.compression_enabled_algorithms_bitset", 1),
        ("grpc.max_concurrent_streams", most_streams),
        ("grpc.max_metadata_size", 8192),
        ("grpc.so_reuseport", 0),
    ]
