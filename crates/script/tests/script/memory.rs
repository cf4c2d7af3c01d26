//! How much memory this process has used at most. Only Linux tells, and it says something only where each test has a
//! process of its own, as with nextest; elsewhere it is always nothing.

/// Forgets the peak; what is used now, in bytes.
pub(crate) fn reset_peak() -> u64 {
    // 5 stands for the peak: see proc(5).
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    peak()
}

/// The most that was used since the peak was forgotten, in bytes.
pub(crate) fn peak() -> u64 {
    if std::env::var_os("NEXTEST").is_none() {
        return 0;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or_default() * 1024
}

#[test]
fn the_peak_is_measured() {
    let before = reset_peak();
    let large = vec![1_u8; 50_000_000];
    assert_eq!(large.iter().filter(|byte| **byte == 1).count(), 50_000_000);
    drop(large);
    if cfg!(target_os = "linux") && std::env::var_os("NEXTEST").is_some() {
        assert!(peak() - before > 40_000_000, "{before} and then {}", peak());
    }
}
