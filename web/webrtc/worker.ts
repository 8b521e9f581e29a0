// The worker next to the page: coded frames that come, on their way to the decoder; and the camera of a publisher.
import { Camera, type CameraJob } from "./camera";
import { trialOffset } from "./clock";

/** How often coded frames are reported. */
const SEND_EVERY_MS = 200;
/** RTP timestamp, time, key frame, size. */
const HEADER_BYTES = 4 + 8 + 1 + 4;

export type Asked =
  | { readonly ask: "frames" }
  | {
      readonly ask: "camera";
      readonly job: CameraJob;
      readonly writable: WritableStream<VideoFrame>;
    }
  | { readonly ask: "start" };
export type Told =
  | { readonly told: "ready" }
  /** The camera's frame 0 has this time, by a clock that the trial's is so far ahead of. */
  | { readonly told: "begun"; readonly start_ms: number; readonly offset_ms: number }
  | { readonly told: "missed"; readonly missed: number }
  /** The camera's next frame is the first after a pause. */
  | { readonly told: "resumes" }
  | { readonly told: "failed"; readonly reason: string };

let offset = 0;
/** Missed frames, as last reported to the page. */
let told = 0;
let camera: Camera | null = null;
const waiting: ArrayBuffer[] = [];

const tell = (told: Told): void => self.postMessage(told);

async function onAsked(asked: Asked): Promise<void> {
  switch (asked.ask) {
    case "frames":
      offset = await trialOffset();
      setInterval(report, SEND_EVERY_MS);
      return tell({ told: "ready" });
    case "camera":
      offset = await trialOffset();
      camera = await Camera.load(asked.job, asked.writable, offset);
      return tell({ told: "ready" });
    case "start":
      return camera?.run(
        (start_ms) => tell({ told: "begun", start_ms, offset_ms: offset }),
        (missed) => {
          if (missed > told) tell({ told: "missed", missed });
          told = missed;
        },
        () => tell({ told: "resumes" }),
      );
  }
}

self.addEventListener("message", ({ data }: MessageEvent<Asked>) => {
  onAsked(data).catch((error) => tell({ told: "failed", reason: String(error) }));
});

interface Transforming extends Event {
  readonly transformer: {
    readonly readable: ReadableStream<RTCEncodedVideoFrame>;
    readonly writable: WritableStream<RTCEncodedVideoFrame>;
  };
}

self.addEventListener("rtctransform", (event) => {
  const { readable, writable } = (event as Transforming).transformer;
  const note = new TransformStream<RTCEncodedVideoFrame, RTCEncodedVideoFrame>({
    transform(frame, controller) {
      waiting.push(entry(frame));
      controller.enqueue(frame);
    },
  });
  readable
    .pipeThrough(note)
    .pipeTo(writable)
    .catch(() => {});
});

/** `crates/webrtc/src/chromium/report.rs` reads it: big endian. */
function entry(frame: RTCEncodedVideoFrame): ArrayBuffer {
  const bytes = new Uint8Array(HEADER_BYTES + frame.data.byteLength);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, frame.getMetadata().rtpTimestamp ?? 0);
  view.setFloat64(4, performance.now() + offset);
  view.setUint8(12, frame.type === "key" ? 1 : 0);
  view.setUint32(13, frame.data.byteLength);
  bytes.set(new Uint8Array(frame.data), HEADER_BYTES);
  return bytes.buffer;
}

function report(): void {
  if (waiting.length === 0) return;
  const body = new Blob(waiting.splice(0));
  fetch("/frames", { method: "POST", body }).catch(() => {});
}
