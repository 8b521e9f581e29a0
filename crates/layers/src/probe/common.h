// SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
//
// What all probes share: the selection of flows, the event, and the buffer that carries it.

// More than a second of 100,000 packets/s, each of which takes two or three events of 104 bytes including headers.
#define RING_BYTES (32 << 20)
#define FILTERS_MAX 8

enum point {
	SEND_CALL,
	SEND_TRANSPORT,
	SEND_IP,
	SEND_LINK,
	SEND_QDISC,
	SEND_DRIVER,
	RECEIVE_DEVICE,
	RECEIVE_IP,
	RECEIVE_LOCAL,
	RECEIVE_SOCKET,
	RECEIVE_CALL,
	DROPPED,
	POINTS,
};

enum key_kind { RTP, IP_ID, HASH, BYTES };

// Bits of `event.flags`.
enum flag {
	IPV6 = 1,
	TCP = 2,
	SENT = 4,
	// Only this host's end is of a chosen flow. Such datagrams are in the same socket's queue.
	OTHER = 8,
};

// A packet passes IP, link, queue discipline and driver in one go; so it does the four points on its way in.
#define LATER 3

// build.rs generates Rust types for this and everything else that Rust reads or writes.
struct event {
	u64 time_ns; // CLOCK_MONOTONIC
	u64 key;
	u64 extra; // SEND_IP: when the system call began, or 0; SEND_CALL of UDP: when it failed;
		   // RECEIVE_SOCKET, RECEIVE_CALL, DROPPED: the receiving socket's cookie, or 0
	u64 source[2];
	u64 destination[2];
	u16 source_port; // in network byte order, like the addresses
	u16 destination_port;
	u32 payload_bytes;
	u16 ip_id;
	u16 segments;
	u16 detail; // DROPPED: why; SEND_CALL of UDP: errno; others: which of the segments, from 0
	u8 point;
	u8 flags;
	u32 queued; // RECEIVE_SOCKET: datagrams that wait in the socket's queue
	u8 key_kind;
	u8 gap; // events on which the sockets' queues depend are missing before this one
	u8 unused[2];
	// Points that it passed thereafter, `point` + 1 first: nanoseconds after `time_ns`, 0 if it did not.
	u32 later_ns[LATER];
	u32 taken_ns; // SEND_IP: when UDP took the datagram, after the beginning of the call
};

struct end {
	u64 address[2];
	u16 port; // in network byte order
	u8 any_address;
	u8 any_port;
	u32 unused;
};

struct filter {
	struct end ends[2];
	u8 protocol;
	u8 families; // IPv4: 1, IPv6: 2
	u8 unused[6];
};

struct {
	int (*type)[BPF_MAP_TYPE_RINGBUF];
	int (*max_entries)[RING_BYTES];
} events SEC(".maps");

// Local ports of the chosen process: protocol << 16 | port in the machine's byte order.
struct {
	int (*type)[BPF_MAP_TYPE_HASH];
	int (*max_entries)[4096];
	u32 *key;
	u8 *value;
} ports SEC(".maps");

struct settings {
	u32 namespace_inode; // whose sockets and devices are watched
	u32 filter_count;
	u32 process; // only sockets in `ports`, and the threads of this process; 0 for all
	u32 drops_name_socket; // kfree_skb has a fourth argument
	u32 reads_pages; // programs may read what lies outside of a packet's first piece
	u32 unused;
	u32 send_calls[8]; // numbers of system calls that send
	struct filter filters[FILTERS_MAX];
};

// Set before the program is loaded, so that disabled parts cost nothing.
const volatile struct settings settings = {};

struct counters {
	u64 lost[POINTS]; // events that were lost because the buffer was full
	u64 fragments;    // later fragments of chosen addresses
	u64 gap;	  // 1 if such events were lost after the latest in the buffer
};

struct counters counters = {};

// The tuple of a packet, or of a socket as in its peer's packets.
struct tuple {
	u64 source[2];
	u64 destination[2];
	u16 source_port;
	u16 destination_port;
	u8 protocol;
	u8 v6;
};

enum match { NOT, LOCAL_END, WHOLE };

INLINE bool is_end(const volatile struct end *end, const u64 *address, u16 port)
{
	if (!end->any_port && end->port != port)
		return 0;
	return end->any_address || (end->address[0] == address[0] && end->address[1] == address[1]);
}

INLINE bool is_of_process(const struct tuple *tuple, bool sent)
{
	u16 port = sent ? tuple->source_port : tuple->destination_port;
	u32 key = (u32)tuple->protocol << 16 | __builtin_bswap16(port);

	return !settings.process || bpf_map_lookup_elem(&ports, &key);
}

