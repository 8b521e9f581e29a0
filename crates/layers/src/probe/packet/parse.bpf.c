// SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
//
// What a packet is, from its headers.

#define IPV4_OFFSET 0x1fff // fragment offset
#define IPV6_OFFSET 0xfff8
#define FRAGMENT_HEADER 8
#define UDP_HEADER 8
#define HASHED 64
#define SEGMENTS_MAX 128 // UDP_MAX_SEGMENTS of linux/udp.h

union payload {
	u8 bytes[HASHED];
	u64 words[HASHED / 8];
	struct {
		u8 version;
		u8 type;
		u16 sequence;
		u32 time;
		u32 source;
	} rtp;
};

struct packet {
	struct tuple tuple;
	u32 at;            // of the payload, from the network header
	u32 transport_at;  // of the transport header
	u32 payload_bytes; // of all segments
	u32 linear;        // bytes from the network header that lie in the packet's first piece
	u32 sequence;      // TCP
	u32 segment_bytes; // of each datagram except the last in a UDP super-packet; else 0
	u16 segments;
	u16 ip_id;
	u8 *network;
	union payload payload; // of this segment, as far as it was read
	u32 payload_read;
};

// Headers, in network byte order.
struct ipv4_header {
	u8 version_length;
	u8 traffic_class;
	u16 total;
	u16 id;
	u16 fragment;
	u8 hops;
	u8 protocol;
	u16 checksum;
	u32 source;
	u32 destination;
};

struct ipv6_header {
	u32 version;
	u16 length;
	u8 next;
	u8 hops;
	u64 source[2];
	u64 destination[2];
	// A fragment header, if `next` announces one.
	u8 fragment_next;
	u8 unused;
	u16 fragment;
	u32 fragment_id;
};

struct transport_header {
	u16 source;
	u16 destination;
	union {
		struct {
			u16 length;
			u16 checksum;
		} udp;
		u32 sequence;
	};
	u32 acknowledgment;
	u8 length; // of the header of TCP: words of 32 bits in the upper half
	u8 flags;
	u16 window;
};

#define TCP_SYN 2

#define from_network16 __builtin_bswap16
#define from_network32 __builtin_bswap32

enum parsed { NOT_MEANT, FIRST, FRAGMENT };

// The transport header begins at `at`; there are `rest` bytes from there on.
INLINE enum parsed transport(struct packet *packet, u32 at, u32 rest)
{
	struct transport_header head;

	if (bpf_probe_read_kernel(&head, sizeof(head), packet->network + at))
		return NOT_MEANT;
	packet->transport_at = at;
	packet->tuple.source_port = head.source;
	packet->tuple.destination_port = head.destination;
	if (packet->tuple.protocol == IPPROTO_UDP) {
		u32 length = from_network16(head.udp.length);

		packet->at = at + UDP_HEADER;
		// A jumbogram or super-packet over 64 KiB has length 0.
		length = length ? length : rest;
		packet->payload_bytes = length < UDP_HEADER ? 0 : length - UDP_HEADER;
		return FIRST;
	}
	u32 header = (head.length >> 4) * 4;

	if (header < 20 || rest <= header)
		return NOT_MEANT; // a segment without data is in no byte range
	packet->at = at + header;
	packet->payload_bytes = rest - header;
	packet->sequence = from_network32(head.sequence) + (head.flags & TCP_SYN ? 1 : 0);
	return FIRST;
}

INLINE enum parsed ipv4(struct packet *packet, const struct ipv4_header *head, u32 length)
{
	u32 header = (head->version_length & 15) * 4;
	// `length` includes the padding of short frames; super-packets over 64 KiB have total 0.
	u32 total = head->total ? from_network16(head->total) : length;

	packet->tuple.protocol = head->protocol;
	packet->tuple.source[0] = head->source;
	packet->tuple.destination[0] = head->destination;
	packet->ip_id = from_network16(head->id);
	if (header < 20 || total < header)
		return NOT_MEANT;
	if (from_network16(head->fragment) & IPV4_OFFSET)
		return FRAGMENT;
	return transport(packet, header, total - header);
}

INLINE enum parsed ipv6(struct packet *packet, u32 length)
{
	struct ipv6_header head;
	u32 at = 40;

	if (bpf_probe_read_kernel(&head, sizeof(head), packet->network))
		return NOT_MEANT;
	u32 total = head.length ? from_network16(head.length) + 40 : length;

	packet->tuple.v6 = 1;
	packet->tuple.protocol = head.next;
	packet->tuple.source[0] = head.source[0];
	packet->tuple.source[1] = head.source[1];
	packet->tuple.destination[0] = head.destination[0];
	packet->tuple.destination[1] = head.destination[1];
	if (head.next == IPPROTO_FRAGMENT) {
		packet->tuple.protocol = head.fragment_next;
		if (from_network16(head.fragment) & IPV6_OFFSET)
			return FRAGMENT;
		at += FRAGMENT_HEADER;
	}
	return total < at ? NOT_MEANT : transport(packet, at, total - at);
}

// A function by itself, as `match`, so that the verifier follows each of its paths once and not once more for each path after
// it. `network` and `linear` are set.
__attribute__((noinline)) int parse(struct packet *packet, u32 length)
{
	enum parsed parsed = NOT_MEANT;
	struct ipv4_header head; // that of IPv6 is longer
	u8 version = 0;

	if (!packet)
		return NOT_MEANT;
	if (!bpf_probe_read_kernel(&head, sizeof(head), packet->network))
		version = head.version_length >> 4;
	if (version == 4)
		parsed = ipv4(packet, &head, length);
	else if (version == 6)
		parsed = ipv6(packet, length);
	u8 protocol = packet->tuple.protocol;

	return protocol == IPPROTO_UDP || protocol == IPPROTO_TCP ? parsed : NOT_MEANT;
}
