// SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
//
// Packets on their way through the host: an event at each point.

#define NF_PRE_ROUTING 0
#define NF_LOCAL_IN 1
#define NF_LOCAL_OUT 3
#define NF_POST_ROUTING 4

// Reads the beginning of a segment's payload: 12 bytes identify RTP, all of them are hashed.
INLINE void read_payload(struct packet *packet, u32 segment, struct bpf_dynptr *pages, u32 before)
{
	u32 offset = segment * packet->segment_bytes;
	u32 rest = packet->payload_bytes - offset;
	u32 at = packet->at + offset;
	u32 want = packet->ip_id ? 12 : HASHED;

	if (packet->segment_bytes && rest > packet->segment_bytes)
		rest = packet->segment_bytes;
	if (want > rest)
		want = rest;
	if (want > HASHED)
		return;
	if (want < HASHED)
		__builtin_memset(&packet->payload, 0, sizeof(packet->payload));
	packet->payload_read = 0;
	if (at + want <= packet->linear) {
		bpf_probe_read_kernel(packet->payload.bytes, want, packet->network + at);
	} else if (!pages ||
		   bpf_dynptr_read(packet->payload.bytes, want, pages, at + before, 0)) {
		__builtin_memset(&packet->payload, 0, sizeof(packet->payload));
		return;
	}
	packet->payload_read = want;
}

// A super-packet of UDP is an event for each datagram, one of TCP is one for all. `source` is what the
// kernel lets the program read payload from: the packet, or the program's context.
INLINE void all_events(const struct passage *passage, struct packet *packet, struct sk_buff *skb,
		       void *source)
{
	// The last points have none after them.
	bool goes_on = passage->point != SEND_DRIVER && passage->point < RECEIVE_SOCKET;
	struct skb_shared_info *shared = (void *)(skb->head + skb->end);
	u32 before = packet->network - skb->data;
	struct bpf_dynptr dynptr, *pages = 0;
	u16 size = 0, segments = 0;
	u32 count = 1;

	bpf_probe_read_kernel(&size, 2, &shared->gso_size);
	if (size)
		bpf_probe_read_kernel(&segments, 2, &shared->gso_segs);
	packet->segments = segments ? segments : 1;
	if (packet->tuple.protocol == IPPROTO_TCP) {
		if (!goes_on || !begin_trail(passage, packet))
			one_event(passage, packet, 0);
		return;
	}
	if (size && packet->payload_bytes > size) {
		packet->segment_bytes = size;
		count = (packet->payload_bytes + size - 1) / size;
		packet->segments = count;
	}
	// The hashed part of the last segment lies furthest.
	bool in_pages = packet->at + packet->payload_bytes > packet->linear &&
			(count > 1 || packet->at + HASHED > packet->linear);

	if (settings.reads_pages && in_pages && !bpf_dynptr_from_skb(source, 0, &dynptr))
		pages = &dynptr;
	if (count == 1) {
		read_payload(packet, 0, pages, before);
		if (!goes_on || !begin_trail(passage, packet))
			one_event(passage, packet, 0);
		return;
	}
	// The kernel's iterator, so that the verifier follows one turn and not all of them.
	struct bpf_iter_num turns;
	const int *turn;

	bpf_iter_num_new(&turns, 0, count < SEGMENTS_MAX ? count : SEGMENTS_MAX);
	while ((turn = bpf_iter_num_next(&turns))) {
		read_payload(packet, *turn, pages, before);
		one_event(passage, packet, *turn);
	}
	bpf_iter_num_destroy(&turns);
}

INLINE bool is_here(struct net_device *dev)
{
	return dev && dev->nd_net.net->ns.inum == settings.namespace_inode;
}

INLINE bool owns(struct sock *sk)
{
	return sk && sk->__sk_common.skc_net.net->ns.inum == settings.namespace_inode;
}

INLINE void passes(struct passage *passage, struct sk_buff *skb, u8 *network, void *source)
{
	passage->skb = (u64)skb;
	passage->network = network;
	if (follow_trail(passage))
		return;
	// Not earlier: clearing it takes time, and most packets get no further than here.
	struct packet packet = {};
	u32 offset = network - skb->data; // behind the data, or before it on the way out

	packet.network = network;
	packet.linear = skb->len - skb->data_len - offset;
	int parsed = parse(&packet, skb->len - offset);

	if (parsed == NOT_MEANT)
		return;
	if (parsed == FRAGMENT) {
		if (passage->point == SEND_DRIVER || passage->point == RECEIVE_DEVICE)
			__sync_fetch_and_add(&counters.fragments, 1);
		return;
	}
	passage->matched = match(&packet.tuple, passage->sent);
	// For other datagrams, only their position in the socket's queue matters.
	if (passage->matched == WHOLE ||
	    (passage->matched == LOCAL_END && packet.tuple.protocol == IPPROTO_UDP &&
	     (passage->point == RECEIVE_SOCKET || passage->point == DROPPED)))
		all_events(passage, &packet, skb, source);
}

INLINE u8 *network_of(struct sk_buff *skb)
{
	return skb->head + skb->network_header;
}

