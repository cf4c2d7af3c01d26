//! Signatures as Standard Webhooks has them: HMAC-SHA256 over id, time and body, in Base64, several with blanks between them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use outlast::Timestamp;
use sha2::Sha256;

use axum::http::StatusCode;

use super::config::HookSecret;
use crate::error::{ApiError, ApiResult};

/// How far a message's time may be from ours.
const TOLERANCE_SECONDS: i64 = 5 * 60;
/// The most signatures one message can have: as many as somebody rotates through.
const SIGNATURES_MAX: usize = 16;

pub(super) struct Signed<'m> {
    pub(super) id: &'m str,
    pub(super) timestamp: &'m str,
    pub(super) signatures: &'m str,
    pub(super) body: &'m [u8],
}

pub(super) fn refused(message: impl Into<String>) -> ApiError {
    let hint = "sign the raw body as Standard Webhooks says, with a secret of this webhook, now";
    ApiError::new(StatusCode::UNAUTHORIZED, "bad_signature", message, hint)
}

impl Signed<'_> {
    /// Whether one of the signatures was made with one of the secrets, just now. Without a secret nothing is accepted.
    pub(super) fn verify(&self, secrets: &[HookSecret], now: Timestamp) -> ApiResult<()> {
        let sent: i64 = self.timestamp.parse().map_err(|_| refused("the header `webhook-timestamp` is no time"))?;
        let away = (now.as_millis().div_euclid(1_000)).saturating_sub(sent).saturating_abs();
        let matches = self.is_signed(secrets);
        if !matches {
            return Err(refused("no signature was made with a secret of this webhook"));
        }
        if away > TOLERANCE_SECONDS {
            return Err(refused("the message is too old, or from the future"));
        }
        Ok(())
    }

    fn is_signed(&self, secrets: &[HookSecret]) -> bool {
        let made = self.signatures.split(' ').filter_map(|signature| signature.strip_prefix("v1,"));
        let made: Vec<Vec<u8>> = made.take(SIGNATURES_MAX).filter_map(|text| STANDARD.decode(text).ok()).collect();
        let mut signed = false;
        for secret in secrets {
            let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.bytes()) else { continue };
            mac.update(self.id.as_bytes());
            mac.update(b".");
            mac.update(self.timestamp.as_bytes());
            mac.update(b".");
            mac.update(self.body);
            // Compared in constant time, and all of them, so that nobody learns which one came near.
            signed |= made.iter().fold(false, |any, signature| any | mac.clone().verify_slice(signature).is_ok());
        }
        signed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The example of the Standard Webhooks specification's libraries.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const TIME: &str = "1614265330";
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    fn secrets(texts: &[&str]) -> Vec<HookSecret> {
        texts.iter().map(|text| HookSecret::read(text).unwrap()).collect()
    }

    fn verify(signed: &Signed<'_>, secrets: &[HookSecret], seconds: i64) -> bool {
        signed.verify(secrets, Timestamp::from_millis(seconds * 1_000)).is_ok()
    }

    #[test]
    fn a_message_counts_for_five_minutes_if_one_secret_fits_one_signature() {
        let sent = 1_614_265_330;
        let signed = Signed { id: ID, timestamp: TIME, signatures: SIGNATURE, body: BODY };
        let own = secrets(&[SECRET]);
        for (away, counts) in [(0, true), (300, true), (-300, true), (301, false), (-301, false)] {
            assert_eq!(verify(&signed, &own, sent + away), counts, "{away}");
        }
        let rotating = secrets(&["whsec_c29tZXRoaW5nIG9sZGVyIHRoYXQgaXMgbG9uZw==", SECRET]);
        assert!(verify(&signed, &rotating, sent));
        let several = format!("v1,AAAA v1a,xyz {SIGNATURE}");
        assert!(verify(&Signed { signatures: &several, ..signed }, &own, sent));
    }

    #[test]
    fn whatever_was_changed_is_refused() {
        let own = secrets(&[SECRET]);
        let signed = || Signed { id: ID, timestamp: TIME, signatures: SIGNATURE, body: BODY };
        let wrong = [
            Signed { id: "msg_other", ..signed() },
            Signed { timestamp: "1614265331", ..signed() },
            Signed { timestamp: "now", ..signed() },
            Signed { body: b"{\"test\": 2432232315}", ..signed() },
            Signed { body: b"{\"test\":2432232314}", ..signed() },
            Signed { signatures: "v1,", ..signed() },
            Signed { signatures: "", ..signed() },
            Signed { signatures: &SIGNATURE[3..], ..signed() },
            Signed { signatures: "v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", ..signed() },
        ];
        for (number, wrong) in wrong.iter().enumerate() {
            assert!(!verify(wrong, &own, 1_614_265_330), "{number}");
        }
        assert!(!verify(&signed(), &[], 1_614_265_330), "closed without a secret");
    }
}
