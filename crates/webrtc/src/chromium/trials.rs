//! Field trials whose effect can be seen. Chromium ignores those that it does not know; whether it has their names is looked at
//! before a run (`suiro_browser::field_trial`).

/// Reports of RFC 8888 instead of transport-wide feedback. It is negotiated.
const REPORTS: &str = "WebRTC-RFC8888CongestionControlFeedback";
/// How both ends agree on such reports (RFC 8888 §6).
const AGREED: &str = "ack ccfb";

/// Whether Chromium did what its field trials ask for, by the feedback that each session agreed on.
///
/// # Errors
/// What it did not do, and how to fix it.
pub(super) fn check<'a>(
    trials: Option<&str>,
    mut sessions: impl Iterator<Item = (u64, &'a str)>,
) -> Result<(), String> {
    let parts: Vec<&str> = trials.unwrap_or_default().split('/').collect();
    let asks = |pair: &[&str]| pair[0] == REPORTS && pair[1].starts_with("Enabled");
    if !parts.chunks_exact(2).any(asks) {
        return Ok(());
    }
    match sessions.find(|(_, feedback)| !feedback.split(", ").any(|it| it == AGREED)) {
        None => Ok(()),
        Some((session, feedback)) => Err(format!(
            "field_trials names {REPORTS}, but session {session} agreed on the feedback `{feedback}` without `{AGREED}`: \
             use a Chromium that has this trial, and give it to both ends"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREAM: &str =
        "WebRTC-RFC8888CongestionControlFeedback/Enabled,offer:true/WebRTC-Bwe-ScreamV2/Enabled/";

    fn checked(trials: &str, feedback: &[&str]) -> Result<(), String> {
        check(Some(trials), (1..).zip(feedback.iter().copied()))
    }

    #[test]
    fn reports_that_were_asked_for_must_have_been_agreed_on() {
        assert_eq!(checked(SCREAM, &["nack, ack ccfb"]), Ok(()));
        assert_eq!(checked(SCREAM, &[]), Ok(()), "no session agreed on anything");
        let ignored = checked(SCREAM, &["ack ccfb", "transport-cc, nack"]).unwrap_err();
        assert_eq!(
            ignored,
            "field_trials names WebRTC-RFC8888CongestionControlFeedback, but session 2 agreed on the feedback \
             `transport-cc, nack` without `ack ccfb`: use a Chromium that has this trial, and give it to both ends"
        );
    }

    #[test]
    fn without_that_trial_any_feedback_is_right() {
        let usual = ["transport-cc, nack"];
        assert_eq!(check(None, [(1, usual[0])].into_iter()), Ok(()));
        let disabled = SCREAM.replacen("Enabled", "Disabled", 1);
        for trials in ["", "WebRTC-Bwe-ScreamV2/Enabled/", disabled.as_str()] {
            assert_eq!(checked(trials, &usual), Ok(()), "{trials}");
        }
    }
}
