// One peer connection: offer and answer, and what was agreed on.
import type { Agreed, Job, Resource, SessionReport } from "../src/generated/webrtc";

/** Header extensions that Chromium has and does not offer by itself. */
const WANTED = "abs-capture-time";

type Ended = NonNullable<SessionReport["ended"]>;
interface Negotiable {
  getHeaderExtensionsToNegotiate(): { uri: string; direction: string }[];
  setHeaderExtensionsToNegotiate(extensions: { uri: string; direction: string }[]): void;
}

export class Session {
  readonly connection = new RTCPeerConnection();
  private answered_ms: number | null = null;
  private connected_ms: number | null = null;
  private over: { ended_ms: number; ended: Ended } | null = null;
  private location: string | null = null;
  private candidates: string[] = [];
  private agreed: Agreed | null = null;
  private readonly opened_ms: number;

  constructor(
    readonly number: number,
    private readonly now: () => number,
    private readonly changed: () => void,
  ) {
    this.opened_ms = now();
    this.connection.addEventListener("connectionstatechange", () => this.onState());
    this.connection.addEventListener("icecandidate", ({ candidate }) => {
      if (candidate?.protocol === "udp" && candidate.address !== null) {
        const host =
          candidate.address.includes(":") && !candidate.address.startsWith("[")
            ? `[${candidate.address}]`
            : candidate.address;
        this.candidates.push(`${host}:${candidate.port}`);
      }
    });
  }

  private onState(): void {
    const state = this.connection.connectionState;
    if (state === "connected") this.connected_ms ??= this.now();
    if (state === "failed") this.end(this.connected_ms === null ? "unanswered" : "broken");
    this.changed();
  }

  get isConnected(): boolean {
    return this.connected_ms !== null && this.over === null;
  }

  /** Closes the connection, for this reason. */
  end(ended: Ended): void {
    this.over ??= { ended_ms: this.now(), ended };
    this.connection.close();
    this.changed();
  }

  /** Offers what its transceivers have to a resource of WHIP or WHEP; candidates follow one by one. */
  async offer(resource: Resource): Promise<void> {
    const waiting: RTCIceCandidate[] = [];
    let send = (candidate: RTCIceCandidate): void => void waiting.push(candidate);
    this.connection.addEventListener("icecandidate", ({ candidate }) => {
      if (candidate?.protocol === "udp") send(candidate);
    });
    await this.connection.setLocalDescription();
    const authorization: Record<string, string> =
      resource.token === null ? {} : { authorization: `Bearer ${resource.token}` };
    const response = await fetch(resource.url, {
      method: "POST",
      headers: { "content-type": "application/sdp", ...authorization },
      body: this.connection.localDescription?.sdp ?? "",
    });
    const body = await response.text();
    if (response.status !== 201)
      throw new Error(`status ${response.status}: ${body.slice(0, 300)}`);
    this.location = new URL(response.headers.get("location") ?? "", resource.url).toString();
    const { location } = this;
    const headers = {
      "content-type": "application/trickle-ice-sdpfrag",
      "if-match": response.headers.get("etag") ?? "",
      ...authorization,
    };
    send = (candidate) => {
      const body = fragment(candidate, this.connection.localDescription?.sdp ?? "");
      // What is lost of them, the checks of the other end make up for (RFC 8445 §7.3.1.3).
      fetch(location, { method: "PATCH", headers, body }).catch(() => {});
    };
    await this.connection.setRemoteDescription({ type: "answer", sdp: body });
    waiting.forEach(send);
    this.onAgreed(body);
  }

  /** The answer to an offer, with all candidates. `prepare` is called when the offer's media are there. */
  async answer(offer: string, prepare: () => Promise<void>): Promise<string> {
    await this.connection.setRemoteDescription({ type: "offer", sdp: offer });
    await prepare();
    await this.connection.setLocalDescription();
    await this.gathered();
    const answer = this.connection.localDescription?.sdp ?? "";
    this.onAgreed(answer);
    return answer;
  }

  private gathered(): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (this.connection.iceGatheringState === "complete") resolve();
      };
      this.connection.addEventListener("icegatheringstatechange", look);
      look();
    });
  }

  private onAgreed(answer: string): void {
    this.answered_ms = this.now();
    this.agreed = agreed(answer);
    this.changed();
  }

  report(): SessionReport {
    const { opened_ms, answered_ms, connected_ms, location, candidates, agreed } = this;
    const { ended_ms, ended } = this.over ?? { ended_ms: null, ended: null };
    const times = { opened_ms, answered_ms, connected_ms, ended_ms, ended };
    return { session: this.number, ...times, location, candidates, agreed };
  }
}

