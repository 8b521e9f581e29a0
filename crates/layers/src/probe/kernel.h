// SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
//
// What these programs use of the kernel: members that libbpf finds in the running kernel (CO-RE), and
// helpers by their numbers of linux/bpf.h.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef _Bool bool;

#define SEC(name) __attribute__((section(name), used))
#define KERNEL __attribute__((preserve_access_index))
#define INLINE static inline __attribute__((always_inline))

#define PASS 1 // NF_ACCEPT, and "let it pass" of cgroup_skb

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

struct net_device {
	possible_net_t nd_net;
} KERNEL;

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
} KERNEL;

struct sk_buff_head {
	u32 qlen;
} KERNEL;

struct sock {
	struct sock_common __sk_common;
	struct sk_buff_head sk_receive_queue;
	u16 sk_protocol;
	u8 sk_shutdown;
} KERNEL;

struct udp_sock {
	struct sk_buff_head reader_queue;
} KERNEL;

struct tcp_sock {
	u32 copied_seq;
	u32 rcv_nxt;
	u32 write_seq;
} KERNEL;

struct skb_shared_info {
	u16 gso_size;
	u16 gso_segs;
} KERNEL;

struct sk_buff {
	struct net_device *dev;
	struct sock *sk;
	u32 len;
	u32 data_len;
	int skb_iif;
	u16 network_header;
	u16 protocol;
	u32 end;
	u8 *head;
	u8 *data;
} KERNEL;

struct nf_hook_state {
	u8 hook;
} KERNEL;

struct bpf_nf_ctx {
	const struct nf_hook_state *state;
	struct sk_buff *skb;
} KERNEL;

struct task_struct {
	int pid;
	int tgid;
} KERNEL;

// Registers of user space when it entered the kernel; the kernel's own type differs by architecture.
struct pt_regs___x86 {
	unsigned long orig_ax;
	unsigned long si;
	unsigned long dx;
	unsigned long r8;
	unsigned long r9;
} KERNEL;

struct pt_regs___arm64 {
	u64 regs[31];
	s32 syscallno;
} KERNEL;

#define FIELD_EXISTS(field) __builtin_preserve_field_info(field, 2 /* BPF_FIELD_EXISTS */)

static void *(*const bpf_map_lookup_elem)(void *, const void *) = (void *)1;
static long (*const bpf_map_update_elem)(void *, const void *, const void *, u64) = (void *)2;
static long (*const bpf_map_delete_elem)(void *, const void *) = (void *)3;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static u64 (*const bpf_get_current_task)(void) = (void *)35;
// Takes a socket, or in cgroup_skb the context, for the packet's socket. The first call creates the cookie.
static u64 (*const bpf_get_socket_cookie)(void *) = (void *)46;
static long (*const bpf_probe_read_user)(void *, u32, const void *) = (void *)112;
static long (*const bpf_probe_read_kernel)(void *, u32, const void *) = (void *)113;
static void *(*const bpf_ringbuf_reserve)(void *, u64, u64) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *, u64) = (void *)132;
static struct tcp_sock *(*const bpf_skc_to_tcp_sock)(void *) = (void *)137;
static void *(*const bpf_task_storage_get)(void *, struct task_struct *, void *, u64) = (void *)156;
static struct task_struct *(*const bpf_get_current_task_btf)(void) = (void *)158;

static void *(*const bpf_task_pt_regs)(struct task_struct *) = (void *)175;
static long (*const bpf_dynptr_read)(void *, u32, const void *, u32, u64) = (void *)201;

struct bpf_dynptr {
	u64 __opaque[2];
} __attribute__((aligned(8)));

// libbpf compares the kinds of types in a signature, and a forward declaration is a different kind.
struct __sk_buff {
	u32 len;
};

extern int bpf_dynptr_from_skb(struct __sk_buff *, u64, struct bpf_dynptr *)
	__attribute__((section(".ksyms"), weak));

struct bpf_iter_num {
	u64 opaque[1];
} __attribute__((aligned(8)));

extern int bpf_iter_num_new(struct bpf_iter_num *, int start, int end) __attribute__((section(".ksyms")));
extern int *bpf_iter_num_next(struct bpf_iter_num *) __attribute__((section(".ksyms")));
extern void bpf_iter_num_destroy(struct bpf_iter_num *) __attribute__((section(".ksyms")));
extern void *bpf_cast_to_kern_ctx(void *) __attribute__((section(".ksyms")));

#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_RINGBUF 27
#define BPF_MAP_TYPE_TASK_STORAGE 29
#define BPF_F_NO_PREALLOC 1
#define BPF_LOCAL_STORAGE_GET_F_CREATE 1
// The reader polls: waking it would cost more than the event.
#define BPF_RB_NO_WAKEUP 1

#define AF_INET 2
#define AF_INET6 10
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define IPPROTO_FRAGMENT 44
