// SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
//
// All probes in one object: they share the buffer and the state of threads.

#include "kernel.h"
#include "common.h"
#include "schedule/schedule.bpf.c"
#include "packet/parse.bpf.c"
#include "packet/event.bpf.c"
#include "packet/trail.bpf.c"
#include "packet/packet.bpf.c"
#include "call/call.bpf.c"

char _license[] SEC("license") = "GPL";
