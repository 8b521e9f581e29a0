//! What a scenario says of a viewer.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_strict::{Bounds, Holds, bounds, bounds_of};
use suiro_units::{Duration, Ratio};

/// WebRTC's `kMaxVideoDelay`.
pub(crate) const BUFFER: Bounds<Duration> = Bounds::new(Duration::ZERO, Duration::from_secs(10));

bounds! {
    Policy {
        buffer: BUFFER,
        percentile: Bounds::above(Ratio::ZERO, Ratio::ONE),
        buffer_max: BUFFER,
        window: Bounds::new(Duration::from_millis(100), Duration::from_secs(60)),
        wait: Bounds::new(Duration::ZERO, Duration::from_secs(60)),
        screen: Bounds::new(1, 1000),
    }
}

/// How a viewer plays real-time video.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(transform = bounds_of::<Policy>)]
pub struct Policy {
    /// How long a frame is held, beyond the delay of the fastest recent frame: `adaptive`, or a
    /// duration such as `"100 ms"`. Default: `adaptive`.
    pub buffer: Buffer,
    /// `adaptive`: the share of recent frames that must arrive in time. Default: 95 %.
    pub percentile: Ratio,
    /// `adaptive`: the maximum length of the buffer. Default: 1 s.
    pub buffer_max: Duration,
    /// The time span that counts as *recent*. Default: 10 s.
    pub window: Duration,
    /// What happens to a frame that can only be decoded after its display time. Default: `show`.
    pub late: Late,
    /// What is shown after a loss. Default: `freeze`.
    pub loss: Loss,
    /// How long after its display time a frame that others need is waited for. Without
    /// retransmission, `"0 s"` avoids a useless wait. Default: 1 s.
    pub wait: Duration,
    /// Maximum number of frames per second that the screen shows. Default: 60.
    pub screen: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            buffer: Buffer::Adaptive,
            percentile: Ratio::new(0.95).expect("it lies between 0 and 1"),
            buffer_max: Duration::from_secs(1),
            window: Duration::from_secs(10),
            late: Late::Show,
            loss: Loss::Freeze,
            wait: Duration::from_secs(1),
            screen: 60,
        }
    }
}

/// How long frames are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffer {
    /// As long as recent lateness asks for ([`crate::Delay`]).
    Adaptive,
    /// Always this much longer than the fastest recent frame took.
    Fixed(Duration),
}

/// What happens to a frame that can only be decoded after its display time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Late {
    /// It is shown at once, unless a later one can be shown too.
    Show,
    /// It is decoded, because others need it, and not shown.
    Skip,
}

/// What is shown when parts of a frame are lost, or a frame that others refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// The last complete frame, until one arrives that can be decoded without the lost data.
    #[default]
    Freeze,
    /// What a decoder makes of the rest: it conceals missing parts with previous frames, and the
    /// damage remains until a frame arrives that does not refer to damaged ones. It freezes only
    /// if nothing of a frame arrived.
    Show,
}

impl Holds<Duration> for Buffer {
    fn held(&self) -> Option<Duration> {
        match self {
            Self::Adaptive => None,
            Self::Fixed(buffer) => Some(*buffer),
        }
    }
}

impl std::str::FromStr for Buffer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim() == "adaptive" {
            return Ok(Self::Adaptive);
        }
        text.parse().map(Self::Fixed).map_err(|error| {
            format!("{error}\nhint: write \"adaptive\", or a duration such as \"100 ms\"")
        })
    }
}

impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Adaptive => f.write_str("adaptive"),
            Self::Fixed(duration) => write!(f, "{duration}"),
        }
    }
}

impl Serialize for Buffer {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Buffer {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Buffer {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Buffer".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let duration = generator.subschema_for::<Duration>();
        schemars::json_schema!({ "anyOf": [{ "const": "adaptive" }, duration] })
    }
}

#[cfg(test)]
mod tests {
    use suiro_strict::Bounded;

    use super::*;

    fn read(toml: &str) -> Result<Policy, String> {
        let policy: Policy = toml::from_str(toml).map_err(|error| error.message().to_owned())?;
        policy.check_bounds().map_err(|error| error.to_string())?;
        Ok(policy)
    }

    #[test]
    fn nothing_said_is_the_default() {
        assert_eq!(read(""), Ok(Policy::default()));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let policy = read(
            "buffer = '80 ms'\nlate = 'skip'\nloss = 'show'\nwait = '0 s'\npercentile = '99 %'",
        );
        let policy = policy.unwrap();
        assert_eq!(policy.buffer, Buffer::Fixed(Duration::from_millis(80)));
        let text = toml::to_string(&policy).unwrap();
        assert_eq!(read(&text), Ok(policy));
    }

    #[test]
    fn refusals_name_the_key_and_the_remedy() {
        let say = |toml: &str| read(toml).unwrap_err();
        assert!(say("bufer = '1 s'").contains("unknown field `bufer`"), "{}", say("bufer = '1 s'"));
        assert_eq!(say("buffer = '11 s'"), "buffer: 11 s is out of range\nexpected: 0 ns to 10 s");
        assert_eq!(say("screen = 0"), "screen: 0 is out of range\nexpected: 1 to 1000");
        assert!(say("buffer = 'adaptiv'").contains("hint: write \"adaptive\""));
        assert!(say("percentile = 0").contains("expected: more than 0, at most 1"));
        assert!(say("window = '1 ms'").starts_with("window: 1 ms"));
        assert!(say("wait = '2 min'").starts_with("wait: 2 min"));
        assert!(say("buffer_max = '1 min'").starts_with("buffer_max: 1 min"));
        assert!(say("loss = 'hide'").contains("expected `freeze` or `show`"));
        assert!(say("late = 'drop'").contains("expected `show` or `skip`"));
    }
}
