// SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
//
// TCP Vegas: L. Brakmo and L. Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global
// Internet", IEEE JSAC 13(8), 1995. Written from the paper's sections on congestion avoidance and on
// the modified slow start. Loss is handled as by Reno, with the kernel's own functions; the paper's
// finer retransmission timer is left out: the kernel's SACK and RACK take its place.
//
// No headers are included: the kernel's structures are declared with the members that are used, and
// libbpf finds their offsets in the running kernel (CO-RE).

typedef unsigned char u8;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define KERNEL __attribute__((preserve_access_index))
#define KFUNC extern __attribute__((section(".ksyms")))

// Declared with empty bodies instead of forward declarations: the types of kernel functions must match.
struct sock {
} KERNEL;

struct inet_connection_sock {
	u64 icsk_ca_priv[1];
} KERNEL;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 snd_nxt;
	u32 snd_cwnd;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 prior_cwnd;
	u32 max_packets_out;
} KERNEL;

struct ack_sample {
	s32 rtt_us;
} KERNEL;

// Members are matched by name. `name` comes first so that the loader finds it.
struct tcp_congestion_ops {
	char name[16];
	void (*init)(struct sock *);
	u32 (*ssthresh)(struct sock *);
	void (*cong_avoid)(struct sock *, u32, u32);
	void (*set_state)(struct sock *, u8);
	void (*cwnd_event)(struct sock *, u32);
	void (*pkts_acked)(struct sock *, const struct ack_sample *);
	u32 (*undo_cwnd)(struct sock *);
} KERNEL;

KFUNC void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked);
KFUNC u32 tcp_reno_undo_cwnd(struct sock *sk);
KFUNC u32 tcp_slow_start(struct tcp_sock *tp, u32 acked);

// The paper's thresholds, in packets held in the queue of the path.
#define ALPHA 2
#define BETA 4
#define GAMMA 1

#define CWND_MIN 2
#define NO_RTT (~0U)
// With fewer samples in a round, a delayed ACK may be the only one: do as Reno does.
#define SAMPLES_MIN 3

#define TCP_CA_OPEN 0
#define TCP_CA_CWR 2
#define CA_EVENT_TX_START 0
#define CA_EVENT_CWND_RESTART 1

// The state of a connection, in the kernel's space for congestion controls (104 bytes).
struct vegas {
	u32 round_end; // the round is over when this sequence number is acknowledged
	u32 base_rtt;  // BaseRTT: the minimum RTT of the connection, in us
	u32 rtt;       // the minimum RTT of the round, in us: unaffected by delayed ACKs
	u32 samples;   // RTT samples of the round
	u8 active;     // no loss is being repaired
	u8 doubling;   // this round of slow start grows the window
	u32 sample;    // the last RTT sample, in us; 0 if of a retransmission
	u32 acks;      // how many there were; like `sample`, only for the trace (probe.bpf.c)
	u32 corrected; // how often the threshold was not the one returned; for the trace, too
};

static struct vegas *state(void *sk)
{
	void *v = ((struct inet_connection_sock *)sk)->icsk_ca_priv;

	// Without this, clang folds the first member's access into the relocation, which has another size.
	asm volatile("" : "+r"(v));
	return v;
}

static void begin_round(struct tcp_sock *tp, struct vegas *v)
{
	v->round_end = tp->snd_nxt;
	v->rtt = NO_RTT;
	v->samples = 0;
}

static void activate(void *sk)
{
	struct vegas *v = state(sk);

	v->active = 1;
	v->doubling = 1;
	begin_round(sk, v);
}

SEC("struct_ops/vegas_init") int vegas_init(u64 *ctx)
{
	void *sk = (void *)ctx[0];

	state(sk)->base_rtt = NO_RTT;
	activate(sk);
	return 0;
}

SEC("struct_ops/vegas_pkts_acked") int vegas_pkts_acked(u64 *ctx)
{
	struct vegas *v = state((void *)ctx[0]);
	s32 sample = ((const struct ack_sample *)ctx[1])->rtt_us;
	u32 rtt;

	v->acks++;
	v->sample = 0;
	if (sample < 0) // of a retransmission: ambiguous (Karn)
		return 0;
	rtt = sample ? sample : 1;
	v->sample = rtt;
	if (rtt < v->base_rtt)
		v->base_rtt = rtt;
	if (rtt < v->rtt)
		v->rtt = rtt;
	v->samples++;
	return 0;
}

// As Reno: half the window (RFC 5681 section 3.1, of the window instead of the flight, as the kernel does).
static u32 half(u32 window)
{
	return window / 2 > CWND_MIN ? window / 2 : CWND_MIN;
}

