// SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
//
// System calls: when a thread begins one that sends, and what a socket took or gave.

#define MSG_PEEK 2
#define MSG_ERRQUEUE 0x2000
#define RCV_SHUTDOWN 1

SEC("tp_btf/sys_enter") int sys_enter(u64 *ctx)
{
	struct thread *thread;
	bool sends = 0;

	for (u32 i = 0; i < 8; i++)
		sends |= settings.send_calls[i] == (u32)ctx[1];
	if (!sends)
		return 0;
	thread = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0,
				      BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (thread) {
		thread->call_began_ns = bpf_ktime_get_ns();
		thread->call = (u32)ctx[1];
		thread->udp_began_ns = 0;
		thread->datagrams = 0;
		thread->handed = 0;
	}
	return 0;
}

// The tuple of the packets that the socket sends, or receives.
INLINE bool tuple_of(struct tuple *tuple, struct sock *sk, bool sent)
{
	struct sock_common *common = &sk->__sk_common;
	u64 local[2] = {}, remote[2] = {};
	u16 port = __builtin_bswap16(common->skc_num);

	tuple->protocol = sk->sk_protocol;
	if (common->skc_family == AF_INET6) {
		bpf_probe_read_kernel(local, 16, &common->skc_v6_rcv_saddr);
		bpf_probe_read_kernel(remote, 16, &common->skc_v6_daddr);
		tuple->v6 = 1;
		// IPv4 in an IPv6 socket (RFC 4291 §2.5.5.2).
		if (!remote[0] && (u32)remote[1] == 0xffff0000) {
			tuple->v6 = 0;
			local[0] = local[1] >> 32;
			remote[0] = remote[1] >> 32;
			local[1] = remote[1] = 0;
		}
	} else if (common->skc_family == AF_INET) {
		local[0] = common->skc_rcv_saddr;
		remote[0] = common->skc_daddr;
	} else {
		return 0;
	}
	__builtin_memcpy(sent ? tuple->source : tuple->destination, local, 16);
	__builtin_memcpy(sent ? tuple->destination : tuple->source, remote, 16);
	tuple->source_port = sent ? port : common->skc_dport;
	tuple->destination_port = sent ? common->skc_dport : port;
	return 1;
}

INLINE void tcp_event(struct tuple *tuple, bool sent, u64 time_ns, u32 start, u32 bytes)
{
	enum point point = sent ? SEND_CALL : RECEIVE_CALL;
	struct event *e = event(point);

	if (!e)
		return;
	__builtin_memset(e, 0, sizeof(*e));
	e->time_ns = time_ns;
	e->point = point;
	name(e, tuple, sent);
	e->key = start;
	e->key_kind = BYTES;
	e->payload_bytes = bytes;
	submit(e);
}

// What a call was to send, in the memory of its process. Layouts are those of 64-bit programs.
struct wanted {
	u64 name; // the destination's address
	u32 name_bytes;
	u32 bytes;
	u64 payload;
	u32 payload_bytes; // that lie there
};

struct user_slice {
	u64 at;
	u64 bytes;
};

struct user_message {
	u64 name;
	u32 name_bytes;
	u32 unused;
	u64 slices;
	u64 slice_count;
	u64 control;
	u64 control_bytes;
	u64 flags; // in sendmmsg, the next message follows this and 8 bytes
};

struct socket_name {
	u16 family;
	u16 port;
	u32 address4;
	u64 address6[2];
	u32 scope;
};

struct arguments {
	u64 first; // 1: what follows the descriptor
	u64 second;
	u64 fourth;
	u64 fifth;
};

// Those of the thread's system call, counted from 0.
INLINE void arguments_of(struct arguments *arguments)
{
	void *registers = bpf_task_pt_regs(bpf_get_current_task_btf());
	struct pt_regs___x86 *x86 = registers;
	struct pt_regs___arm64 *arm64 = registers;

	// The barriers keep the compiler from computing which register to read: the verifier wants to know.
	if (FIELD_EXISTS(x86->orig_ax)) {
		arguments->first = x86->si;
		barrier();
		arguments->second = x86->dx;
		barrier();
		arguments->fourth = x86->r8;
		barrier();
		arguments->fifth = x86->r9;
	} else if (FIELD_EXISTS(arm64->syscallno)) {
		arguments->first = arm64->regs[1];
		barrier();
		arguments->second = arm64->regs[2];
		barrier();
		arguments->fourth = arm64->regs[4];
		barrier();
		arguments->fifth = arm64->regs[5];
	}
	barrier();
}

