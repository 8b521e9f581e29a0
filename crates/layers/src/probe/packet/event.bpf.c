// SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
//
// What an event has of a packet at a point: the key that identifies it, and its sizes.

INLINE u64 mix(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15;
	return hash ^ hash >> 32;
}

INLINE u64 udp_key(const struct packet *packet, u32 bytes, u32 segment, u8 *kind)
{
	const union payload *payload = &packet->payload;

	// RFC 7983 §7: RTP or RTCP; RFC 5761 §4: not RTCP.
	if (packet->payload_read >= 12 && payload->rtp.version >> 6 == 2 &&
	    (payload->rtp.type < 192 || payload->rtp.type > 223)) {
		*kind = RTP;
		return (u64)from_network32(payload->rtp.source) << 16 |
		       from_network16(payload->rtp.sequence);
	}
	// Datagrams of two super-packets may have one number: the payload's first 12 bytes distinguish them.
	u16 check = packet->payload_read ?
			    mix(mix(0, payload->words[0]), (u32)payload->words[1]) : 0;

	if (packet->ip_id) {
		*kind = IP_ID;
		return (u32)check << 16 | (u16)(packet->ip_id + segment);
	}
	u64 hash = mix(0, bytes);

	for (u32 i = 0; i < HASHED / 8; i++)
		hash = mix(hash, payload->words[i]);
	*kind = HASH;
	// The kernel may number the datagrams of a super-packet that has no number: they keep the check.
	return hash >> 16 << 16 | check;
}

struct passage {
	u64 skb;
	u8 *network;
	u64 time_ns;
	u64 extra;
	u32 queued;
	u32 taken_ns;
	u16 cause;
	u8 point;
	u8 sent;
	u8 matched;
};

INLINE void fill(struct event *e, const struct passage *passage, const struct packet *packet,
		 u32 segment)
{
	u32 offset = segment * packet->segment_bytes;
	u32 bytes = packet->payload_bytes - offset;

	if (packet->segment_bytes && bytes > packet->segment_bytes)
		bytes = packet->segment_bytes;
	e->time_ns = passage->time_ns;
	e->extra = passage->extra;
	e->queued = passage->queued;
	e->point = passage->point;
	name(e, &packet->tuple, passage->sent);
	if (passage->matched == LOCAL_END)
		e->flags |= OTHER;
	e->detail = passage->point == DROPPED ? passage->cause : segment;
	e->segments = packet->segments;
	e->payload_bytes = bytes;
	e->ip_id = packet->ip_id ? packet->ip_id + segment : 0;
	if (packet->tuple.protocol == IPPROTO_TCP) {
		e->key = packet->sequence;
		e->key_kind = BYTES;
	} else {
		e->key = udp_key(packet, bytes, segment, &e->key_kind);
	}
	e->taken_ns = passage->taken_ns;
	__builtin_memset(e->later_ns, 0, sizeof(e->later_ns));
}

// A function by itself, so that the verifier looks at it once and not for each segment.
__attribute__((noinline)) int one_event(const struct passage *passage, const struct packet *packet,
					u32 segment)
{
	struct event *e;

	if (!passage || !packet || passage->point >= POINTS)
		return 0;
	e = event(passage->point);
	if (!e)
		return 0;
	fill(e, passage, packet, segment);
	submit(e);
	return 0;
}