SEC("struct_ops/vegas_set_state") int vegas_set_state(u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];
	u8 new_state = ctx[1];

	if (new_state == TCP_CA_OPEN) {
		activate(tp);
		return 0;
	}
	state(tp)->active = 0;
	// Once in some thousand losses, Linux 6.18 was seen to keep a threshold of hundreds of millions
	// of packets instead of the one that vegas_ssthresh returned; after the repair, the connection
	// would have that window. The cause is unknown. This call follows at once, so it limits the
	// threshold to the correct value.
	if (new_state >= TCP_CA_CWR && tp->snd_ssthresh > half(tp->prior_cwnd)) {
		tp->snd_ssthresh = half(tp->prior_cwnd);
		state(tp)->corrected++;
	}
	return 0;
}

// After idleness the round's samples are stale.
SEC("struct_ops/vegas_cwnd_event") int vegas_cwnd_event(u64 *ctx)
{
	u32 event = (u32)ctx[1];

	if (event == CA_EVENT_TX_START || event == CA_EVENT_CWND_RESTART)
		activate((void *)ctx[0]);
	return 0;
}

// The kernel's rule in slow start: a window that the application does not fill does not grow.
static int is_filled(struct tcp_sock *tp)
{
	return tp->snd_cwnd < 2 * tp->max_packets_out;
}

// Once a round. Expected = W / BaseRTT, Actual = W / RTT; in packets,
// Diff = (Expected - Actual) * BaseRTT = W * (RTT - BaseRTT) / RTT.
static void end_round(struct tcp_sock *tp, struct vegas *v)
{
	u32 window = tp->snd_cwnd;
	u32 diff = (u64)window * (v->rtt - v->base_rtt) / v->rtt;

	if (window < tp->snd_ssthresh) {
		v->doubling = !v->doubling;
		if (diff <= GAMMA)
			return;
		// Leave slow start with Actual * BaseRTT + 1: the paper says when to leave, but not
		// with which window; this one keeps a packet in the queue.
		window = window - diff + 1;
		tp->snd_ssthresh = window > CWND_MIN ? window : CWND_MIN;
	} else if (diff > BETA) {
		window--;
		// Slow start must not begin again below the old threshold.
		if (window < tp->snd_ssthresh)
			tp->snd_ssthresh = window > CWND_MIN ? window : CWND_MIN;
	} else if (diff < ALPHA && is_filled(tp)) {
		window++;
	}
	if (window > tp->snd_cwnd_clamp)
		window = tp->snd_cwnd_clamp;
	tp->snd_cwnd = window > CWND_MIN ? window : CWND_MIN;
}

SEC("struct_ops/vegas_cong_avoid") int vegas_cong_avoid(u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];
	struct vegas *v = state(tp);
	u32 ack = ctx[1], acked = ctx[2];

	if (!v->active) {
		tcp_reno_cong_avoid((struct sock *)tp, ack, acked);
		return 0;
	}
	if ((s32)(ack - v->round_end) >= 0) {
		if (v->samples < SAMPLES_MIN || !v->rtt)
			tcp_reno_cong_avoid((struct sock *)tp, ack, acked);
		else
			end_round(tp, v);
		begin_round(tp, v);
	} else if (tp->snd_cwnd < tp->snd_ssthresh && v->doubling && is_filled(tp)) {
		tcp_slow_start(tp, acked);
	}
	return 0;
}

SEC("struct_ops/vegas_ssthresh") u32 vegas_ssthresh(u64 *ctx)
{
	return half(((struct tcp_sock *)ctx[0])->snd_cwnd);
}

SEC("struct_ops/vegas_undo_cwnd") u32 vegas_undo_cwnd(u64 *ctx)
{
	return tcp_reno_undo_cwnd((struct sock *)ctx[0]);
}

// The kernel shows this variable's name as the map's name, by which `suiro tcp` recognises its own.
SEC(".struct_ops.link") struct tcp_congestion_ops suiro_vegas = {
	.name = "vegas",
	.init = (void *)vegas_init,
	.ssthresh = (void *)vegas_ssthresh,
	.cong_avoid = (void *)vegas_cong_avoid,
	.set_state = (void *)vegas_set_state,
	.cwnd_event = (void *)vegas_cwnd_event,
	.pkts_acked = (void *)vegas_pkts_acked,
	.undo_cwnd = (void *)vegas_undo_cwnd,
};

char _license[] SEC("license") = "GPL";
