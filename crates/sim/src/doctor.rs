//! The doctor's visit when trouble is over: whatever is not over will be moved by something.

use crate::client::Client;
use crate::oracle::Findings;

/// Has the engine's own doctor look: it must find nothing.
pub(crate) async fn examine(client: &Client) -> Findings {
    let mut findings = Findings::default();
    match client.engine.doctor().await {
        Ok(diagnosis) => {
            for finding in &diagnosis.findings {
                findings.check(5, Err(format!("the doctor has found: {finding}")));
            }
            findings.ensure(5, true, String::new);
        }
        Err(error) => findings.check(5, Err(format!("the doctor could not look: {error}"))),
    }
    findings
}
