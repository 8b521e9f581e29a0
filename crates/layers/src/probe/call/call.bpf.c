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
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

SEC("tp_btf/sock_send_length") int sock_send_length(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	s32 bytes = ctx[1];
	struct tuple tuple = {};
	struct tcp_sock *tcp;

	if (bytes <= 0 || sk->__sk_common.skc_net.net->ns.inum != settings.namespace_inode)
		return 0;
	if (!tuple_of(&tuple, sk, 1))
		return 0;
	if (tuple.protocol == IPPROTO_UDP) {
		if (is_local_end(&tuple, 1))
			follow_thread();
		return 0;
	}
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp || match(&tuple, 1) != WHOLE)
		return 0;
	follow_thread();
	u64 began = call_began_ns();

	// The call has just ended; what it handed over ends where the socket's data ends.
	if (began)
		tcp_event(&tuple, 1, began, tcp->write_seq - bytes, bytes);
	return 0;
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
	e->extra = (u64)sk;
	e->payload_bytes = bytes;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
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