#define SLICES_MAX 16

INLINE bool want_slices(struct wanted *wanted, u64 slices, u64 count)
{
	struct user_slice slice;

	for (u32 i = 0; i < SLICES_MAX && i < count; i++) {
		if (bpf_probe_read_user(&slice, sizeof(slice), (void *)(slices + i * sizeof(slice))))
			return 0;
		if (!i) {
			wanted->payload = slice.at;
			wanted->payload_bytes = slice.bytes;
		}
		wanted->bytes += slice.bytes;
	}
	return 1;
}

// The order is that of SEND_CALLS in settings.rs.
INLINE bool wanted_of(struct wanted *wanted, const struct thread *thread)
{
	struct user_message message;
	struct arguments arguments = {};
	u32 call = thread->call;

	arguments_of(&arguments);
	u64 at = arguments.first;

	if (call == settings.send_calls[0] || call == settings.send_calls[3]) {
		wanted->payload = at;
		wanted->bytes = wanted->payload_bytes = arguments.second;
		if (call == settings.send_calls[0]) {
			wanted->name = arguments.fourth;
			wanted->name_bytes = arguments.fifth;
		}
		return 1;
	}
	if (call == settings.send_calls[4])
		return want_slices(wanted, at, arguments.second);
	if (call == settings.send_calls[2])
		at += thread->datagrams * (sizeof(message) + 8);
	else if (call != settings.send_calls[1])
		return 0;
	if (bpf_probe_read_user(&message, sizeof(message), (void *)at))
		return 0;
	wanted->name = message.name;
	wanted->name_bytes = message.name_bytes;
	return want_slices(wanted, message.slices, message.slice_count);
}

INLINE bool name_destination(struct tuple *tuple, const struct wanted *wanted)
{
	struct socket_name name = {};
	u32 bytes = sizeof(name);

	if (!wanted->name)
		return tuple->destination_port;
	if (wanted->name_bytes < bytes)
		bytes = 16; // sockaddr_in
	if (bpf_probe_read_user(&name, bytes, (void *)wanted->name))
		return 0;
	tuple->destination_port = name.port;
	tuple->v6 = name.family == AF_INET6;
	if (!tuple->v6) {
		tuple->destination[0] = name.address4;
		tuple->destination[1] = 0;
	} else if (!name.address6[0] && (u32)name.address6[1] == 0xffff0000) {
		// IPv4 in an IPv6 socket (RFC 4291 §2.5.5.2).
		tuple->v6 = 0;
		tuple->destination[0] = name.address6[1] >> 32;
		tuple->destination[1] = 0;
	} else {
		tuple->destination[0] = name.address6[0];
		tuple->destination[1] = name.address6[1];
	}
	return 1;
}

// A datagram that did not get as far as IP, because its call failed. A function by itself: its caller has no room on the stack
// for what both need.
__attribute__((noinline)) int udp_failed(struct tuple *tuple, const struct thread *thread, u32 error)
{
	struct wanted wanted = {};
	struct packet packet = {};
	struct event *e;

	if (!tuple || !thread)
		return 0;
	if (!wanted_of(&wanted, thread) || !name_destination(tuple, &wanted) ||
	    !matches_wanted(tuple))
		return 0;
	u32 read = wanted.payload_bytes < HASHED ? wanted.payload_bytes : HASHED;

	if (read > HASHED || bpf_probe_read_user(packet.payload.bytes, read, (void *)wanted.payload))
		read = 0;
	packet.payload_read = read;
	e = event(SEND_CALL);
	if (!e)
		return 0;
	__builtin_memset(e, 0, sizeof(*e));
	e->time_ns = thread->call_began_ns;
	e->extra = bpf_ktime_get_ns();
	e->point = SEND_CALL;
	name(e, tuple, 1);
	e->key = udp_key(&packet, wanted.bytes, 0, &e->key_kind);
	e->payload_bytes = wanted.bytes;
	e->segments = 1;
	e->detail = error;
	submit(e);
	return 0;
}

