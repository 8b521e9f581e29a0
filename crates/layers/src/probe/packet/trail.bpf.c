// SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
//
// The points that a packet passes in one go are collected here and become one event, because parsing and
// writing the packet at each of them would cost several times as much. If the next point does not come, the
// event is written when another packet takes its place, or when the recorder ends.

// The packet's data are in its event.
struct trail {
	u64 skb;  // the packet; 0 if the trail is free
	u64 mark; // bytes that distinguish the packet from a later one at the same address
	u32 mark_at; // from the network header
	u8 busy;     // in use by a program that this one has interrupted
	u8 last;     // its latest point
	u8 unused[2];
	struct event event;
};

enum places { TRAILS = 16 };
#define NO_MARK 0xffffffff

struct {
	int (*type)[BPF_MAP_TYPE_PERCPU_ARRAY];
	int (*max_entries)[TRAILS];
	u32 *key;
	struct trail *value;
} trails SEC(".maps");

#define barrier() asm volatile("" ::: "memory")

// Owned by the caller until it is released; null if another program owns it.
INLINE struct trail *take_trail(u64 skb)
{
	u32 at = skb >> 8 & (TRAILS - 1);
	struct trail *trail = bpf_map_lookup_elem(&trails, &at);

	if (!trail || trail->busy)
		return 0;
	trail->busy = 1;
	barrier();
	return trail;
}

INLINE void let_go(struct trail *trail)
{
	barrier();
	trail->busy = 0;
}

INLINE void count_all_lost(const struct event *event)
{
	u32 point = event->point;

	for (u32 i = 0; i <= LATER; i++, point++)
		if (point < POINTS && (!i || event->later_ns[i - 1]))
			count_lost(point);
}

INLINE void end_trail(struct trail *trail)
{
	struct event *e;

	if (!trail->skb)
		return;
	trail->skb = 0;
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (e) {
		__builtin_memcpy(e, &trail->event, sizeof(*e));
		submit(e);
	} else {
		count_all_lost(&trail->event);
	}
}

// Where a packet has eight bytes that are almost unique to it; nowhere if its key is a hash.
INLINE u32 mark_of(const struct packet *packet, const struct event *event)
{
	switch (event->key_kind) {
	case RTP: // sequence, time and the head before them
		return packet->at;
	case IP_ID: // length, identification and fragment
		return 0;
	case BYTES: // ports and sequence
		return packet->transport_at;
	default:
		return NO_MARK;
	}
}

INLINE bool is_marked(const struct trail *trail, u8 *network)
{
	u64 mark;

	return !bpf_probe_read_kernel(&mark, 8, network + trail->mark_at) && mark == trail->mark;
}

// This and the next are separate functions for the verifier, which treats addresses as numbers there.
// False if the trail's place is taken.
__attribute__((noinline)) int begin_trail(const struct passage *passage, const struct packet *packet)
{
	struct trail *trail = passage ? take_trail(passage->skb) : 0;

	if (!trail || !packet)
		return 0;
	end_trail(trail);
	fill(&trail->event, passage, packet, 0);
	trail->skb = passage->skb;
	trail->last = passage->point;
	trail->mark_at = mark_of(packet, &trail->event);
	if (trail->mark_at == NO_MARK ||
	    bpf_probe_read_kernel(&trail->mark, 8, packet->network + trail->mark_at))
		end_trail(trail);
	let_go(trail);
	return 1;
}

INLINE bool goes_on(struct trail *trail, const struct passage *passage)
{
	u64 after = passage->time_ns - trail->event.time_ns;
	u32 later = passage->point - trail->event.point - 1;
	bool sent = trail->event.flags & SENT;

	// A packet that waited in a queue discipline or for its other fragments may have continued elsewhere,
	// and its address may belong to another packet by now.
	if (trail->skb != passage->skb || passage->point <= trail->last || later >= LATER ||
	    passage->sent != sent || after >> 32 || !is_marked(trail, passage->network))
		return 0;
	trail->event.later_ns[later] = after ? after : 1;
	trail->last = passage->point;
	if (passage->point == RECEIVE_SOCKET) {
		trail->event.extra = passage->extra;
		trail->event.queued = passage->queued;
	}
	if (passage->point == RECEIVE_SOCKET || passage->point == SEND_DRIVER)
		end_trail(trail);
	return 1;
}

// True if the packet is one whose trail is here, which now has this point too.
__attribute__((noinline)) int follow_trail(const struct passage *passage)
{
	struct trail *trail = passage ? take_trail(passage->skb) : 0;
	bool follows;

	if (!trail)
		return 0;
	follows = goes_on(trail, passage);
	let_go(trail);
	return follows;
}
