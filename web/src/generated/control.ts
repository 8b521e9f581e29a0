// Generated from crates/control/src/controller/status.rs: do not edit.
// make generate

/** The state of the controller. */
export interface ControllerStatus {
  /** Its name. */
  name: string;
  /** Its clock: TAI in nanoseconds since 1970. */
  tai_ns: number;
  /** Whether it commands the nodes. */
  leads: boolean;
  /** Who commands them, in words. */
  leader: string;
  /** Which version of the desired state it has; null if it never had one. */
  plan: PlanId | null;
  /** Why the desired state could not be written to its file; null if it is there. */
  unwritten: string | null;
  /** Whether streams are to be on air. */
  running: boolean;
  /** Whether streams are to be stored. */
  storing: boolean;
  /** By name. */
  sites: SiteStatus[];
  /** By name. */
  nodes: NodeStatus[];
  /** By number. */
  streams: StreamStatus[];
  /** What happened, the latest first. */
  events: Event[];
}

/** Which version of the desired state: of two, the greater one is the newer one. */
export interface PlanId {
  /** The claim of the controller that made it. */
  claim: Claim;
  /** Counts its changes. */
  revision: number;
}

/**
 * A controller's claim to command nodes. Of two claims the greater one is obeyed: the one with the greater number, of two
 * with one number the later one.
 */
export type Claim = string;

/** The state of a site. */
export interface SiteStatus {
  name: string;
  /** What its uplink carries. */
  uplink_bps: number;
  /** What its nodes are to send. */
  used_bps: number;
  /** The streams that its nodes have the material of. */
  material: number[];
}

/** The state of a node, as the controller sees it. */
export interface NodeStatus {
  name: string;
  site: string;
  /** Streams that it can send at the same time. */
  capacity: number;
  /** What is wrong with it; null if nothing is. */
  fault: string | null;
  /** What it said last; null if it never said anything. */
  status: Status | null;
}

/** The state of a node. */
export interface Status {
  /** Its name. */
  name: string;
  /** Its identifier in NMOS; empty if it does not say. */
  id: string;
  /** Its clock: TAI in nanoseconds since 1970. */
  tai_ns: number;
  /** How long ago its threads looked at the clock, in nanoseconds. */
  idle_ns: number;
  /** How far its TAI was set since its streams began, in nanoseconds: they keep the time before. 0 if by less than 0.5 s. */
  clock_set_ns: number;
  /** The streams that it can send. */
  lanes: LaneStatus[];
  /** The streams that it can store. */
  receivers: ReceiverStatus[];
  /** The greatest claim of a controller that ever reached it, which it obeys; null if there was none. */
  controller: Claim | null;
  /** How long that claim lasts unless it is repeated, in nanoseconds; 0 if it has lapsed. */
  lease_ns: number;
  /** Which version of the desired state it keeps for the controllers; null if it was given none. */
  plan: PlanId | null;
}

/** The state of one stream at a node. */
export interface LaneStatus {
  /** Its number. */
  stream: number;
  /** The identifier of its sender. */
  id: string;
  /** What it does: `empty`, `filling`, `standby`, `running` or `failed`. */
  phase: string;
  /** Whether it is on air, as the Connection API has it. */
  on: boolean;
  /** Where it sends to, or did. */
  to: string | null;
  /** Whether it will be on air, and from when on (TAI in nanoseconds), if that is scheduled. */
  scheduled: [boolean, number] | null;
  /** Slots of its ring. */
  ring_slots: number;
  /** Frames that wait to be sent. */
  ring_waiting: number;
  /** Frames sent. */
  frames: number;
  /** Bytes sent, as IP. */
  bytes: number;
  /** Frames repeated, because the next was not there. */
  repeated: number;
  /** Frames late or left out. */
  late: number;
  /** Why it cannot send. */
  failed: string | null;
}

/** The state of one stream that a node can store. */
export interface ReceiverStatus {
  /** Its number. */
  stream: number;
  /** The identifier of its receiver. */
  id: string;
  /** Whether it receives and stores, as the Connection API has it. */
  on: boolean;
  /** What it receives, or did: groups, or an own address with its port. */
  from: string[];
  /** Whether it will be on, and from when on (TAI in nanoseconds), if that is scheduled. */
  scheduled: [boolean, number] | null;
  /** Complete frames. */
  frames: number;
  /** Frames of which packets, or all of them, are missing. */
  lost: number;
  /** The store that is written now. */
  storing: string | null;
}

/** The state of a stream. */
export interface StreamStatus {
  /** Its number. */
  stream: number;
  /** The node that is to send it. */
  node: string;
  rate_bps: number;
  to: string;
  /** Further nodes that are to send it at the same time. */
  twins: Twin[];
  /** The nodes that are to store it. */
  stored_by: string[];
  /** Why it is not where it should be; null if it is, or on its way. */
  stuck: string | null;
}

/** A further node that sends a stream. */
export interface Twin {
  node: string;
  to: string;
}

/** Something that happened, as the page shows it. */
export interface Event {
  /** When, in TAI. */
  tai: string;
  /** A word for it. */
  what: string;
  /** The stream that it is about. */
  stream: number | null;
  /** The node that it is about. */
  node: string | null;
  /** More, in words. */
  detail: string;
}
