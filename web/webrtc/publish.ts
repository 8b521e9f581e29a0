// A publisher: the camera's track in every session.
import { prefer, type Session } from "./session";

/** The element of the breakout box that TypeScript's library does not know. */
interface TrackGenerator extends MediaStreamTrack {
  readonly writable: WritableStream<VideoFrame>;
}
declare const MediaStreamTrackGenerator: new (init: { kind: "video" }) => TrackGenerator;

export class Publisher {
  private readonly track = new MediaStreamTrackGenerator({ kind: "video" });

  constructor(private readonly max_bps: number) {}

  /** Where the camera writes its frames. */
  get writable(): WritableStream<VideoFrame> {
    return this.track.writable;
  }

  /** Prepares a session that offers the video. */
  offer(session: Session): void {
    const sendEncodings = [{ maxBitrate: this.max_bps }];
    prefer(session.connection.addTransceiver(this.track, { direction: "sendonly", sendEncodings }));
  }

  /** Prepares a session whose offer asks for it. */
  async answer(session: Session): Promise<void> {
    const offered = session.connection.getTransceivers();
    const transceiver = offered.find(({ receiver }) => receiver.track.kind === "video");
    if (transceiver === undefined) throw new Error("the offer asks for no video");
    transceiver.direction = "sendonly";
    prefer(transceiver);
    await transceiver.sender.replaceTrack(this.track);
    const parameters = transceiver.sender.getParameters();
    for (const encoding of parameters.encodings) encoding.maxBitrate = this.max_bps;
    await transceiver.sender.setParameters(parameters);
  }
}