/** What the parameters of a codec must have: H.264 in packetization mode 1, VP9 and AV1 of 8 bits in 4:2:0. */
const NEEDED: Readonly<Record<Job["codec"], RegExp>> = {
  h264: /packetization-mode=1/,
  vp8: /^/,
  vp9: /^$|profile-id=0/,
  av1: /^$|profile=0/,
};

/** Of a codec, what is offered or taken, in this order: H.264's Constrained Baseline first. */
export function usable<T extends { mimeType: string; sdpFmtpLine?: string }>(
  all: readonly T[],
  codec: Job["codec"],
): T[] {
  const named = all.filter(({ mimeType }) => mimeType.toLowerCase() === `video/${codec}`);
  const found = named.filter(({ sdpFmtpLine }) => NEEDED[codec].test(sdpFmtpLine ?? ""));
  const baseline = (line = ""): number => (line.includes("profile-level-id=42e0") ? 0 : 1);
  if (codec === "h264") found.sort((a, b) => baseline(a.sdpFmtpLine) - baseline(b.sdpFmtpLine));
  return found;
}

/** Only this codec, and retransmissions of it. */
export function prefer(transceiver: RTCRtpTransceiver, codec: Job["codec"]): void {
  const all = RTCRtpReceiver.getCapabilities("video")?.codecs ?? [];
  const found = usable(all, codec);
  const sends = usable(RTCRtpSender.getCapabilities("video")?.codecs ?? [], codec);
  if (found.length === 0) throw new Error(`this Chromium has no ${codec} for WebRTC`);
  if (sends.length === 0 && transceiver.direction === "sendonly")
    throw new Error(`this Chromium has no encoder of ${codec} for WebRTC`);
  const again = all.filter(({ mimeType }) => mimeType === "video/rtx");
  transceiver.setCodecPreferences([...found, ...again]);
  const negotiable = transceiver as unknown as Partial<Negotiable>;
  const extensions = negotiable.getHeaderExtensionsToNegotiate?.();
  if (extensions === undefined) return;
  for (const extension of extensions)
    if (extension.uri.endsWith(WANTED)) extension.direction = "sendrecv";
  negotiable.setHeaderExtensionsToNegotiate?.(extensions);
}

/** RFC 8840: a candidate with the credentials of its ICE session. */
function fragment(candidate: RTCIceCandidate, description: string): string {
  const line = (name: string): string => `${description.match(new RegExp(`^a=${name}:.*$`, "m"))}`;
  const media = `m=video 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:${candidate.sdpMid ?? "0"}`;
  const credentials = `${line("ice-ufrag")}\r\n${line("ice-pwd")}`;
  return `${credentials}\r\n${media}\r\na=${candidate.candidate}\r\n`;
}

/** What an answer says of its video. */
export function agreed(answer: string): Agreed | null {
  const section = answer.split(/^m=/m).find((part) => part.startsWith("video"));
  const lines = section?.split(/\r?\n/) ?? [];
  const type = lines[0]?.split(" ")[3];
  const name = lines
    .map((line) => line.match(/^a=rtpmap:(\d+) (.*)$/))
    .find((m) => m?.[1] === type);
  if (type === undefined || !name) return null;
  const of = (attribute: string): string[] =>
    lines
      .filter((line) => line.startsWith(`a=${attribute}:`))
      .map((line) => line.slice(attribute.length + 3));
  const about = (attribute: string): string[] =>
    of(attribute).flatMap((line) =>
      line.startsWith(`${type} `) ? [line.slice(type.length + 1)] : [],
    );
  // A line may be for all payload types of the video: those of RFC 8888 always are (§6).
  const feedback = of("rtcp-fb").flatMap((line) => {
    const [whose, ...what] = line.split(" ");
    return whose === type || whose === "*" ? [what.join(" ")] : [];
  });
  const again = of("fmtp").find((line) => line.endsWith(` apt=${type}`));
  return {
    codec: [name[2], ...about("fmtp")].join(" "),
    payload_types: [type, ...(again === undefined ? [] : [again.split(" ")[0]])].join(" "),
    feedback: feedback.join(", "),
    extensions: of("extmap")
      .map((line) => line.split(" ")[1])
      .join(" "),
  };
}
