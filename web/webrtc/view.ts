// A viewer: what is shown, read from the frame itself.

import type { Job, ShownReport } from "../src/generated/webrtc";
import { readStamp } from "../src/stamp";
import { prefer, type Session } from "./session";

/** The strip with the stamp is read at this size: blocks of 8 by 4 pixels. */
const WIDTH = 320;
const HEIGHT = 180;
const LINES = HEIGHT / 15;

/** Reports what `video` shows, frame by frame. */
export function watch(
  video: HTMLVideoElement,
  offset: number,
  shown: (report: ShownReport) => void,
): void {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [WIDTH, LINES];
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (context === null) throw new Error("no canvas to read stamps from");
  const look = (_: number, frame: VideoFrameCallbackMetadata): void => {
    const { videoWidth, videoHeight } = video;
    context.drawImage(video, 0, 0, videoWidth, videoHeight / 15, 0, 0, WIDTH, LINES);
    const stamp = readStamp(context.getImageData(0, 0, WIDTH, LINES), HEIGHT);
    shown({
      rtp: frame.rtpTimestamp ?? 0,
      shown_ms: frame.expectedDisplayTime + offset,
      received_ms: frame.receiveTime === undefined ? null : frame.receiveTime + offset,
      frame: stamp?.frame ?? null,
      captured_unix_ms: stamp?.capturedMs ?? null,
      presented: frame.presentedFrames,
    });
    video.requestVideoFrameCallback(look);
  };
  video.requestVideoFrameCallback(look);
}

/** Prepares a session to receive video, which `video` shows; coded frames go through `worker`. */
export function receive(session: Session, video: HTMLVideoElement, worker: Worker): void {
  session.connection.addEventListener("track", ({ receiver, track }) => {
    if (receiver.transform === null) note(receiver, worker);
    video.srcObject = new MediaStream([track]);
    video.play().catch(() => {});
  });
}

/** The same for a session that makes the offer. Once it was answered, a receiver takes no transform any more. */
export function want(
  session: Session,
  codec: Job["codec"],
  video: HTMLVideoElement,
  worker: Worker,
): void {
  receive(session, video, worker);
  const transceiver = session.connection.addTransceiver("video", { direction: "recvonly" });
  note(transceiver.receiver, worker);
  prefer(transceiver, codec);
}

function note(receiver: RTCRtpReceiver, worker: Worker): void {
  receiver.transform = new RTCRtpScriptTransform(worker, {});
}