// When the system call began that sends the packet, and when UDP took the datagram. The second is when UDP was called, or
// when the thread last got a CPU again, because until then it waited for room in the socket's buffer, or for a CPU.
INLINE void begins_at(struct passage *passage)
{
	struct thread *thread = sending_thread();
	u64 current = bpf_get_current_task();
	struct schedule *schedule;
	u64 taken;

	if (!thread)
		return;
	passage->extra = thread->call_began_ns;
	taken = thread->udp_began_ns ? thread->udp_began_ns : thread->call_began_ns;
	schedule = bpf_map_lookup_elem(&followed, &current);
	if (schedule && schedule->since_ns > taken)
		taken = schedule->since_ns;
	taken -= thread->call_began_ns;
	passage->taken_ns = taken >> 32 ? 0xffffffff : taken ? taken : 1;
	thread->handed += 1;
}

SEC("netfilter") int netfilter_hook(struct bpf_nf_ctx *ctx)
{
	struct passage passage = { .time_ns = bpf_ktime_get_ns() };

	switch (ctx->state->hook) {
	case NF_LOCAL_OUT:
		passage.point = SEND_IP;
		begins_at(&passage);
		break;
	case NF_POST_ROUTING:
		passage.point = SEND_LINK;
		break;
	case NF_PRE_ROUTING:
		passage.point = RECEIVE_IP;
		break;
	case NF_LOCAL_IN:
		passage.point = RECEIVE_LOCAL;
		break;
	default:
		return PASS;
	}
	passage.sent = passage.point < RECEIVE_DEVICE;
	passes(&passage, ctx->skb, network_of(ctx->skb), ctx->skb);
	return PASS;
}

SEC("tp_btf/net_dev_queue") int net_dev_queue(u64 *ctx)
{
	struct passage passage = { .time_ns = bpf_ktime_get_ns(), .point = SEND_QDISC, .sent = 1 };
	struct sk_buff *skb = (void *)ctx[0];

	if (is_here(skb->dev))
		passes(&passage, skb, network_of(skb), skb);
	return 0;
}

SEC("tp_btf/net_dev_start_xmit") int net_dev_start_xmit(u64 *ctx)
{
	struct passage passage = { .time_ns = bpf_ktime_get_ns(), .point = SEND_DRIVER, .sent = 1 };
	struct sk_buff *skb = (void *)ctx[0];

	if (is_here((void *)ctx[1]))
		passes(&passage, skb, network_of(skb), skb);
	return 0;
}

SEC("tp_btf/netif_receive_skb") int netif_receive_skb(u64 *ctx)
{
	struct passage passage = { .time_ns = bpf_ktime_get_ns(), .point = RECEIVE_DEVICE };
	struct sk_buff *skb = (void *)ctx[0];

	// The network header is set after this; the link's header is already taken off.
	if (is_here(skb->dev))
		passes(&passage, skb, skb->data, skb);
	return 0;
}

// A reader moves everything that waits to its own queue, and then takes one after the other from there.
INLINE u32 queued(struct sock *sk)
{
	u32 taken = 0;

	if (sk->sk_protocol == IPPROTO_UDP)
		bpf_probe_read_kernel(&taken, 4, &((struct udp_sock *)sk)->reader_queue.qlen);
	return sk->sk_receive_queue.qlen + taken;
}

SEC("cgroup_skb/ingress") int cgroup_ingress(void *ctx)
{
	struct passage passage = { .time_ns = bpf_ktime_get_ns(), .point = RECEIVE_SOCKET };
	struct sk_buff *skb = bpf_cast_to_kern_ctx(ctx);

	struct sock *sk = skb->sk;

	if (!sk || !owns(sk))
		return PASS;
	// No other socket ever has this cookie, but a later one may have this address.
	passage.extra = bpf_get_socket_cookie(ctx);
	passage.queued = queued(sk);
	passes(&passage, skb, network_of(skb), ctx);
	return PASS;
}

SEC("tp_btf/kfree_skb") int kfree_skb(u64 *ctx)
{
	struct passage passage = { .time_ns = bpf_ktime_get_ns(), .point = DROPPED };
	struct sk_buff *skb = (void *)ctx[0];
	struct sock *to = settings.drops_name_socket ? (void *)ctx[3] : 0;
	u64 to_socket = owns(to) ? bpf_get_socket_cookie(to) : 0;
	bool from_socket = owns(skb->sk);
	struct net_device *dev = skb->dev;

	// A packet refers to its sender's socket up to the next host's IP; the device shows where it is.
	// In a socket's queue there is none, and a small number in its place.
	if (!to_socket && ((long)dev < 0 ? !is_here(dev) : !from_socket))
		return 0;
	// Reasons of subsystems have numbers above 65535.
	passage.cause = (u32)ctx[2] < 0xffff ? ctx[2] : 0xffff;
	// A received packet has the interface's number. Before that it has no socket of this host.
	passage.sent = from_socket && !to_socket && !skb->skb_iif;
	passage.extra = to_socket;
	if (skb->network_header)
		passes(&passage, skb, network_of(skb), skb);
	return 0;
}