__attribute__((noinline)) int match(const struct tuple *tuple, bool sent)
{
	enum match best = NOT;

	if (!tuple)
		return NOT;
	for (u32 i = 0; i < FILTERS_MAX && i < settings.filter_count; i++) {
		const volatile struct filter *filter = &settings.filters[i];

		if (filter->protocol != tuple->protocol || !(filter->families & (1 << tuple->v6)))
			continue;
		for (u32 side = 0; side < 2; side++) {
			const volatile struct end *to = &filter->ends[side];
			const volatile struct end *from = &filter->ends[1 - side];

			if (!is_end(to, tuple->destination, tuple->destination_port))
				continue;
			if (is_end(from, tuple->source, tuple->source_port))
				return is_of_process(tuple, sent) ? WHOLE : NOT;
			if (!sent)
				best = LOCAL_END;
		}
	}
	return best;
}

// Whether what a socket wanted to send belongs to a chosen flow. Its own address is not known if it is not bound to one.
INLINE bool matches_wanted(const struct tuple *tuple)
{
	bool bound = tuple->source[0] || tuple->source[1];

	for (u32 i = 0; i < FILTERS_MAX && i < settings.filter_count; i++) {
		const volatile struct filter *filter = &settings.filters[i];

		if (filter->protocol != tuple->protocol || !(filter->families & (1 << tuple->v6)))
			continue;
		for (u32 side = 0; side < 2; side++) {
			const volatile struct end *to = &filter->ends[side];
			const volatile struct end *from = &filter->ends[1 - side];
			bool is_port = from->any_port || from->port == tuple->source_port;

			if (!is_end(to, tuple->destination, tuple->destination_port))
				continue;
			if (bound ? is_end(from, tuple->source, tuple->source_port) : is_port)
				return is_of_process(tuple, 1);
		}
	}
	return 0;
}

// For a datagram socket: whether its end belongs to a chosen flow, whatever the other end is.
INLINE bool is_local_end(const struct tuple *tuple, bool sent)
{
	u16 port = sent ? tuple->source_port : tuple->destination_port;
	const u64 *address = sent ? tuple->source : tuple->destination;
	bool bound = address[0] || address[1];

	for (u32 i = 0; i < FILTERS_MAX && i < settings.filter_count; i++) {
		const volatile struct filter *filter = &settings.filters[i];

		for (u32 side = 0; side < 2; side++) {
			const volatile struct end *end = &filter->ends[side];
			bool is_port = end->any_port || end->port == port;
			// An IPv6 socket that is not bound to an address accepts IPv4 too.
			bool is_address = !bound || end->any_address ||
					  (end->address[0] == address[0] && end->address[1] == address[1]);

			if (filter->protocol == tuple->protocol && is_port && is_address)
				return is_of_process(tuple, sent);
		}
	}
	return 0;
}

INLINE void count_lost(u32 point)
{
	__sync_fetch_and_add(&counters.lost[point], 1);
	// What enters a socket's queue, leaves it, or is dropped there.
	if (point >= RECEIVE_SOCKET)
		counters.gap = 1;
}

INLINE struct event *event(enum point point)
{
	struct event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event)
		count_lost(point);
	return event;
}

// The buffer has lost what came when it was full: between the events in it and this one, if this is the first since.
INLINE void submit(struct event *event)
{
	event->gap = counters.gap ? __sync_lock_test_and_set(&counters.gap, 0) : 0;
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

INLINE void name(struct event *event, const struct tuple *tuple, bool sent)
{
	event->source[0] = tuple->source[0];
	event->source[1] = tuple->source[1];
	event->destination[0] = tuple->destination[0];
	event->destination[1] = tuple->destination[1];
	event->source_port = tuple->source_port;
	event->destination_port = tuple->destination_port;
	event->flags = (tuple->v6 ? IPV6 : 0) | (tuple->protocol == IPPROTO_TCP ? TCP : 0) |
		       (sent ? SENT : 0);
}

// The state of a thread.
struct thread {
	u64 call_began_ns; // its latest system call that sends
	u64 udp_began_ns;  // when UDP was called for the current datagram; 0 if that is not known
	u32 call;	   // its number
	u32 datagrams;	   // done in this call
	u32 handed;	   // packets of the current datagram that reached IP
	u32 unused;
};

struct {
	int (*type)[BPF_MAP_TYPE_TASK_STORAGE];
	int (*map_flags)[BPF_F_NO_PREALLOC];
	int *key;
	struct thread *value;
} threads SEC(".maps");

// The number of the system call that the thread is in; meaningless if it is in none.
INLINE u32 current_call(struct task_struct *task)
{
	void *registers = bpf_task_pt_regs(task);
	struct pt_regs___x86 *x86 = registers;
	struct pt_regs___arm64 *arm64 = registers;

	if (FIELD_EXISTS(x86->orig_ax))
		return x86->orig_ax;
	return FIELD_EXISTS(arm64->syscallno) ? arm64->syscallno : 0xffffffff;
}

// The thread that sends, in a system call. A packet may not belong to the current thread: the kernel sends, in a softirq, on
// top of whichever thread runs, and io_uring sends when the thread happens to be in another call.
INLINE struct thread *sending_thread(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);

	return thread && current_call(task) == thread->call ? thread : 0;
}
