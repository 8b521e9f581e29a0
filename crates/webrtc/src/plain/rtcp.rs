//! RTCP packets as bytes again: str0m reports them when they are parsed already. Pure.

use std::time::{SystemTime, UNIX_EPOCH};

use str0m::rtp::rtcp::{ReceptionReport, ReportList, Rtcp, SenderReport, Twcc};

/// Seconds from 1900 to 1970.
const NTP_TO_UNIX_S: u64 = 2_208_988_800;

/// The packet by itself; `None` for kinds that are not written (descriptions, goodbyes, extended reports).
pub fn bytes(packet: &Rtcp) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    let mut words = |numbers: &[u32]| numbers.iter().for_each(|n| body.extend(n.to_be_bytes()));
    let (count, kind) = match packet {
        // RFC 3550 §6.4.
        Rtcp::SenderReport(report) => {
            words(&sender(report));
            reports(&mut words, &report.reports);
            (report.reports.len(), 200)
        }
        Rtcp::ReceiverReport(report) => {
            words(&[*report.sender_ssrc]);
            reports(&mut words, &report.reports);
            (report.reports.len(), 201)
        }
        // RFC 4585 §6.2.1.
        Rtcp::Nack(nack) => {
            words(&[*nack.sender_ssrc, *nack.ssrc]);
            for entry in nack.reports.iter() {
                words(&[u32::from(entry.pid) << 16 | u32::from(entry.blp)]);
            }
            (1, 205)
        }
        // draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1.
        Rtcp::Twcc(twcc) => {
            feedback(&mut body, twcc);
            (15, 205)
        }
        // RFC 4585 §6.3.1.
        Rtcp::Pli(pli) => {
            words(&[*pli.sender_ssrc, *pli.ssrc]);
            (1, 206)
        }
        // RFC 5104 §4.3.1.
        Rtcp::Fir(fir) => {
            words(&[*fir.sender_ssrc, 0]);
            for entry in fir.reports.iter() {
                words(&[*entry.ssrc, u32::from(entry.seq_no) << 24]);
            }
            (4, 206)
        }
        _ => return None,
    };
    let mut bytes = vec![0x80 | u8::try_from(count).ok()?, kind];
    bytes.extend(u16::try_from(body.len() / 4).ok()?.to_be_bytes());
    bytes.extend(body);
    Some(bytes)
}

fn sender(report: &SenderReport) -> [u32; 6] {
    let info = &report.sender_info;
    let (seconds, fraction) = ntp(info.ntp_time);
    let rtp = info.rtp_time.numer() as u32;
    [*info.ssrc, seconds, fraction, rtp, info.sender_packet_count, info.sender_octet_count]
}

fn ntp(time: SystemTime) -> (u32, u32) {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let fraction = (u64::from(since.subsec_nanos()) << 32) / 1_000_000_000;
    ((since.as_secs() + NTP_TO_UNIX_S) as u32, fraction as u32)
}

fn reports(words: &mut impl FnMut(&[u32]), reports: &ReportList<ReceptionReport>) {
    for report in reports.iter() {
        let lost = u32::from(report.fraction_lost) << 24 | report.packets_lost & 0xff_ffff;
        words(&[*report.ssrc, lost, report.max_seq, report.jitter]);
        words(&[report.last_sr_time, report.last_sr_delay]);
    }
}

/// The same packets with the same times. How they are divided into chunks may differ from what was on the wire.
fn feedback(body: &mut Vec<u8>, twcc: &Twcc) {
    for ssrc in [*twcc.sender_ssrc, *twcc.ssrc] {
        body.extend(ssrc.to_be_bytes());
    }
    body.extend(twcc.base_seq.to_be_bytes());
    body.extend(twcc.status_count.to_be_bytes());
    body.extend((twcc.reference_time << 8 | u32::from(twcc.feedback_count)).to_be_bytes());
    let deltas = deltas(twcc);
    // Vector chunks of two bits for each of seven packets.
    for seven in deltas.chunks(7) {
        let symbols = seven.iter().enumerate().map(|(n, delta)| {
            let symbol: u16 = match delta {
                None => 0,
                Some(0..=255) => 1,
                Some(_) => 2,
            };
            symbol << (12 - 2 * n)
        });
        body.extend((0xc000 | symbols.sum::<u16>()).to_be_bytes());
    }
    for delta in deltas.into_iter().flatten() {
        match u8::try_from(delta) {
            Ok(small) => body.push(small),
            Err(_) => body.extend(delta.to_be_bytes()),
        }
    }
    body.resize(body.len().next_multiple_of(4), 0);
}

/// Of each packet the time since the one received before it, in units of 250 µs; `None` if it was not received.
#[expect(clippy::disallowed_methods, reason = "str0m counts from an instant, whichever")]
fn deltas(twcc: &Twcc) -> Vec<Option<i16>> {
    let zero = std::time::Instant::now();
    let mut last = i64::from(twcc.reference_time) * 64_000 / 250;
    let statuses = twcc.clone().into_iter(zero, u64::from(twcc.base_seq).into());
    let delta = |at: Option<std::time::Instant>| {
        let now = (at?.saturating_duration_since(zero).as_micros() / 250) as i64;
        let delta = now - last;
        last = now;
        Some(delta.clamp(i16::MIN.into(), i16::MAX.into()) as i16)
    };
    statuses.map(|(_, _, at)| at).map(delta).collect()
}

#[cfg(test)]
mod tests {
    use str0m::rtp::rtcp::{Fir, FirEntry, Nack, NackEntry, Pli};

    use super::*;

    #[test]
    fn requests_have_the_bytes_of_their_rfcs() {
        let pli = Pli { sender_ssrc: 1.into(), ssrc: 2.into() };
        let expected = [0x81, 206, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2];
        assert_eq!(bytes(&Rtcp::Pli(pli)).unwrap(), expected);
        let reports = NackEntry { pid: 10, blp: 0x8001 }.into();
        let nack = Nack { sender_ssrc: 1.into(), ssrc: 2.into(), reports };
        let expected = [0x81, 205, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 10, 0x80, 1];
        assert_eq!(bytes(&Rtcp::Nack(nack)).unwrap(), expected);
        let reports = FirEntry { ssrc: 2.into(), seq_no: 7 }.into();
        let fir = Fir { sender_ssrc: 1.into(), reports };
        let expected = [0x84, 206, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 7, 0, 0, 0];
        assert_eq!(bytes(&Rtcp::Fir(fir)).unwrap(), expected);
    }

    #[test]
    fn times_are_those_of_ntp() {
        let half = UNIX_EPOCH + std::time::Duration::from_millis(1500);
        assert_eq!(ntp(half), (2_208_988_801, 1 << 31));
    }
}
