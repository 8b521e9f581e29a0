//! The objects of a data track: a number and the time of publication, as JSON or binary. Pure.

use serde::{Deserialize, Serialize};
use suiro_scenario::{MoqData, MoqPublisher};
use suiro_units::{Bytes, Duration};

/// The name of our data track.
pub const TRACK: &str = "data";
/// Largest object that is read, in bytes.
pub const BYTES_MAX: usize = 64 << 10;
/// Number and time of a binary object.
const HEAD: usize = 16;

/// How objects are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON with the members `number`, `time_us` and `text`, which fills it up.
    Json,
    /// Number and time as 64-bit integers in network byte order, then zeros.
    Binary,
}

/// What a data track has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    /// How objects are written.
    pub format: Format,
    /// From one object to the next.
    pub every: Duration,
    /// Size of an object.
    pub size: Bytes,
    /// The publisher's priority: what has a higher one is sent first.
    pub priority: u8,
}

impl Spec {
    /// The data track that a scenario asks for.
    pub fn of(publisher: &MoqPublisher) -> Option<Self> {
        let format = match publisher.data {
            MoqData::None => return None,
            MoqData::Json => Format::Json,
            MoqData::Binary => Format::Binary,
        };
        Some(Self {
            format,
            every: publisher.data_every,
            size: publisher.data_size,
            priority: publisher.data_priority,
        })
    }
}

/// Why an object cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// It is too large.
    #[error("an object of a data track: expected at most {BYTES_MAX} bytes, found {0}")]
    Large(usize),
    /// It begins with `{`, but is not JSON with the members of a message.
    #[error("an object of a data track: {0}")]
    Json(serde_json::Error),
    /// It does not begin with `{`, and is shorter than a number and a time.
    #[error("an object of a data track: expected at least {HEAD} bytes, found {0}")]
    Short(usize),
}

/// What an object says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Its number, from 0.
    pub number: u64,
    /// When it was published, in microseconds since 1970.
    pub time_us: u64,
}

/// Writes an object of that size in bytes, or larger if the message does not fit.
pub fn write(message: Message, format: Format, size: usize) -> Vec<u8> {
    match format {
        Format::Binary => {
            let mut object = Vec::with_capacity(size.max(HEAD));
            object.extend(message.number.to_be_bytes());
            object.extend(message.time_us.to_be_bytes());
            object.resize(size.max(HEAD), 0);
            object
        }
        Format::Json => {
            let head =
                format!(r#"{{"number":{},"time_us":{},"text":""#, message.number, message.time_us);
            let text = "x".repeat(size.saturating_sub(head.len() + 2));
            format!(r#"{head}{text}"}}"#).into_bytes()
        }
    }
}

/// Reads an object of either format: JSON begins with `{`, which no binary object does before number 2^61.
///
/// # Errors
/// [`DataError`].
pub fn read(object: &[u8]) -> Result<Message, DataError> {
    if object.len() > BYTES_MAX {
        return Err(DataError::Large(object.len()));
    }
    if object.first() == Some(&b'{') {
        return serde_json::from_slice(object).map_err(DataError::Json);
    }
    let field = |from: usize| {
        let bytes = object.get(from..from + 8)?;
        Some(u64::from_be_bytes(bytes.try_into().ok()?))
    };
    match (field(0), field(8)) {
        (Some(number), Some(time_us)) => Ok(Message { number, time_us }),
        _ => Err(DataError::Short(object.len())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn objects_have_the_size_that_is_asked_for() {
        let message = Message { number: 7, time_us: 1_800_000_000_000_000 };
        let text = String::from_utf8(write(message, Format::Json, 64)).unwrap();
        assert_eq!(text, r#"{"number":7,"time_us":1800000000000000,"text":"xxxxxxxxxxxxxxx"}"#);
        assert_eq!(text.len(), 64);
        let binary = write(message, Format::Binary, 64);
        assert_eq!(
            (binary.len(), &binary[..8], &binary[16..]),
            (64, &[0, 0, 0, 0, 0, 0, 0, 7][..], &[0; 48][..])
        );
        for object in [text.into_bytes(), binary] {
            assert_eq!(read(&object).unwrap(), message);
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        assert!(matches!(read(&[0; 15]), Err(DataError::Short(15))));
        assert!(matches!(read(b"{\"number\":1}"), Err(DataError::Json(_))));
        assert!(matches!(read(&vec![0; BYTES_MAX + 1]), Err(DataError::Large(_))));
    }

    proptest! {
        #[test]
        fn anything_can_be_read(object in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&object);
        }

        #[test]
        fn every_message_comes_back(number in 0..1u64 << 61, time_us: u64, size in 0usize..500) {
            let message = Message { number, time_us };
            for format in [Format::Json, Format::Binary] {
                let object = write(message, format, size);
                prop_assert_eq!(read(&object).unwrap(), message);
            }
        }
    }
}
