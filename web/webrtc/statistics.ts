// Counters of a connection, as getStats has them.
import type { StatisticsReport } from "../src/generated/webrtc";
import type { Session } from "./session";

type Stats = Record<string, unknown>;

/** What getStats says of a connection now; null before a pair of candidates is chosen. */
export async function statistics(
  session: Session,
  now: () => number,
): Promise<StatisticsReport | null> {
  const all: Stats[] = [];
  const stats = await session.connection.getStats();
  const at_ms = now();
  stats.forEach((entry: Stats) => {
    all.push(entry);
  });
  const find = (type: string, also: (entry: Stats) => boolean = () => true): Stats | undefined =>
    all.find((entry) => entry.type === type && also(entry));
  const transport = find("transport");
  const pair = find("candidate-pair", ({ id }) => id === transport?.selectedCandidatePairId);
  if (pair === undefined) return null;
  const isVideo = ({ kind }: Stats): boolean => kind === "video";
  const sent = find("outbound-rtp", isVideo);
  const received = find("inbound-rtp", isVideo);
  const video = sent ?? received ?? {};
  const told = find("remote-inbound-rtp", isVideo);
  const address = (id: unknown): string | null => {
    const candidate = all.find((entry) => entry.id === id);
    const ip = candidate?.address;
    if (typeof ip !== "string" || ip === "") return null;
    return `${ip.includes(":") ? `[${ip}]` : ip}:${candidate?.port}`;
  };
  const seconds = known(told?.roundTripTime) ?? known(pair.currentRoundTripTime);
  const coding = known(sent?.totalEncodeTime) ?? known(received?.totalDecodeTime) ?? 0;
  return {
    session: session.number,
    at_ms,
    local: address(pair.localCandidateId),
    remote: address(pair.remoteCandidateId),
    sent_packets: known(pair.packetsSent) ?? 0,
    sent_bytes: known(pair.bytesSent) ?? 0,
    received_packets: known(pair.packetsReceived) ?? 0,
    received_bytes: known(pair.bytesReceived) ?? 0,
    rtt_ms: seconds === null ? null : seconds * 1e3,
    estimate_bps: sent ? known(pair.availableOutgoingBitrate) : null,
    target_bps: known(sent?.targetBitrate),
    loss_ratio: known(told?.fractionLost),
    nacks: known(video.nackCount) ?? 0,
    retransmissions: known(sent?.retransmittedPacketsSent) ?? 0,
    plis: known(video.pliCount) ?? 0,
    firs: known(video.firCount) ?? 0,
    video_packets: known(sent?.packetsSent) ?? known(received?.packetsReceived) ?? 0,
    width: known(video.frameWidth),
    height: known(video.frameHeight),
    coding_ms: coding * 1e3,
    coded: known(sent?.framesEncoded) ?? known(received?.framesDecoded) ?? 0,
    key_frames: known(sent?.keyFramesEncoded) ?? known(received?.keyFramesDecoded),
    qp_sum: known(video.qpSum),
    dropped: known(received?.framesDropped),
    freezes: known(received?.freezeCount),
    freezes_ms: milliseconds(received?.totalFreezesDuration),
    jitter_buffer_frames: known(received?.jitterBufferEmittedCount),
    jitter_buffer_ms: milliseconds(received?.jitterBufferDelay),
    jitter_buffer_target_ms: milliseconds(received?.jitterBufferTargetDelay),
    limitation: limitation(sent?.qualityLimitationReason),
    codec: codec(find("codec", ({ id }) => id === video.codecId)),
  };
}

/** RTCQualityLimitationReason of the W3C's statistics. */
function limitation(found: unknown): StatisticsReport["limitation"] {
  const reasons = ["none", "cpu", "bandwidth", "other"] as const;
  return reasons.find((reason) => reason === found) ?? null;
}

/** A codec with its parameters, as SDP writes them. */
export function codec(entry: Stats | undefined): string | null {
  const name = word(entry?.mimeType)?.split("/")[1];
  if (name === undefined) return null;
  const parameters = word(entry?.sdpFmtpLine);
  return `${name}/${known(entry?.clockRate) ?? 90_000}${parameters === null ? "" : ` ${parameters}`}`;
}

/** Seconds as milliseconds, or null. */
function milliseconds(seconds: unknown): number | null {
  const value = known(seconds);
  return value === null ? null : value * 1e3;
}

function word(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

/** A number that is not negative, or null. */
function known(value: unknown): number | null {
  return typeof value === "number" && value >= 0 ? value : null;
}