#define ERRNO_MAX 511 // higher numbers mean that the call begins anew

// UDP is done with a datagram. `bytes` is negative if it failed; if the packet reached IP, what became of it is seen there.
INLINE void udp_done(struct tuple *tuple, s32 bytes)
{
	struct thread *thread = sending_thread();

	if (!thread)
		return;
	if (bytes < 0 && bytes >= -ERRNO_MAX && !thread->handed)
		udp_failed(tuple, thread, -bytes);
	thread->handed = 0;
	thread->udp_began_ns = 0;
	thread->datagrams += 1;
}

SEC("tp_btf/sock_send_length") int sock_send_length(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	s32 bytes = ctx[1];
	struct tuple tuple = {};
	struct tcp_sock *tcp;

	if (sk->__sk_common.skc_net.net->ns.inum != settings.namespace_inode ||
	    !tuple_of(&tuple, sk, 1))
		return 0;
	if (tuple.protocol == IPPROTO_UDP) {
		if (is_local_end(&tuple, 1)) {
			follow_thread();
			udp_done(&tuple, bytes);
		}
		return 0;
	}
	// A TCP socket without room is how TCP works: nothing is lost.
	if (bytes <= 0)
		return 0;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp || match(&tuple, 1) != WHOLE)
		return 0;
	follow_thread();
	struct thread *thread = sending_thread();

	// The call has just ended; what it handed over ends where the socket's data ends.
	if (thread)
		tcp_event(&tuple, 1, thread->call_began_ns, tcp->write_seq - bytes, bytes);
	return 0;
}

INLINE int udp_begins(void)
{
	struct thread *thread = sending_thread();

	if (thread)
		thread->udp_began_ns = bpf_ktime_get_ns();
	return PASS;
}

// UDP begins with a datagram, if the call names its destination: there is no such hook for connected sockets.
SEC("cgroup/sendmsg4") int udp_sendmsg4(void *ctx)
{
	return udp_begins();
}

SEC("cgroup/sendmsg6") int udp_sendmsg6(void *ctx)
{
	return udp_begins();
}

// The datagram is identified by its position in the socket's queue.
INLINE void udp_received(struct sock *sk, struct tuple *tuple, u64 time_ns, u32 bytes)
{
	struct event *e = event(RECEIVE_CALL);

	if (!e)
		return;
	__builtin_memset(e, 0, sizeof(*e));
	e->time_ns = time_ns;
	e->point = RECEIVE_CALL;
	name(e, tuple, 0);
	e->extra = bpf_get_socket_cookie(sk);
	e->payload_bytes = bytes;
	submit(e);
}

SEC("tp_btf/sock_recv_length") int sock_recv_length(u64 *ctx)
{
	u64 now = bpf_ktime_get_ns();
	struct sock *sk = (void *)ctx[0];
	s32 bytes = ctx[1], flags = ctx[2];
	struct tuple tuple = {};
	struct tcp_sock *tcp;

	if (bytes < 0 || flags & (MSG_PEEK | MSG_ERRQUEUE) ||
	    sk->__sk_common.skc_net.net->ns.inum != settings.namespace_inode)
		return 0;
	if (!tuple_of(&tuple, sk, 0))
		return 0;
	if (tuple.protocol == IPPROTO_UDP) {
		if (!is_local_end(&tuple, 0))
			return 0;
		follow_thread();
		udp_received(sk, &tuple, now, bytes);
		return 0;
	}
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp || !bytes || match(&tuple, 0) != WHOLE)
		return 0;
	follow_thread();
	u32 end = tcp->copied_seq;

	// A FIN takes one number: this call may have reached it after the data.
	if (sk->sk_shutdown & RCV_SHUTDOWN && end == tcp->rcv_nxt)
		end -= 1;
	tcp_event(&tuple, 0, now, end - bytes, bytes);
	return 0;
}
