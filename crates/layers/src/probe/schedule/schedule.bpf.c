// SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
//
// Whether the application's threads get a CPU when they want one, and the network's receive
// softirq when it is raised.

#define NET_RX_SOFTIRQ 3
#define FOLLOWED_MAX 4096
#define TASK_RUNNING 0
// A thread that leaves its CPU in this state never runs again.
#define TASK_DEAD 0x80
#define E2BIG 7

enum state { ASLEEP, WAITING, RUNNING };

struct schedule {
	u64 since_ns; // when it entered this state
	u64 state;
};

// By the address of the thread's task_struct, as its id changes when it is not the leader and executes another program.
// Threads that used a socket of a chosen flow, or are of the chosen process. A thread that ends is removed: this makes room
// for another, and its address may soon belong to a thread of no interest.
struct {
	int (*type)[BPF_MAP_TYPE_HASH];
	int (*max_entries)[FOLLOWED_MAX];
	u64 *key;
	struct schedule *value;
} followed SEC(".maps");

// Sums over all threads, also those that have ended, of the states that are over.
struct served {
	u64 waiting_ns;
	u64 running_ns;
	u64 unfollowed; // times that a thread was refused because so many others are followed
};

struct {
	int (*type)[BPF_MAP_TYPE_PERCPU_ARRAY];
	int (*max_entries)[1];
	u32 *key;
	struct served *value;
} served SEC(".maps");

struct softirq {
	u64 raised_ns; // and not yet begun; else 0
	u64 late_ns;
};

struct {
	int (*type)[BPF_MAP_TYPE_PERCPU_ARRAY];
	int (*max_entries)[1];
	u32 *key;
	struct softirq *value;
} softirqs SEC(".maps");

INLINE struct served *sums_of_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&served, &zero);
}

INLINE void follow(u64 thread, enum state state)
{
	struct schedule fresh = { .since_ns = bpf_ktime_get_ns(), .state = state };
	struct served *sums;

	if (bpf_map_update_elem(&followed, &thread, &fresh, 1 /* BPF_NOEXIST */) != -E2BIG)
		return;
	sums = sums_of_cpu();
	if (sums)
		sums->unfollowed += 1;
}

// Called from a system call on a chosen socket.
INLINE void follow_thread(void)
{
	u64 thread = bpf_get_current_task();

	if (!bpf_map_lookup_elem(&followed, &thread))
		follow(thread, RUNNING);
}

INLINE struct schedule *schedule_of(struct task_struct *task)
{
	u64 thread = (u64)task;
	struct schedule *schedule;

	if (!task->pid) // idle: one side of most switches
		return 0;
	schedule = bpf_map_lookup_elem(&followed, &thread);

	if (!schedule && settings.process && task->tgid == (int)settings.process) {
		follow(thread, ASLEEP);
		schedule = bpf_map_lookup_elem(&followed, &thread);
	}
	return schedule;
}

INLINE void becomes(struct schedule *schedule, enum state state, u64 now)
{
	u64 passed = now - schedule->since_ns;
	struct served *sums = sums_of_cpu();

	if (sums && schedule->state == WAITING)
		sums->waiting_ns += passed;
	else if (sums && schedule->state == RUNNING)
		sums->running_ns += passed;
	schedule->since_ns = now;
	schedule->state = state;
}

SEC("tp_btf/sched_wakeup") int sched_wakeup(u64 *ctx)
{
	struct schedule *schedule = schedule_of((void *)ctx[0]);

	// One that is woken before it has gone to sleep still runs.
	if (schedule && schedule->state == ASLEEP)
		becomes(schedule, WAITING, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/sched_switch") int sched_switch(u64 *ctx)
{
	struct task_struct *leaving = (void *)ctx[1];
	struct schedule *leaves = schedule_of(leaving);
	struct schedule *comes = schedule_of((void *)ctx[2]);
	u64 now = bpf_ktime_get_ns();
	bool preempted = ctx[0] || ctx[3] == TASK_RUNNING;
	u64 thread = (u64)leaving;

	if (leaves)
		becomes(leaves, preempted ? WAITING : ASLEEP, now);
	if (comes)
		becomes(comes, RUNNING, now);
	if (leaves && ctx[3] == TASK_DEAD)
		bpf_map_delete_elem(&followed, &thread);
	return 0;
}

SEC("tp_btf/softirq_raise") int softirq_raise(u64 *ctx)
{
	struct softirq *softirq;
	u32 zero = 0;

	if ((u32)ctx[0] != NET_RX_SOFTIRQ)
		return 0;
	softirq = bpf_map_lookup_elem(&softirqs, &zero);
	if (softirq && !softirq->raised_ns)
		softirq->raised_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/softirq_entry") int softirq_entry(u64 *ctx)
{
	struct softirq *softirq;
	u32 zero = 0;

	if ((u32)ctx[0] != NET_RX_SOFTIRQ)
		return 0;
	softirq = bpf_map_lookup_elem(&softirqs, &zero);
	if (softirq && softirq->raised_ns) {
		softirq->late_ns += bpf_ktime_get_ns() - softirq->raised_ns;
		softirq->raised_ns = 0;
	}
	return 0;
}
