// A publisher: the camera's track in every session.
import type { Job } from "../src/generated/webrtc";
import { prefer, type Session } from "./session";

/** The element of the breakout box that TypeScript's library does not know. */
interface TrackGenerator extends MediaStreamTrack {
  readonly writable: WritableStream<VideoFrame>;
}
/** What the types of the DOM do not have (W3C, WebRTC Extensions, `RTCEncodingOptions`). */
interface KeySender extends RTCRtpSender {
  setParameters(
    parameters: RTCRtpSendParameters,
    options?: { encodingOptions: { keyFrame: boolean }[] },
  ): Promise<void>;
}
declare const MediaStreamTrackGenerator: new (init: { kind: "video" }) => TrackGenerator;

export class Publisher {
  private readonly track = new MediaStreamTrackGenerator({ kind: "video" });

  /** Sessions that key frames are asked for in. */
  private readonly timed = new Set<Session>();

  constructor(
    private readonly codec: Job["codec"],
    private readonly max_bps: number,
    private readonly key_every_ms: number | null,
  ) {}

  /** Where the camera writes its frames. */
  get writable(): WritableStream<VideoFrame> {
    return this.track.writable;
  }

  /** Asks the encoder of a session for a key frame now and then, while it lasts. */
  connected(session: Session, fail: (error: unknown) => void): void {
    if (this.key_every_ms === null || this.timed.has(session)) return;
    this.timed.add(session);
    const timer = setInterval(() => {
      if (!session.isConnected) return clearInterval(timer);
      this.askForKeyFrame(session, fail);
    }, this.key_every_ms);
  }

  /** Makes the next frame of a session a key frame. */
  askForKeyFrame(session: Session, fail: (error: unknown) => void): void {
    for (const sender of session.connection.getSenders() as KeySender[]) {
      if (sender.track === null) continue;
      const parameters = sender.getParameters();
      const encodingOptions = parameters.encodings.map(() => ({ keyFrame: true }));
      sender.setParameters(parameters, { encodingOptions }).catch(fail);
    }
  }

  /** Prepares a session that offers the video. */
  offer(session: Session): void {
    const sendEncodings = [{ maxBitrate: this.max_bps }];
    const init: RTCRtpTransceiverInit = { direction: "sendonly", sendEncodings };
    prefer(session.connection.addTransceiver(this.track, init), this.codec);
  }

  /** Prepares a session whose offer asks for it. */
  async answer(session: Session): Promise<void> {
    const offered = session.connection.getTransceivers();
    const transceiver = offered.find(({ receiver }) => receiver.track.kind === "video");
    if (transceiver === undefined) throw new Error("the offer asks for no video");
    transceiver.direction = "sendonly";
    prefer(transceiver, this.codec);
    await transceiver.sender.replaceTrack(this.track);
    const parameters = transceiver.sender.getParameters();
    for (const encoding of parameters.encodings) encoding.maxBitrate = this.max_bps;
    await transceiver.sender.setParameters(parameters);
  }
}
