// SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
//
// Records a TCP socket's state before each segment that may acknowledge its data, at the kernel's
// tracepoint `tcp_probe`. As in vegas.bpf.c, libbpf finds the members in the running kernel (CO-RE).

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define KERNEL __attribute__((preserve_access_index))

struct in6_addr {
	u8 bytes[16];
};

struct ns_common {
	u32 inum;
} KERNEL;

struct net {
	struct ns_common ns;
} KERNEL;

typedef struct {
	struct net *net;
} KERNEL possible_net_t;

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	int skc_bound_dev_if;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
} KERNEL;

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
} KERNEL;

struct tcp_congestion_ops {
	char name[16];
} KERNEL;

struct inet_connection_sock {
	const struct tcp_congestion_ops *icsk_ca_ops;
	u8 icsk_ca_state : 5;
	u64 icsk_ca_priv[4];
} KERNEL;

struct minmax_sample {
	u32 v;
} KERNEL;

struct minmax {
	struct minmax_sample s[1];
} KERNEL;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 snd_una;
	u32 snd_nxt;
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 mss_cache;
	u32 srtt_us;
	u32 mdev_us;
	struct minmax rtt_min;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 max_packets_out;
	u32 delivered;
	u32 rate_delivered;
	u32 rate_interval_us;
	u32 total_retrans;
	u64 bytes_acked;
	u64 bytes_received;
} KERNEL;

// linux/bpf.h
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static u64 (*const bpf_get_socket_cookie)(void *) = (void *)46;
static long (*const bpf_probe_read_kernel)(void *, u32, const void *) = (void *)113;
static void *(*const bpf_ringbuf_reserve)(void *, u64, u64) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *, u64) = (void *)132;
static struct tcp_sock *(*const bpf_skc_to_tcp_sock)(void *) = (void *)137;

#define BPF_MAP_TYPE_RINGBUF 27
// The reader polls: waking it would cost more than the event.
#define BPF_RB_NO_WAKEUP 1
#define AF_INET 2

// Half a second of 1 Gbit/s: longer than the reader is ever away.
#define RING_BYTES (8 << 20)

// build.rs generates a Rust type from it, which src/probe/event.rs reads.
struct event {
	u64 time_ns; // CLOCK_MONOTONIC
	u64 cookie;
	u64 pacing_rate;
	u64 bytes_acked;
	u64 bytes_received;
	u8 local[16];
	u8 remote[16];
	char congestion[16];
	u64 private[4];
	u16 local_port;  // in the machine's byte order
	u16 remote_port; // in network byte order
	u16 family;
	u8 ca_state;
	u8 unused;
	u32 snd_una;
	u32 snd_nxt;
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 mss;
	u32 srtt_us; // eight times the RTT
	u32 mdev_us; // four times the variation
	u32 min_rtt_us;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 max_packets_out;
	u32 delivered;
	u32 rate_delivered;
	u32 rate_interval_us;
	u32 total_retrans;
	u32 bound_interface;
};

struct {
	int (*type)[BPF_MAP_TYPE_RINGBUF];
	int (*max_entries)[RING_BYTES];
} events SEC(".maps");

// The network namespace whose sockets are traced; set before the program is loaded.
const volatile u32 namespace_inode = 0;

// Events that were lost because the buffer was full.
u64 lost = 0;

// A bit field has no address to read from: its bytes are read, and the field is extracted from them.
static u8 ca_state(struct inet_connection_sock *icsk)
{
	u64 word = *((u8 *)icsk +
		     __builtin_preserve_field_info(icsk->icsk_ca_state, 0 /* byte offset */));

	word <<= __builtin_preserve_field_info(icsk->icsk_ca_state, 4 /* left shift */);
	return word >> __builtin_preserve_field_info(icsk->icsk_ca_state, 5 /* right shift */);
}

static void name_socket(struct event *event, struct sock *sk)
{
	struct sock_common *common = &sk->__sk_common;

	event->cookie = bpf_get_socket_cookie(sk);
	event->family = common->skc_family;
	event->local_port = common->skc_num;
	event->remote_port = common->skc_dport;
	event->bound_interface = common->skc_bound_dev_if;
	if (event->family == AF_INET) {
		*(u32 *)event->local = common->skc_rcv_saddr;
		*(u32 *)event->remote = common->skc_daddr;
	} else {
		bpf_probe_read_kernel(event->local, 16, &common->skc_v6_rcv_saddr);
		bpf_probe_read_kernel(event->remote, 16, &common->skc_v6_daddr);
	}
}

static void measure(struct event *event, struct tcp_sock *tp)
{
	event->bytes_acked = tp->bytes_acked;
	event->bytes_received = tp->bytes_received;
	event->snd_una = tp->snd_una;
	event->snd_nxt = tp->snd_nxt;
	event->snd_cwnd = tp->snd_cwnd;
	event->snd_ssthresh = tp->snd_ssthresh;
	event->mss = tp->mss_cache;
	event->srtt_us = tp->srtt_us;
	event->mdev_us = tp->mdev_us;
	event->min_rtt_us = tp->rtt_min.s[0].v;
	event->packets_out = tp->packets_out;
	event->sacked_out = tp->sacked_out;
	event->lost_out = tp->lost_out;
	event->retrans_out = tp->retrans_out;
	event->max_packets_out = tp->max_packets_out;
	event->delivered = tp->delivered;
	event->rate_delivered = tp->rate_delivered;
	event->rate_interval_us = tp->rate_interval_us;
	event->total_retrans = tp->total_retrans;
}

SEC("tp_btf/tcp_probe") int probe(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct tcp_sock *tp;
	struct event *event;

	if (sk->__sk_common.skc_net.net->ns.inum != namespace_inode)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp || !tp->packets_out) // nothing to acknowledge
		return 0;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	event->time_ns = bpf_ktime_get_ns();
	name_socket(event, sk);
	measure(event, tp);
	event->pacing_rate = sk->sk_pacing_rate;
	event->ca_state = ca_state(&tp->inet_conn);
	bpf_probe_read_kernel(event->congestion, 16, &tp->inet_conn.icsk_ca_ops->name);
	bpf_probe_read_kernel(event->private, 32, &tp->inet_conn.icsk_ca_priv);
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

char _license[] SEC("license") = "GPL";
